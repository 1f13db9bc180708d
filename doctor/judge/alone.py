"""Hosts judged one by one, for any job (exam `node`): what only a comparison shows is a warning."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from doctor.api import EXPECTS, NEEDED, PLAN, Check, Fact
from doctor.facts.amd.gpus import AMD_GPUS
from doctor.facts.nvidia.gpus import GPUS
from doctor.facts.run import CLOCKS
from doctor.facts.system import DEVICES, KERNEL, NAMEPLATE, VIEW
from doctor.job.plan import draft, settle
from doctor.job.wishes import JobWishes
from doctor.judge.engine import Facts, Inputs, judge
from doctor.judge.playbook import Exam, matches
from doctor.judge.reading import Reading
from doctor.model import Host, Result, Scope, Severity, Status, View


def without_job(reading: Reading) -> Reading:
    """Nothing had a say in its plan; a device that may only drive a screen needs no driver."""
    wishes = JobWishes(expect=reading.recording.wishes.expect)
    recording = replace(reading.recording, wishes=wishes, smoke=(), smoke_wanted=False)
    sights = {
        host: replace(
            sight,
            env={},
            built_for=None,
            plugged_in={v: count - sight.screens.get(v, 0) for v, count in sight.plugged_in.items()},
            screens={},
        )
        for host, sight in reading.sights.items()
    }
    plan = replace(settle(draft(recording.hosts, wishes), sights), of_node=True)
    return Reading(recording, reading.facts, sights, plan, ())


def judge_alone(checks: Sequence[Check], case: Inputs, reading: Reading, exam: Exam) -> list[Result]:
    """Each host by itself, then what hosts only show together."""
    local = [check for check in checks if _reads_hosts(check) and not check.several_hosts]
    of_host = {check.id: Severity.WARN for check in local if matches(check.id, exam.of_host)}
    known = {host.name: host for host in reading.recording.hosts}
    results: list[Result] = []
    for host in case.facts.hosts:
        severities = {**case.severities, **(of_host if case.facts.get(host, VIEW) == View.CONTAINER else {})}
        own = _of([known[host]], case, reading)
        results += judge(local, replace(own, severities=severities, certain_only=True))
    failed = {
        (result.check, host) for result in results if result.status is Status.FAIL for host in result.hosts
    }
    results += judge([check for check in checks if not _reads_hosts(check)], case)
    compared = [check for check in checks if _reads_hosts(check) and check.scope is Scope.CLUSTER]
    of_all = [check for check in compared if CLOCKS in check.needs]  # one time, whatever the hosts are
    results += _compared(of_all, case, failed)
    for kind in kinds(case.facts):
        together = _of([known[host] for host in kind], case, reading)
        results += _compared([check for check in compared if check not in of_all], together, failed)
    return results


def _of(hosts: Sequence[Host], case: Inputs, reading: Reading) -> Inputs:
    """The same case, as if only these hosts were examined."""
    names = [host.name for host in hosts]
    sights = {name: reading.sights[name] for name in names}
    plan = replace(settle(draft(tuple(hosts), reading.recording.wishes), sights), of_node=True)
    givens = {
        **case.givens,
        PLAN.name: plan,
        EXPECTS.name: {name: case.expect[name] for name in names},
        NEEDED.name: len(names),
        CLOCKS.name: {name: case.givens[CLOCKS.name].get(name) for name in names},
    }
    return replace(case, plan=plan, facts=case.facts.of(names), givens=givens)


def _compared(checks: Sequence[Check], case: Inputs, failed: set[tuple[str, str]]) -> Iterator[Result]:
    """What comparing these hosts shows: warnings about those on which the check has not failed already."""
    if len(case.facts.hosts) < 2:
        return
    only_compare = {check.id for check in checks if check.several_hosts}
    for result in judge(checks, replace(case, severities={check.id: Severity.WARN for check in checks})):
        new = tuple(host for host in result.hosts if (result.check, host) not in failed)
        if result.check in only_compare:
            yield result
        elif result.status is Status.WARN and new:
            yield replace(result, hosts=new)


ODD = 0.1
"""A smaller part of the hosts with the same hardware are odd ones among them, not hosts of another kind."""


def kinds(facts: Facts) -> Iterator[list[str]]:
    """Of the same hardware, devices and system, and the odd ones among them; none without its like."""
    alike: dict[Hashable, dict[Hashable, list[str]]] = {}
    bodies = {host: _body(host, facts) for host in facts.hosts}
    with_devices = {server: (server, product, names) for server, product, names in bodies.values() if product}
    for host, body in bodies.items():
        server, product, _ = body
        hardware = body if product or not server else with_devices.get(server, body)
        system = getattr(facts.get(host, KERNEL), "distribution", "")
        alike.setdefault(hardware, {}).setdefault((_count(host, facts), system), []).append(host)
    for variants in alike.values():
        first, *others = sorted(variants.values(), key=len, reverse=True)
        least = max(2, ODD * sum(map(len, variants.values())))
        if len(first) > 1:
            yield [*first, *(host for few in others if len(few) < least for host in few)]
        yield from (many for many in others if len(many) >= least)


def _body(host: str, facts: Facts) -> tuple[str, str, frozenset[str]]:
    """The model of the server, its product if it has devices, and the names of its GPUs; empty if unknown."""
    plate, found = facts.known(host, NAMEPLATE), facts.known(host, DEVICES)
    listed = (gpu.name for fact in (GPUS, AMD_GPUS) for gpu in getattr(facts.get(host, fact), "listed", ()))
    server = f"{plate.maker} {plate.model}".strip() if plate and not plate.virtual else ""
    bare = not found or not any(own.numbers or own.on_bus for own in found.found.values())
    return server, "" if bare else found.product, frozenset(listed)


def _count(host: str, facts: Facts) -> int:
    found = facts.known(host, DEVICES)
    return sum(len(own.numbers) for own in found.found.values()) if found else 0


def _reads_hosts(check: Check) -> bool:
    """Whether it needs what a host reported about itself."""
    return any(isinstance(need, Fact) or need is CLOCKS for need in check.wanted)
