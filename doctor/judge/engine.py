"""Checks x facts -> results. Pure: the same facts give the same results, in the same order.

The engine, not the author of a check, decides on unknown if a need is missing, skip if a check does not
apply, and crash if a check or parser breaks. Nothing that goes wrong in one check affects another.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from doctor.api import EXPECT, HERE, RANKS, Check, Fact, Here, Need, OptionalNeed, RunValue, Skip, Undecided
from doctor.errors import UnreadableOutput
from doctor.expect import Expect
from doctor.job.plan import JobPlan
from doctor.judge.hung_tools import HungTools, hung_tools
from doctor.model import Capture, Confidence, MissingFact, Problem, Result, Scope, Severity, Status
from doctor.probe import HostAnswer
from doctor.text.nodeset import fold


@dataclass(frozen=True, slots=True)
class ParserCrash(MissingFact):
    """A fact whose parser broke: our mistake, not the host's."""


class Facts:
    """The facts of all hosts, parsed when first used; an answer that several hosts gave is parsed once."""

    def __init__(
        self, heard: Mapping[str, HostAnswer], known: Mapping[tuple[str, str], Any] | None = None
    ) -> None:
        """`known` are values that need not be asked of the host: (host, fact) -> value."""
        self.heard = heard
        self._parsed: dict[tuple[str, str], Any] = dict(known or {})
        self._read: dict[tuple[str, Capture], Any] = {}
        self.hosts = tuple(heard)

    def get(self, host: str, fact: Fact[Any]) -> Any:
        """The value, or `MissingFact`."""
        key = (host, fact.name)
        if key not in self._parsed:
            self._parsed[key] = self._parse(host, fact)
        return self._parsed[key]

    def known(self, host: str, fact: Fact[Any], otherwise: Any = None) -> Any:
        """The value, or else `otherwise`."""
        value = self.get(host, fact)
        return otherwise if isinstance(value, MissingFact) else value

    def kept(self, heard: Mapping[str, HostAnswer]) -> dict[tuple[str, str], Any]:
        """The values already parsed from answers that `heard` shares."""
        return {
            (host, name): value
            for (host, name), value in self._parsed.items()
            if host in self.heard and host in heard and _same(self.heard[host], heard[host], name)
        }

    def all(self, fact: Fact[Any]) -> dict[str, Any]:
        """Host -> value, for the hosts that have one."""
        found = {host: self.get(host, fact) for host in self.hosts}
        return {host: value for host, value in found.items() if not isinstance(value, MissingFact)}

    def of(self, hosts: Sequence[str]) -> Facts:
        """The same facts of some hosts alone."""
        alone = copy(self)
        alone.heard = {host: self.heard[host] for host in hosts}
        alone.hosts = tuple(hosts)
        return alone

    def _parse(self, host: str, fact: Fact[Any]) -> Any:
        heard = self.heard[host]
        if fact.name in heard.missing:
            return heard.missing[fact.name]
        capture = heard.captures.get(fact.name)
        if capture is None:
            return MissingFact(fact.name, "the recording does not hold it")
        said = (fact.name, capture)
        if said not in self._read:
            self._read[said] = _parse_capture(fact, capture)
        return self._read[said]


def _parse_capture(fact: Fact[Any], capture: Capture) -> Any:
    try:
        return fact.parse(capture)
    except UnreadableOutput as error:
        return MissingFact(fact.name, error.message)
    except (Exception, SystemExit) as error:  # whatever one host printed must not stop the others
        return ParserCrash(fact.name, f"its parser broke ({type(error).__name__}: {error})")


def _same(one: HostAnswer, other: HostAnswer, fact: str) -> bool:
    """Whether both hold the same answer to a fact."""
    captured = one.captures.get(fact) is other.captures.get(fact)
    return one is other or (captured and one.missing.get(fact) == other.missing.get(fact))


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that checks may use."""

    plan: JobPlan
    facts: Facts
    expect: Mapping[str, Expect]
    """Host -> what is expected of it."""
    common: Expect
    givens: Mapping[str, Any]
    severities: Mapping[str, Severity]
    certain_only: bool = False
    """Whether only what is certain is a fault."""


SEVERAL = "only for jobs of several hosts"
"""Why a check does not apply to a single host."""


def judge(checks: Sequence[Check], case: Inputs) -> list[Result]:
    """Run every check; the order of results is the order of checks and hosts."""
    hung = hung_tools(checks, case.facts.heard)
    return [result for check in checks for result in _judge(check, case, hung)]


def _judge(check: Check, case: Inputs, hung: HungTools) -> Iterator[Result]:
    reason = _inapplicable(check, case.plan)
    if reason:
        yield Result(check.id, case.facts.hosts, Status.SKIP, reason)
    elif check.scope is Scope.CLUSTER:
        yield from _judge_cluster(check, case)
    else:
        results: list[Result] = []
        for host in case.facts.hosts:
            found = [hung[host, group] for group in check.tools if (host, group) in hung]
            results += _judge_host(check, host, case, found)
        yield from _told_once(results, case.plan.names)


def _told_once(results: Sequence[Result], hosts: Sequence[str]) -> Iterator[Result]:
    """What every host that could be judged has alike, of a value that all were given, blames none of them."""
    judged = {each.hosts for each in results if each.status not in (Status.UNKNOWN, Status.CRASH)}
    words = [each.problem.of_all if each.problem else "" for each in results]
    for result, said in zip(results, words, strict=True):
        if not said or len(judged) < 2 or words.count(said) < len(judged):
            yield result
        elif result is results[words.index(said)] and result.problem:
            rest = [host for host in hosts if (host,) not in judged]
            said += f"; {fold(rest)} could not be looked at" if rest else ""
            yield replace(result, hosts=(), problem=replace(result.problem, summary=said))


def _inapplicable(check: Check, plan: JobPlan) -> str:
    if check.backends and plan.backend.value not in check.backends:
        wanted = " and ".join(sorted(backend.value for backend in check.backends))
        return f"only for {wanted} jobs"
    if check.vendor and plan.vendor not in (check.vendor, None):
        return f"only for jobs on {check.vendor.name} devices"
    return SEVERAL if check.several_hosts and not plan.several_hosts else ""


def _judge_host(check: Check, host: str, case: Inputs, found: Sequence[Problem]) -> Iterator[Result]:
    """`found` are the problems known before the check runs, or reported in its place."""
    arguments = []
    for need in check.needs:
        value = _value(need, host, case)
        if isinstance(value, MissingFact):
            yield from _failed(check, (host,), found, case) if found else (_without(check, (host,), value),)
            return
        arguments.append(value)
    yield from _run(check, (host,), arguments, case, found)


def _without(check: Check, hosts: tuple[str, ...], missing: MissingFact) -> Result:
    """Skip if the thing to be examined does not exist; unknown if it exists but could not be read."""
    if missing.absent:
        return Result(check.id, hosts, Status.SKIP, missing.reason)
    status = Status.CRASH if isinstance(missing, ParserCrash) else Status.UNKNOWN
    return Result(check.id, hosts, status, f"{missing.fact}: {missing.reason}")


def _value(need: Need[Any], host: str, case: Inputs) -> Any:
    if isinstance(need, OptionalNeed):
        value = _value(need.need, host, case)
        return None if isinstance(value, MissingFact) else value
    if isinstance(need, Fact):
        return case.facts.get(host, need)
    if need is EXPECT:
        return case.expect.get(host, case.common)
    if need is HERE:
        return Here(host, case.plan.head.value == host)
    if need is RANKS:
        return case.plan.ranks_on(host)
    assert isinstance(need, RunValue)
    return case.givens[need.name]


def _judge_cluster(check: Check, case: Inputs) -> Iterator[Result]:
    of_hosts = (isinstance(n, Fact) or (isinstance(n, RunValue) and n.of_hosts) for n in check.needs)
    if not case.facts.hosts and any(of_hosts):
        yield Result(check.id, (), Status.UNKNOWN, "no host answered")
        return
    arguments = []
    seen: set[str] = set(case.facts.hosts)
    lacking: dict[MissingFact, list[str]] = {}
    for need, fact in zip(check.needs, check.wanted, strict=True):
        if not isinstance(fact, Fact):
            assert isinstance(fact, RunValue)
            value = case.common if fact is EXPECT else case.givens[fact.name]
            if isinstance(value, MissingFact) and need is fact:
                yield _without(check, case.facts.hosts, value)
                return
            arguments.append(None if isinstance(value, MissingFact) else value)
            continue
        arguments.append(case.facts.all(fact))
        for host in case.facts.hosts if need is fact else ():
            value = case.facts.get(host, fact)
            if isinstance(value, MissingFact):
                seen.discard(host)
                lacking.setdefault(value, []).append(host)
    for missing, hosts in lacking.items():
        yield _without(check, tuple(hosts), missing)
    unknown = [missing for missing in lacking if not missing.absent]
    if check.several_hosts and len(seen) < 2 and any(isinstance(need, Fact) for need in check.needs):
        if unknown:
            yield Result(check.id, tuple(seen), Status.UNKNOWN, "no two hosts could be compared")
        else:
            yield Result(check.id, tuple(seen), Status.SKIP, "there are no two hosts to compare")
    elif seen or not lacking:
        yield from _run(check, tuple(host for host in case.facts.hosts if host in seen), arguments, case)


def _run(
    check: Check, hosts: tuple[str, ...], arguments: list[Any], case: Inputs, found: Sequence[Problem] = ()
) -> Iterator[Result]:
    """One call of a check; problems that it found before it gave up or broke are kept."""
    problems = list(found)
    try:
        for problem in check.run(*arguments):
            if not isinstance(problem, Problem):
                raise TypeError(f"it yielded {problem!r:.80} instead of a Problem")
            problems.append(problem)
    except Skip as skip:
        yield Result(check.id, hosts, Status.SKIP, str(skip))
        return
    except Undecided as undecided:
        doubtful = undecided.hosts or hosts
        yield Result(check.id, doubtful, Status.UNKNOWN, str(undecided), essential=undecided.essential)
        unsure = set(doubtful)
        sure = tuple(host for host in hosts if host not in unsure)
        if sure and not problems:
            yield Result(check.id, sure, Status.PASS)
    except (Exception, SystemExit) as error:  # a broken check becomes a line in the report
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({where.filename.rpartition('/')[2]}:{where.lineno})"
        yield Result(check.id, hosts, Status.CRASH, reason)
    else:
        if not problems:
            yield Result(check.id, hosts, Status.PASS)
    yield from _failed(check, hosts, problems, case)


def _failed(
    check: Check, hosts: tuple[str, ...], problems: Sequence[Problem], case: Inputs
) -> Iterator[Result]:
    for problem in problems:
        culprits = problem.hosts if check.scope is Scope.CLUSTER else hosts
        severity = case.severities.get(check.id) or problem.severity or check.severity
        if case.certain_only and problem.confidence is not Confidence.CERTAIN:
            severity = Severity.WARN
        yield Result(check.id, culprits, Status(severity.value), problem=problem)
