"""What the charges of the smoke runs mean for one check: its problems, or why it cannot judge."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from doctor.api import UNDECIDED, Confidence, Place, Problem, Skip, Undecided, fold, grouped
from doctor.facts.smoke import JudgedRun, SmokeRounds
from doctor.smoke.judge import links
from doctor.smoke.judge.charge import SmokeCharge, ranks_text
from doctor.smoke.judge.speed import perhaps_slow, queued
from doctor.smoke.onhost.collectiveplan import LACKING
from doctor.smoke.result import SmokePlan, SmokeResult, SmokeSeat
from doctor.text.hostprogram import sections
from doctor.text.interpreter import PLAIN

QUEUED = 0.1
"""If a rank waited for a processor for at least this share of its time, the waits explain why it was slow."""


def accused(seen: SmokeRounds, check: str, decided_by: str) -> Iterator[Problem]:
    """A problem for each charge of this check; then Undecided for hosts for which no run could decide it.

    These include hosts that another check names: they were left out of the repeated run.

    `decided_by` is the phase that a run must have passed to decide the check; "done" means the whole run.
    """
    seen_charges: set[object] = set()
    for run in seen.runs:
        for charge in run.charges:
            if charge.check == check and (key := _same(charge, run.plan)) not in seen_charges:
                seen_charges.add(key)
                yield problem(charge, run.result)
    left_out = seen.left_out.items()
    reasons = grouped((f"left out of the smoke run: {reason}", host) for host, reason in left_out)
    for host in seen.hosts:
        runs = [run for run in seen.runs if host in run.plan.hosts]
        if not any(run.got_past(host, decided_by) for run in runs) and not _blames_host(seen, check, host):
            reasons.setdefault(runs[-1].ending(host), []).append(host)
    if not seen.runs:
        raise Undecided("no host took part in the smoke run")
    if reasons:
        hosts = tuple(host for group in reasons.values() for host in group)
        texts = [f"{reason} ({fold(group)})" for reason, group in reasons.items()]
        raise Undecided("; ".join(texts) if len(texts) > 1 else next(iter(reasons)), hosts)


def together(plan: SmokePlan) -> int:
    """The number of hosts in the largest cell: transfers are compared inside cells."""
    return max((len({plan.seat(rank).host for rank in cell}) for cell in plan.cells), default=0)


_SIZES: Mapping[str, Callable[[SmokePlan], int]] = {
    "hosts": lambda plan: len(plan.hosts),
    "ranks": lambda plan: len(plan.seats),
    "stage": lambda plan: len(plan.seats) * plan.tp // plan.parts,
    "replicas": lambda plan: max(len(cell) // plan.parts for cell in plan.cells),
    "together": together,
    "steps": lambda plan: plan.steps,
}
_SAID = sections(__file__, "smoke.txt")
_TOO_FEW, _SKIPPED = _SAID["too few"], _SAID["skipped"]
"""What a comparison needs enough of: how it is counted, and the reason if there is too little; others."""


def at_least(seen: SmokeRounds, check: str, decided_by: str, **least: int) -> None:
    """Skip a check that compares, if there is too little to compare and nothing was charged anyway.

    `least` uses the names of `_SIZES`. Only runs that decided the check count: if a first run of many hosts
    broke off, it proves nothing for a second run of few.
    """
    plans = [run.plan for run in seen.runs if any(run.got_past(host, decided_by) for host in run.plan.hosts)]
    for name, number in least.items() if plans and not has_charge(seen, check) else ():
        if (most := max(map(_SIZES[name], plans))) < number:
            raise Skip(_TOO_FEW[name].format(number, most, "" if most == 1 else "s"))


def not_made(run: JudgedRun) -> tuple[str, ...]:
    """The collectives that were not tried, because the backend does not have them."""
    return LACKING.get(run.plan.backend, ())


def steady(seen: SmokeRounds) -> None:
    """If repeated transfers differed too much, or if what carried them is slower than a network."""
    check = "smoke-slow-link"
    measured = [run.result for run in seen.runs if any(run.got_past(h, "bandwidth") for h in run.plan.hosts)]
    if has_charge(seen, check):
        return
    if measured and not any(any(links.measured_cells(result)) for result in measured):
        raise Skip("too few hosts exchanged data to compare their links")
    if measured and all(result.plan.backend in links.SLOWER_THAN_NETWORKS for result in measured):
        cells = (cell for result in measured for cell in links.measured_cells(result))
        most = max(max(stage.rates.values()) for cell in cells for stage in cell.stages)
        raise Skip(_SKIPPED["slow"].format(measured[0].plan.backend, most / 1e6))
    if slow := {host for result in measured for host in links.perhaps_slow_hosts(result)}:
        raise Skip(_SKIPPED["hosts"].format(fold(slow)))
    if measured and all(map(links.too_noisy, measured)):
        raise Skip(_SKIPPED["noisy"])
    if ways := [way for result in measured for way in links.perhaps_slow_ways(result)]:
        raise Skip(_SKIPPED["ways"].format(*ways[0]))


def even(seen: SmokeRounds) -> None:
    """Skip the comparison of ranks if one took longer, but in steps that varied too much to be sure."""
    if has_charge(seen, "smoke-straggler") or has_charge(seen, "smoke-contention"):
        return
    for run in seen.runs:
        if any(run.got_past(host, "train") for host in run.plan.hosts) and (slow := perhaps_slow(run.result)):
            raise Skip(f"{ranks_text(slow)} took longer than the others, but {_why_unsure(run.result, slow)}")


def _why_unsure(result: SmokeResult, slow: Sequence[int]) -> str:
    """Why this is not held against these ranks."""
    shares = [queued(result, rank) for rank in slow]
    if min(shares) >= QUEUED:
        hosts = fold({result.plan.seat(rank).host for rank in slow})
        return _SKIPPED["queued"].format(hosts, 100 * max(shares))
    return f"in steps that differed too much from each other to be sure{_busy(result, slow)}"


def _busy(result: SmokeResult, ranks: Iterable[int]) -> str:
    """A remark if these ranks shared their processors with other work."""
    loads = {
        host: f"a load of {seen.load:.0f} on {seen.cores} core{'s' if seen.cores > 1 else ''}"
        for host in dict.fromkeys(result.plan.seat(rank).host for rank in ranks)
        if (seen := result.host(host)) and seen.load > seen.cores > 0
    }
    if not loads:
        return ""
    worst = next(iter(loads.values())) if len(set(loads.values())) == 1 else "more load than cores"
    return f"; {fold(loads)} had {worst} when the run began"


def has_charge(seen: SmokeRounds, check: str) -> bool:
    return any(charge.check == check for run in seen.runs for charge in run.charges)


def _blames_host(seen: SmokeRounds, check: str, host: str) -> bool:
    """Whether this check names the host as at fault: then it is decided, however far the run got."""
    return any(
        host in charge.culprit_hosts(run.plan)
        for run in seen.runs
        for charge in run.charges
        if charge.check == check and charge.is_fault
    )


def _same(charge: SmokeCharge, plan: SmokePlan) -> object:
    """A key that is equal for the same charge in a repeated run, whose ranks have other numbers."""
    seats = sorted((plan.seat(rank).host, plan.seat(rank).local) for rank in charge.ranks)
    return (charge.kind, tuple(seats), tuple(sorted(charge.hosts)), charge.peer)


def problem(charge: SmokeCharge, result: SmokeResult) -> Problem:
    """The charge with its culprits: hosts, ranks and devices."""
    plan = result.plan
    hosts = charge.culprit_hosts(plan)
    summary = charge.summary
    if charge.undecided and not summary.endswith(UNDECIDED):
        summary = summary.rstrip(".") + UNDECIDED
    return Problem(
        summary,
        expected=charge.expected,
        actual=charge.actual,
        evidence=charge.evidence,
        subject=_subject(charge, plan),
        hosts=hosts,
        where=_places(charge, plan, hosts),
        severity=charge.severity,
        confidence=Confidence.SUSPECT if charge.undecided else charge.confidence,
        remedy=charge.remedy,
        values=_values(result, hosts),
        commands=charge.commands,
    )


def _subject(charge: SmokeCharge, plan: SmokePlan) -> str | None:
    if charge.peer and len(charge.hosts) == 1:
        return f"{charge.hosts[0]} <-> {charge.peer}"
    if not charge.ranks:
        return None
    ranks = ranks_text(charge.ranks)
    devices = sorted({d for rank in charge.ranks if (d := plan.seat(rank).device) is not None})
    if not devices or len(charge.culprit_hosts(plan)) > 1:
        return ranks
    return f"{ranks} (device{'s' if len(devices) > 1 else ''} {', '.join(map(str, devices))})"


def _places(charge: SmokeCharge, plan: SmokePlan, hosts: tuple[str, ...]) -> tuple[Place, ...]:
    """The culprits. If nobody is named: the hosts that show it, which a common cause would have to cover."""
    seats = [plan.seat(rank) for rank in dict.fromkeys(charge.ranks)]
    seated = {seat.host for seat in seats}
    places = [
        Place(host=seat.host, rank=seat.rank, device=seat.device, peer=_peer(charge, seat.host, hosts))
        for seat in seats
    ]
    places += [
        Place(host=host, peer=_peer(charge, host, hosts)) for host in charge.hosts if host not in seated
    ]
    if places:
        return tuple(places)
    struck: list[SmokeSeat] = [plan.seat(rank) for rank in charge.victims] or list(plan.seats)
    return tuple(Place(host=host) for host in dict.fromkeys(seat.host for seat in struck))


def _peer(charge: SmokeCharge, host: str, hosts: tuple[str, ...]) -> str | None:
    """The other end of a link. Two suspects are each other's peers: a cause at one clears the other."""
    if charge.peer or not charge.undecided or len(hosts) != 2:
        return charge.peer
    return hosts[1] if host == hosts[0] else hosts[0]


def _values(result: SmokeResult, hosts: tuple[str, ...]) -> dict[str, str | tuple[str, ...]]:
    """The culprits, folded and one by one, all participants, and the interpreter that was used."""
    pythons = {seen.host: seen.to_type for seen in result.hosts if seen.asked or seen.python}
    python = next((pythons[host] for host in hosts if host in pythons), next(iter(pythons.values()), PLAIN))
    values: dict[str, str | tuple[str, ...]] = {"cluster": fold(result.plan.hosts), "python": python}
    if hosts:
        values |= {"hosts": fold(hosts), "host": hosts}
    return values
