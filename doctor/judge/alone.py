"""Hosts judged one by one, for whatever job may come, as in exam `node`: no job has a say.

What only a comparison with the other hosts shows is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from doctor.api import EXPECTS, NEEDED, PLAN, Check, Fact, OptionalNeed, RunValue
from doctor.facts.run import CLOCKS
from doctor.facts.system import VIEW
from doctor.job.plan import draft, settle
from doctor.job.wishes import JobWishes
from doctor.judge.engine import Inputs, judge
from doctor.judge.playbook import Exam, matches
from doctor.judge.reading import Reading
from doctor.model import Result, Scope, Severity, Status, View


def without_job(reading: Reading) -> Reading:
    """The reading, with a plan that no file, flag, scheduler or running job had a say in."""
    wishes = JobWishes(expect=reading.recording.wishes.expect)
    recording = replace(reading.recording, wishes=wishes, smoke=(), smoke_wanted=False)
    sights = {host: replace(sight, env={}, built_for=None) for host, sight in reading.sights.items()}
    plan = replace(settle(draft(recording.hosts, wishes), sights), of_node=True)
    return Reading(recording, reading.facts, sights, plan, None)


def judge_alone(checks: Sequence[Check], case: Inputs, reading: Reading, exam: Exam) -> list[Result]:
    """Each host by itself, then what hosts only show together."""
    local = [check for check in checks if _reads_hosts(check) and not check.several_hosts]
    of_host = {check.id: Severity.WARN for check in local if matches(check.id, exam.of_host)}
    results: list[Result] = []
    for host in case.facts.hosts:
        inside = case.facts.get(host, VIEW) == View.CONTAINER
        severities = {**case.severities, **(of_host if inside else {})}
        results += judge(local, replace(_of(host, case, reading), severities=severities))
    failed = {
        (result.check, host) for result in results if result.status is Status.FAIL for host in result.hosts
    }
    return [*results, *_together(checks, case, failed)]


def _of(host: str, case: Inputs, reading: Reading) -> Inputs:
    (asked,) = (each for each in reading.recording.hosts if each.name == host)
    sight = reading.sights[host]
    plan = replace(settle(draft((asked,), reading.recording.wishes), {host: sight}), of_node=True)
    givens = {
        **case.givens,
        PLAN.name: plan,
        EXPECTS.name: {host: case.expect[host]},
        NEEDED.name: 1,
        CLOCKS.name: {host: case.givens[CLOCKS.name].get(host)},
    }
    return replace(case, plan=plan, facts=case.facts.of(host), givens=givens, certain_only=True)


def _together(checks: Sequence[Check], case: Inputs, failed: set[tuple[str, str]]) -> Iterator[Result]:
    """The results about hosts that are only known together: unreached ones, and what comparing them shows."""
    yield from judge([check for check in checks if not _reads_hosts(check)], case)
    if len(case.facts.hosts) < 2:
        return
    compared = [check for check in checks if _reads_hosts(check) and check.scope is Scope.CLUSTER]
    warned = replace(case, severities={check.id: Severity.WARN for check in compared})
    only_compare = {check.id for check in compared if check.several_hosts}
    for result in judge(compared, warned):
        new = tuple(host for host in result.hosts if (result.check, host) not in failed)
        if result.check in only_compare:
            yield result
        elif result.status is Status.WARN and new:
            yield replace(result, hosts=new)


def _reads_hosts(check: Check) -> bool:
    """Whether it needs what a host reported about itself."""
    needs = [need.need if isinstance(need, OptionalNeed) else need for need in check.needs]
    return any(isinstance(need, Fact) or (isinstance(need, RunValue) and need is CLOCKS) for need in needs)
