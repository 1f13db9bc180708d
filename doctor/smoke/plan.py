"""Which hosts take part in a smoke run and how their ranks are grouped. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.errors import UsageError
from doctor.job.plan import JobPlan
from doctor.model import Backend
from doctor.smoke.inject import parse_injection
from doctor.smoke.result import SmokePlan, SmokeSeat

CELL_RANKS = 16
"""About this many ranks train together; a larger cluster runs several such cells at the same time."""
STEPS = 30
MOST_STEPS = 1000
SEED = 20
TENSOR_PARALLEL = (1, 2, 4)
"""What the model's four heads can be split by."""


@dataclass(frozen=True, slots=True)
class SmokeWishes:
    """What the person asked of the smoke run."""

    steps: int = STEPS
    tp: int | None = None
    timeout: float | None = None
    inject: tuple[str, ...] = ()


def check_wishes(wishes: SmokeWishes) -> None:
    """Raises for mistakes that need no answer of a host."""
    if not 1 <= wishes.steps <= MOST_STEPS:
        raise UsageError(f"--steps {wishes.steps}: must be from 1 to {MOST_STEPS}.")
    if wishes.tp is not None and wishes.tp not in TENSOR_PARALLEL:
        raise UsageError(f"--tp {wishes.tp}: the model can be split by 1, 2 or 4.")
    if wishes.timeout is not None and not 1 <= wishes.timeout <= 86_400:
        raise UsageError("--smoke-timeout: must be from 1 to 86400 seconds.")


def plan_smoke(job: JobPlan, hosts: Sequence[str], wishes: SmokeWishes) -> SmokePlan:
    """Ranks in the order of the job's hosts; tensor parallel inside a host, data parallel across hosts."""
    taking_part = [host for host in job.names if host in set(hosts)]
    counts = {host: job.ranks_on(host) for host in taking_part}
    tp = _tensor_parallel(counts, wishes.tp)
    seats: list[SmokeSeat] = []
    cells: list[tuple[int, ...]] = []
    for number, members in enumerate(_cells(taking_part, counts)):
        first = len(seats)
        for host in members:
            for local in range(counts[host]):
                device = None if job.backend.value is Backend.GLOO else local
                seats.append(SmokeSeat(len(seats), host, local, device, number, len(seats) - first))
        cells.append(tuple(range(first, len(seats))))
    head = job.head.value if job.head.value in counts else taking_part[0]
    replicas = min(len(cell) // tp for cell in cells)
    return SmokePlan(
        backend=job.backend.value.value,
        hosts=tuple(taking_part),
        seats=tuple(seats),
        tp=tp,
        cells=tuple(cells),
        steps=wishes.steps,
        seed=SEED,
        head=head,
        addresses={host: job.data_address(host) or "" for host in taking_part},
        injected=tuple(parse_injection(text, len(seats), wishes.steps, replicas) for text in wishes.inject),
    )


def _tensor_parallel(counts: dict[str, int], wished: int | None) -> int:
    """Two where every host has an even number of ranks and replicas remain to compare."""
    if wished is not None:
        odd = next((host for host, ranks in counts.items() if ranks % wished), None)
        if odd is not None:
            raise UsageError(
                f"--tp {wished}: the {counts[odd]} ranks of {odd} cannot be split into groups of {wished}.",
                "Tensor parallel groups lie inside a host: choose a divisor, or --ranks-per-host.",
            )
        return wished
    even = all(ranks % 2 == 0 for ranks in counts.values())
    return 2 if even and sum(counts.values()) > 2 else 1


def _cells(hosts: Sequence[str], counts: dict[str, int]) -> list[list[str]]:
    """Neighbouring hosts, with about `CELL_RANKS` ranks; a host is alone only if there is no other."""
    total = sum(counts.values())
    number = max(1, min(math.ceil(total / CELL_RANKS), len(hosts) // 2))
    ends = [round(len(hosts) * (cell + 1) / number) for cell in range(number)]
    return [list(hosts[start:end]) for start, end in zip([0, *ends], ends, strict=False) if start < end]
