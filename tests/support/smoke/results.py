"""Smoke results for tests: `healthy(plan)` is a whole run in which all is well; the rest changes it.

The ranks report what the schedule and the references require, so that the judges find nothing. For runs
that ended early see tests/support/smoke/frozen.py.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec

from doctor.smoke.events import (
    Audit,
    BatchHashes,
    Collectives,
    InitialParameters,
    RankStart,
    Solo,
    TrainStep,
    Transfer,
)
from doctor.smoke.judge.deviation import due_bytes, entries_of
from doctor.smoke.onhost.bandwidthplan import lots
from doctor.smoke.onhost.corpus import FLOOR, reference_batch, reference_init
from doctor.smoke.onhost.random_bytes import hashed, words
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.streamplan import reference_fingerprint, reference_streams
from doctor.smoke.onhost.trainplan import audited, places_again, replicas_again, shown
from doctor.smoke.result import (
    ON_CPU,
    Exit,
    HostOutcome,
    RankOutcome,
    RunEnd,
    Sample,
    SmokePlan,
    SmokeResult,
    SmokeSeat,
)

RankChange = Callable[[RankOutcome], RankOutcome]


def plan_of(
    hosts: int = 4,
    each: int = 1,
    *,
    tp: int = 1,
    cells: int = 1,
    steps: int = 30,
    seed: int = 20,
    backend: Any = "gloo",
) -> SmokePlan:
    """Hosts n1, n2, …, with `each` ranks; neighbouring hosts share a cell, and all cells have the same number
    of hosts.
    """
    names = [f"n{number + 1}" for number in range(hosts)]
    size = hosts * each // cells
    return SmokePlan(
        backend=backend,
        hosts=tuple(names),
        seats=tuple(
            SmokeSeat(
                rank=rank,
                host=names[rank // each],
                local=rank % each,
                device=None if backend in ON_CPU else rank % each,
                cell=rank // size,
                place=rank % size,
            )
            for rank in range(hosts * each)
        ),
        tp=tp,
        cells=tuple(tuple(range(cell * size, (cell + 1) * size)) for cell in range(cells)),
        steps=steps,
        seed=seed,
        head=names[0],
        addresses={name: f"10.0.0.{number + 1}" for number, name in enumerate(names)},
    )


def healthy(plan: SmokePlan) -> SmokeResult:
    """All ranks did everything, and all results were right."""
    seconds = {"start": 0.9, "join": 0.1, "collectives": 0.4, "train": 1.0, "audit": 0.1}
    return SmokeResult(
        plan=plan,
        end=RunEnd("done", 3.0),
        ranks=tuple(_rank(plan, seat) for seat in plan.seats),
        hosts=tuple(
            HostOutcome(host, python="/usr/bin/python3", imported=1.0, cores=64, load=0.5, reverse_dns=0.001)
            for host in plan.hosts
        ),
        seconds=seconds,
        total=3.5,
    )


def _rank(plan: SmokePlan, seat: SmokeSeat) -> RankOutcome:
    return replace(_whole(plan.shape(seat.cell), seat.place), rank=seat.rank, pid=4000 + seat.rank)


@cache
def _whole(shape: CellShape, place: int) -> RankOutcome:
    entries = entries_of(shape, place)
    return RankOutcome(
        rank=0,
        phase="done",
        state="S",
        cpu=0.0,
        exit=Exit(0, None, 3.0),
        started=RankStart(
            {"python": "3.11.2", "torch": "2.13.0"},
            reference_fingerprint(),
            ("5c0ffee5c0ffee00",) * 3,
            "x86_64",
        ),
        collectives=Collectives(sum(entry.phase == "collectives" for entry in entries)),
        init=InitialParameters(reference_init(shape, place)),
        batches=tuple(batch_at(shape, step, place) for step in range(shape.steps) if shown(shape, step)),
        steps=tuple(step_at(shape, step, place) for step in range(shape.steps)),
        audits=tuple(audit_at(shape, step, place) for step in range(shape.steps) if audited(shape, step)),
        solo=Solo(tuple(mark("solo", batch) for batch in places_again(shape, place))),
        pairs=tuple(
            Transfer(meeting.peer, meeting.round, 120_000_000, 0.1, 0.0001, meeting.stage, meeting.way)
            for lot in lots(shape, place)
            for meeting in lot
        ),
        seconds={"start": 0.9, "join": 0.1, "collectives": 0.4, "train": 1.0, "audit": 0.1},
        done=True,
        samples=(_last_page(shape, place),) * 2,
    )


def _last_page(shape: CellShape, place: int) -> Sample:
    entries = entries_of(shape, place)
    page = Sample(2 * len(entries) + 40, "done", 0, len(entries), "none", 0, "none", "none", 0, False, 0.1)
    if not entries:
        return page
    last, call = entries[-1], entries[-1].call
    return replace(page, group=call.group, seq=last.seq, op=call.op, dtype=call.dtype, bytes=call.bytes)


def mark(*what: object) -> str:
    """A hash that represents something computed on the hosts."""
    return hashed(" ".join(str(each) for each in what).encode())


def batch_at(shape: CellShape, step: int, place: int) -> BatchHashes:
    return BatchHashes(step, *reference_batch(shape, step, place), reference_streams(shape, step, place))


def step_at(shape: CellShape, step: int, place: int) -> TrainStep:
    dp, part = shape.dp_of(place), shape.part_of(place)
    owns = [shards(shape, step, each, part) for each in range(shape.dp)]
    return TrainStep(
        step,
        loss=loss_at(shape, step, dp),
        finite=True,
        params=mark("params", shape.seed, step, part),
        own=(math.fsum(owns[dp]), 12.0) if shape.zero or shape.ps else projection(shape, step, dp, part),
        reduced=math.fsum(
            own[dp] if shape.zero or shape.ps else projection(shape, step, each, part)[0]
            for each, own in enumerate(owns)
        ),
        shards=owns[dp],
        cpu=0.010 * noise(shape, "cpu", step, place),
        compute=0.0105 * noise(shape, "cpu", step, place),
        wait=0.002,
        sizes=dict(due_bytes(shape, place)[step]),
        held=held_at(shape, step, place),
    )


def held_at(shape: CellShape, step: int, place: int) -> dict[str, tuple[int, float, float, float]]:
    """All members hold the same bits, and the sum of what they gave; what is sent arrives."""
    found = {}
    for group in shape.groups:
        members = shape.members(group, place)
        if len(members) > 1 and group not in ("world", "cp", "ep"):
            (bits,) = words(f"{shape.seed} held {group} {members} {step}", 1)
            found[group] = (bits, 1.5, 1.5 * len(members), 3.0)
    for peer in shape.members("pp", place) if shape.stages > 1 else ():
        for name, ends in ((f"to {peer}", (place, peer)), (f"from {peer}", (peer, place))):
            found[name] = (words(f"{shape.seed} sent {ends} {step}", 1)[0], 0.0, 0.0, 0.0)
    return found


def loss_at(shape: CellShape, step: int, dp: int) -> float:
    """A loss that falls like a real one: 4.64 at first, 0.88 after 30 steps."""
    return (FLOOR + 3.9 * math.exp(-step / 8)) * noise(shape, "loss", step, dp)


def projection(shape: CellShape, step: int, dp: int, part: int) -> tuple[float, float]:
    return 0.5 * noise(shape, "projection", step, dp, part) - 0.3, 12.0


def shards(shape: CellShape, step: int, dp: int, part: int) -> tuple[float, ...]:
    """The projections of the shards of a replica's gradient, if replicas sum one each, or a server all."""
    held = shape.dp if shape.zero else shape.ps
    some = [0.5 * noise(shape, "shard", step, dp, part, number) - 0.3 for number in range(held)]
    return (*some, *[0.0] * (shape.dp - held)) if held else ()


def noise(shape: CellShape, *what: object) -> float:
    """Values around 1, within two percent, the same in every run."""
    key = " ".join(str(each) for each in (shape.seed, *what))
    return 0.98 + 0.04 * words(key, 1)[0] / 2**32


def audit_at(shape: CellShape, step: int, place: int) -> Audit:
    dp, part = shape.dp_of(place), shape.part_of(place)
    votes = tuple(mark("gradient", shape.seed, step, batch, part) for batch in replicas_again(shape, dp))
    return Audit(step, votes[0], votes)


def with_end(result: SmokeResult, kind: Any, seconds: float = 5.0, **changes: Any) -> SmokeResult:
    return replace(result, end=RunEnd(kind, seconds, **changes))


def with_rank(
    result: SmokeResult, rank: int, change: RankChange | None = None, **changes: Any
) -> SmokeResult:
    """One rank changed, by a function or field by field."""
    ranks = list(result.ranks)
    ranks[rank] = replace((change or (lambda seen: seen))(ranks[rank]), **changes)
    return replace(result, ranks=tuple(ranks))


def with_host(result: SmokeResult, host: str, **changes: Any) -> SmokeResult:
    hosts = [replace(seen, **changes) if seen.host == host else seen for seen in result.hosts]
    return replace(result, hosts=tuple(hosts))


def with_steps(
    result: SmokeResult,
    rank: int,
    change: Callable[[TrainStep], TrainStep],
    first: int = 0,
    last: int = 10**9,
) -> SmokeResult:
    """The training steps `first` to `last` of one rank changed."""
    seen = result.ranks[rank].steps
    steps = tuple(change(step) if first <= step.step <= last else step for step in seen)
    return with_rank(result, rank, steps=steps)


def with_batches(
    result: SmokeResult, rank: int, change: Callable[[BatchHashes], BatchHashes], first: int = 0
) -> SmokeResult:
    """The batch hashes of one rank changed, from step `first` on."""
    seen = result.ranks[rank].batches
    batches = tuple(change(batch) if batch.step >= first else batch for batch in seen)
    return with_rank(result, rank, batches=batches)


def changed(event: Any, **changes: Any) -> Any:
    """A copy of an event with other fields."""
    return msgspec.structs.replace(event, **changes)
