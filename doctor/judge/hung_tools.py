"""Device tools that hang: the most common sign of a driver that no longer answers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from doctor.api import Check, Fact, Group, grouped
from doctor.facts.device_tools import calls
from doctor.model import Confidence, Evidence, MissingFact, Problem
from doctor.probe import NOT_STOPPED, HostAnswer

PROOF_SECONDS = 8
"""A tool that did not answer for this long hangs; a shorter wait may be a single slow query."""
SHOWN = 8
HungTools = Mapping[tuple[str, Group], Problem]
"""By host and by the group of facts that need the tool."""


def hung_tools(checks: Sequence[Check], heard: Mapping[str, HostAnswer]) -> HungTools:
    """In any fact that a check needs. Facts asked later do not count: a ping waits for its peer."""
    needs = dict.fromkeys(need for check in checks for need in check.wanted if isinstance(need, Fact))
    asked = (fact for fact in needs if fact.group and fact.group.tool and not fact.later)
    groups = grouped((fact.group, fact.name) for fact in asked if fact.group)
    found = {}
    for host, answer in heard.items():
        for group, names in groups.items():
            waits = [wait for name in sorted(names) for wait in _waits(answer, name, group)]
            if sum(wait.seconds for wait in waits) >= PROOF_SECONDS:
                found[host, group] = _problem(group, waits)
    return found


@dataclass(frozen=True, slots=True)
class Wait:
    """A query that waited in vain; `stuck` is one that could not even be killed."""

    seconds: int
    said: str
    stuck: bool


def _waits(answer: HostAnswer, fact: str, group: Group) -> Iterator[Wait]:
    """How long each query waited in vain. A few among answered ones only show that they are slow."""
    if fact in answer.captures:
        made = list(calls(answer.captures[fact].stdout, group.tool))
        answered = any(not call.failed for call in made)
        for call in made:
            if call.hung >= (PROOF_SECONDS if answered else 1):
                yield Wait(call.hung, f"{fact} {call.key}: {call.failed}", call.stuck)
    elif answer.missing.get(fact, MissingFact(fact, "")).reason.endswith(NOT_STOPPED):
        yield Wait(group.seconds, f"{fact}: {answer.missing[fact].reason}", True)


def _problem(group: Group, waits: Sequence[Wait]) -> Problem:
    longest = max(wait.seconds for wait in waits)
    return Problem(
        f"its driver does not answer: {group.tool} hangs",
        expected="an answer within seconds",
        actual=f"none within {longest} s" + (f", {len(waits)} times" if len(waits) > 1 else ""),
        evidence=tuple(Evidence(group.tool, wait.said) for wait in waits[:SHOWN]),
        confidence=Confidence.CERTAIN if any(wait.stuck for wait in waits) else Confidence.STRONG,
        remedy=group.wake,
    )
