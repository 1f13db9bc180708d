"""Smoke results of runs that ended early: the ranks' collectives are simulated, including the faults.

`frozen(plan, faults)` lets every rank of the sick cell enter its collectives in turn until none can go on,
as real ranks do: a collective ends when all members of its group have entered it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from doctor.smoke.events import Error, Phase
from doctor.smoke.judge.deviation import entries_of
from doctor.smoke.onhost.page import PHASES, about
from doctor.smoke.onhost.shape import CellShape, CollectiveCall, ScheduledCall
from doctor.smoke.result import Exit, RankOutcome, Sample, SmokePlan, SmokeResult
from tests.support.smoke.results import changed, healthy, with_end, with_rank

Key = tuple[tuple[int, ...], int]
"""One collective: its members and its number among them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a rank does instead of its schedule.

    It never enters the call after its first `halt` calls. `look`: the controller takes a sample when the rank
    has entered this many, and everything stops there.
    """

    halt: int | None = None
    edit: Callable[[list[ScheduledCall]], list[ScheduledCall]] = list
    phase: Phase | None = None
    """It never leaves this phase, one of those before the first collective."""
    look: int | None = None


def stuck(before: int) -> Fault:
    """Never enters the collective of this position."""
    return Fault(halt=before - 1)


def behind(phase: Phase) -> Fault:
    return Fault(halt=0, phase=phase)


def skipped(position: int) -> Fault:
    return Fault(edit=lambda entries: entries[: position - 1] + entries[position:])


def extra(position: int) -> Fault:
    return Fault(edit=lambda entries: entries[:position] + entries[position - 1 :])


def swapped(position: int) -> Fault:
    """Enters this collective after the one that follows it; seen at once."""

    def edit(entries: list[ScheduledCall]) -> list[ScheduledCall]:
        one, two = entries[position - 1 : position + 1]
        return [*entries[: position - 1], two, one, *entries[position + 1 :]]

    return Fault(edit=edit, look=position)


def altered(position: int, **changes: Any) -> Fault:
    """Another size, dtype or operation, once; seen at once."""

    def edit(entries: list[ScheduledCall]) -> list[ScheduledCall]:
        entry = entries[position - 1]
        call = entry.call._replace(**changes)
        return [*entries[: position - 1], entry._replace(call=call), *entries[position:]]

    return Fault(edit=edit, look=position)


@dataclass(slots=True)
class _Runner:
    """One simulated rank: its calls, how many it has entered, and whether it is inside the last one."""

    place: int
    entries: list[ScheduledCall]
    halt: int
    keys: list[Key] = field(default_factory=list)
    inside: bool = False
    met: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def enter(self, shape: CellShape, call: CollectiveCall) -> Key:
        members = call.members or tuple(shape.members(call.group, self.place))
        self.keys.append((members, self.met[members]))
        self.met[members] += 1
        return self.keys[-1]


def play(
    shape: CellShape,
    faults: Mapping[int, Fault],
    blocked: Callable[[Key, ScheduledCall], bool],
    leaving: Collection[int] = (),
) -> list[_Runner]:
    """Run all ranks until none can go on. A `blocked` collective ends only for ranks that are `leaving`."""
    runners = []
    for place in range(shape.world):
        fault = faults.get(place, Fault())
        entries = fault.edit(list(entries_of(shape, place)))
        runners.append(_Runner(place, entries, len(entries) if fault.halt is None else fault.halt))
    entered: dict[Key, set[int]] = {}
    going = True
    while going:
        going = False
        for runner in runners:
            if runner.inside:
                members = set(runner.keys[-1][0])
                entry = runner.entries[len(runner.keys) - 1]
                ends = runner.place in leaving or not blocked(runner.keys[-1], entry)
                if entered[runner.keys[-1]] == members and ends:
                    runner.inside, going = False, True
            elif len(runner.keys) < min(runner.halt, len(runner.entries)):
                key = runner.enter(shape, runner.entries[len(runner.keys)].call)
                entered.setdefault(key, set()).add(runner.place)
                runner.inside, going = True, True
                if len(runner.keys) == faults.get(runner.place, Fault()).look:
                    return runners
    return runners


def so_far(entries: Iterable[ScheduledCall]) -> int:
    """What a page holds of the roots, peers and tags of these calls."""
    return sum(about(entry.call.end, entry.call.tag) for entry in entries)


def page_of(runner: _Runner, fault: Fault) -> Sample:
    """The rank's page at its current position."""
    position = len(runner.keys)
    seq: dict[str, int] = {}
    for entry in runner.entries[:position]:
        seq[entry.call.group] = seq.get(entry.call.group, 0) + 1
    last = runner.entries[position - 1] if position else None
    here = last if runner.inside else next(iter(runner.entries[position:]), None)
    call = last.call if last else None
    return Sample(
        version=2 * (2 * position - runner.inside) + 100,
        phase=fault.phase or (here.phase if here else "done"),  # type: ignore[arg-type]
        step=here.call.step if here else 0,
        position=position,
        group=call.group if call else "none",
        seq=seq[call.group] if call else 0,
        op=call.op if call else "none",
        dtype=call.dtype if call else "none",
        bytes=call.bytes if call else 0,
        inside=runner.inside,
        still=1.3,
        end=call.end if call else -1,
        tag=call.tag if call else 0,
        about=so_far(runner.entries[:position]),
    )


def frozen(
    plan: SmokePlan,
    faults: Mapping[int, Fault],
    *,
    cell: int = 0,
    kind: str = "still",
    blocked: Callable[[Key, ScheduledCall], bool] = lambda *_: False,
    leaving: Collection[int] = (),
) -> SmokeResult:
    """A run that ended because of these faults; keys are ranks of the whole run, all of them in `cell`."""
    places = {plan.seat(rank).place: fault for rank, fault in faults.items()}
    result = healthy(plan)
    for number, ranks in enumerate(plan.cells):
        if number != cell:
            for rank in ranks:
                result = with_rank(result, rank, lambda seen: _moving(seen, plan), state="R", cpu=0.2)
            continue
        for runner in play(plan.shape(cell), places, blocked, leaving):
            page = page_of(runner, places.get(runner.place, Fault()))
            rank = ranks[runner.place]
            result = with_rank(result, rank, partial(_stopped, page=page, entries=runner.entries))
    return with_end(result, kind, cell=cell, limit=1.0)


_ORDER = {phase: number for number, phase in enumerate(PHASES)}


def entered_by(entries: Sequence[ScheduledCall], step: int) -> dict[str, int]:
    """What a rank that enters these has entered by the end of a training step."""
    last = (_ORDER["train"], step)
    return dict(Counter(e.call.group for e in entries if (_ORDER[e.phase], e.call.step) <= last))


def _stopped(seen: RankOutcome, page: Sample, entries: Sequence[ScheduledCall]) -> RankOutcome:
    """The rank with two samples of this page, of the collectives that it enters."""
    steps = [
        changed(step, entered=entered_by(entries, step.step))
        for step in seen.steps
        if _past(page, "train") or step.step < page.step
    ]
    if page.phase == "done":
        return replace(seen, samples=(page, page), steps=tuple(steps))
    batches = [batch for batch in seen.batches if _past(page, "train") or batch.step <= page.step]
    audits = [audit for audit in seen.audits if _past(page, "train") or audit.step < page.step]
    return replace(
        seen,
        phase=page.phase,
        samples=(replace(page, still=1.0), page),
        state="S",
        cpu=0.0,
        exit=None,
        started=seen.started if _past(page, "start") else None,
        collectives=seen.collectives if _past(page, "collectives") else None,
        init=seen.init if _past(page, "collectives") else None,
        batches=tuple(batches) if _past(page, "collectives") else (),
        steps=tuple(steps) if _past(page, "collectives") else (),
        audits=tuple(audits) if _past(page, "collectives") else (),
        solo=seen.solo if _past(page, "audit") else None,
        pairs=seen.pairs if _past(page, "bandwidth") else (),
        done=False,
    )


def _past(page: Sample, phase: str) -> bool:
    return PHASES.index(page.phase) > PHASES.index(phase)


def _moving(seen: RankOutcome, plan: SmokePlan) -> RankOutcome:
    """A rank of a healthy cell: in the middle of its run, sampled at two different collectives."""
    seat = plan.seat(seen.rank)
    entries = entries_of(plan.shape(seat.cell), seat.place)
    half = len(entries) // 2
    looks = [
        page_of(_Runner(seat.place, list(entries), 0, [((), 0)] * position, inside=True), Fault())
        for position in (half, half + 1)
    ]
    return replace(
        _stopped(seen, looks[1], entries),
        samples=tuple(replace(look, still=0.01) for look in looks),
        state="R",
    )


def died(
    result: SmokeResult,
    rank: int,
    *,
    code: int | None = None,
    signal: int | None = None,
    words: str = "",
    error: tuple[str, str] | None = None,
) -> SmokeResult:
    """The rank's process ended at its current position; the exit code of an error is 3."""
    told = Error(error[0], error[1], f"Traceback\n{error[0]}: {error[1]}") if error else None
    exit = Exit(3 if error else code, signal, 2.0, words)
    return with_rank(with_end(result, "exit", cell=result.plan.seat(rank).cell), rank, exit=exit, error=told)


def at(
    entries: Sequence[ScheduledCall], phase: str, group: str | None = None, step: int = 0, nth: int = 0
) -> int:
    """The position of the n-th such call of a schedule."""
    fitting = [
        entry.position
        for entry in entries
        if entry.phase == phase and entry.call.step == step and group in (None, entry.call.group)
    ]
    return fitting[nth]
