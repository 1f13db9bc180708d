"""Whether the injected faults were found: a run that misses one does not pass."""

from collections.abc import Iterator, Sequence

from doctor.model import Severity
from doctor.smoke.inject import KINDS
from doctor.smoke.judge.charge import WARNINGS, SmokeCharge, worded
from doctor.smoke.result import Injection, SmokeResult


def judge_injected(result: SmokeResult, charges: Sequence[SmokeCharge]) -> Iterator[SmokeCharge]:
    """A fault is not missed if the run ended before it, or if another fault ended the run."""
    whole = result.end.kind == "done"
    injected = [each for each in result.plan.injected if each.kind in KINDS]
    missed = [each for each in injected if not _is_found(result, each, charges)]
    if result.end.kind == "interrupted" or (not whole and len(missed) < len(injected)):
        return
    for each in missed:
        if whole or result.ranks[each.rank].disturbed is not None:
            kind = KINDS[each.kind]
            yield SmokeCharge(
                *worded("not found", kind=kind, injection=each, phase=kind.phase),
                step=each.step,
                severity=Severity.FAIL,
            )


def _is_found(result: SmokeResult, injection: Injection, charges: Sequence[SmokeCharge]) -> bool:
    """Whether the injection's own check reports it, or another check names the ranks that it struck."""
    kind, plan = KINDS[injection.kind], result.plan
    seat = plan.seat(injection.rank)
    struck = {injection.rank}
    if kind.reach != "rank":
        cell = plan.cells[seat.cell]
        shape = plan.shape(seat.cell)
        replica = shape.replica(shape.dp_of(seat.place))
        struck = {rank for place, rank in enumerate(cell) if kind.reach == "everybody" or place in replica}
    hosts = {plan.seat(rank).host for rank in struck}
    for charge in charges:
        if charge.check != kind.check and (charge.severity is Severity.WARN or charge.check in WARNINGS):
            continue
        named = not struck.isdisjoint(charge.ranks) or not hosts.isdisjoint(charge.hosts)
        nobody = not charge.ranks and not charge.hosts and charge.check == kind.check
        if named or (nobody and (not charge.victims or not struck.isdisjoint(charge.victims))):
            return True
    return False
