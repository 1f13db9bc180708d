"""Which hosts take part in a smoke run and how their ranks are grouped. Pure."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import normpath

from doctor.errors import UsageError
from doctor.job.hccl import forms_group, reduced
from doctor.job.parallel import AXES, Layout
from doctor.job.plan import JobPlan
from doctor.job.ranktable.grouping import ATLAS_TRAINING
from doctor.model import Backend, Framework
from doctor.smoke.inject import parse_injection
from doctor.smoke.onhost.shape import ORDER, CellShape
from doctor.smoke.onhost.trainplan import may_interleave, micro_batches
from doctor.smoke.result import OfJob, SmokeBackend, SmokePlan, SmokeSeat, divides
from doctor.text.grouped import grouped
from doctor.text.ranks import ranges

CELL_RANKS = 16
"""About this many ranks train together; a larger cluster runs several such cells at the same time."""
LARGEST_CELL = 128
"""A pipeline or ring of more ranks is cut up: its groups take long to form, and a fault ends all of it."""
STEPS = 30
MOST_STEPS = 1000
SEED = 20
TENSOR_PARALLEL = (1, 2, 4)
"""The numbers of ranks over which the model's four heads can be split."""
WAVER_TRIES = 3
MANY_TURNS, FEW_TURNS, MANY_HOSTS = 7, 4, 8
"""Few hosts have few pairs to compare, so each is measured more often; the last two turns only confirm."""
SWEEP, SWEEP_AGAIN, TURNS_AGAIN = 15.0, 1.0, 2
"""Seconds for collectives by size; these and the turns of a round of a soak."""
OWN_PATHS = ("/dev/shm", "/tmp")
MOST_PATHS = 8


@dataclass(frozen=True, slots=True)
class HostDevices:
    """The job's devices on one host: the numbers of their files, and those that torch gives them."""

    product: str
    numbers: tuple[int, ...]
    indexes: tuple[int, ...]


class NoGroup(UsageError):
    """HCCL cannot form a group of these devices, so no training over them can start."""


@dataclass(frozen=True, slots=True)
class SmokeWishes:
    """The options that the user gave for the smoke run."""

    steps: int = STEPS
    tp: int | None = None
    timeout: float | None = None
    inject: tuple[str, ...] = ()
    accept: bool = False
    """An acceptance test: all pairs of hosts are measured, each way by itself, so all are in one cell."""
    paths: tuple[str, ...] = ()
    """In an acceptance test: more folders in which each host stores something."""
    hosts_at_once: int | None = None
    """In an acceptance test: the most hosts that send and receive at the same time."""
    again: bool = False
    """A round of a soak: short, and it wears out no folder that nobody named."""


def check_wishes(wishes: SmokeWishes) -> None:
    """Raise UsageError for mistakes that can be seen without asking a host."""
    if not 1 <= wishes.steps <= MOST_STEPS:
        raise UsageError(f"--steps {wishes.steps}: must be from 1 to {MOST_STEPS}.")
    if wishes.tp is not None and wishes.tp not in TENSOR_PARALLEL:
        raise UsageError(f"--tp {wishes.tp}: the model can be split by 1, 2 or 4.")
    if wishes.timeout is not None and not 1 <= wishes.timeout <= 86_400:
        raise UsageError("--smoke-timeout: must be from 1 to 86400 seconds.")
    for path in wishes.paths:
        if not path.startswith("/") or path != normpath(path) or len(path) > 200 or not path.isprintable():
            raise UsageError(f"--path {path}: is not the full path of a folder.", "Such as --path /scratch.")
    if len(wishes.paths) > MOST_PATHS:
        raise UsageError(f"--path: at most {MOST_PATHS} folders.")


def refuse_plan(job: JobPlan) -> None:
    """Raise UsageError if the ranks of the whole job are known and cannot be divided as --plan says."""
    given, known = job.layout, all(host.ranks for host in job.hosts)
    if not known or given is None or given.source != "--plan" or given.value.world:
        return
    layout, ranks = given.value, job.ranks
    sizes = {key: getattr(layout, key) or 1 for key in ("pp", "cp", "tp")}
    whole = math.prod(sizes.values())
    if ranks % whole:
        keys = [key for key, size in sizes.items() if size > 1]
        key = next((key for key in keys if ranks % (whole // sizes[key]) == 0), keys[0])
        room = ranks // math.gcd(ranks, whole // sizes[key])
        raise _unfit(f"{key}={sizes[key]}", f"{ranks} ranks cannot be divided so", key, room)
    ep, stage = layout.ep or 1, ranks // sizes["pp"]
    if stage % ep:
        raise _unfit(f"ep={ep}", f"it does not divide the ranks of a stage, {stage}", "ep", stage)
    if (layout.experts or 0) % ep:
        raise _unfit(f"experts={layout.experts}", f"ep={ep} does not divide them", "ep", layout.experts or 0)
    if sizes["pp"] > (layout.accumulation or sizes["pp"]):
        words = f"--plan accumulation={layout.accumulation}: {sizes['pp']} stages need as many micro-batches."
        raise UsageError(words, f"accumulation={2 * sizes['pp']} or more keeps them busy.")
    if (layout.vpp or 1) > 1 and (layout.accumulation or 0) % sizes["pp"]:
        words = (
            f"--plan accumulation={layout.accumulation}: with vpp, the {sizes['pp']} stages must divide it."
        )
        raise UsageError(words, f"What fits: accumulation={2 * sizes['pp']}, {4 * sizes['pp']}.")


def _unfit(what: str, why: str, key: str, whole: int) -> UsageError:
    fits = [str(size) for size in range(1, min(whole, 64) + 1) if whole % size == 0]
    return UsageError(f"--plan {what}: {why}.", f"What fits: {key}={', '.join(fits)}.")


def plan_smoke(
    job: JobPlan,
    hosts: Sequence[str],
    wishes: SmokeWishes,
    devices: Mapping[str, HostDevices] | None = None,
    framework: Framework = "torch",
) -> SmokePlan:
    """Tensor parallel inside a host, data parallel across hosts; unlisted hosts use their first devices."""
    known = devices or {}
    taking_part = [host for host in job.names if host in set(hosts)]
    counts = {host: job.ranks_on(host) for host in taking_part}
    layout = job.layout.value if job.layout else Layout()
    tp = _tensor_parallel(counts, wishes.tp, layout)
    seats: list[SmokeSeat] = []
    groups = [taking_part] if wishes.accept else _cells(counts, layout, tp)
    cell_of = {host: number for number, members in enumerate(groups) for host in members}
    cells: list[list[int]] = [[] for _ in groups]
    for host in taking_part:
        cell = cells[cell_of[host]]
        for local in range(counts[host]):
            device, index = _device(job.backend.value, known.get(host), local)
            seats.append(SmokeSeat(len(seats), host, local, device, cell_of[host], len(cell), index))
            cell.append(seats[-1].rank)
    head = job.head.value if job.head.value in counts else taking_part[0]
    at_once = (wishes.hosts_at_once or 0) // 2
    turns = MANY_TURNS if len(taking_part) < MANY_HOSTS else FEW_TURNS
    sweep, paths = SWEEP, (*OWN_PATHS, *wishes.paths)
    if wishes.again:
        turns, sweep, paths = TURNS_AGAIN, SWEEP_AGAIN, (OWN_PATHS[0], *wishes.paths)
    plan = SmokePlan(
        backend=_backend(job.backend.value, framework),
        hosts=tuple(taking_part),
        seats=tuple(seats),
        tp=tp,
        cells=tuple(map(tuple, cells)),
        steps=wishes.steps,
        seed=SEED,
        head=head,
        addresses={host: job.data_address(host) or "" for host in taking_part},
        waver_tries=WAVER_TRIES,
        framework=framework,
        turns=turns if wishes.accept else 0,
        sweep=sweep if wishes.accept else 0.0,
        paths=tuple(dict.fromkeys(paths)) if wishes.accept else (),
        pairs_at_once=at_once if at_once < len(taking_part) // 2 else 0,
        layout=_of_job(layout, tp, cells, framework, job.backend.value),
        order=_order(layout),
    )
    replicas = min(len(cell) // plan.parts for cell in cells)
    sizes = len(seats), wishes.steps, replicas, len(seats) * tp // plan.parts
    formed = (*plan.shape(0).groups, *(("pair",) if plan.shape(0).stages > 1 else ()))
    plan = replace(plan, injected=tuple(parse_injection(text, *sizes, formed) for text in wishes.inject))
    return plan if job.backend.value is not Backend.HCCL else _for_hccl(plan, known)


def _backend(backend: Backend, framework: Framework) -> SmokeBackend:
    """What carries the collectives of this framework on the job's devices."""
    if framework == "torch":
        return backend.value
    if backend is Backend.NCCL:
        raise UsageError(
            "The smoke run with MindSpore needs NPUs or trains on CPUs: this job runs over nccl.",
            "--framework torch, if the hosts have it; or --backend gloo, to train on the CPUs.",
        )
    return "hccl" if backend is Backend.HCCL else "mccl"


def _device(backend: Backend, devices: HostDevices | None, local: int) -> tuple[int | None, int | None]:
    """The number of a rank's device, and torch's number for it if that is different."""
    if backend is Backend.GLOO:
        return None, None
    if devices is None or local >= len(devices.numbers):
        return local, None
    number, index = devices.numbers[local], devices.indexes[local]
    return number, None if index == number else index


def _for_hccl(plan: SmokePlan, devices: Mapping[str, HostDevices]) -> SmokePlan:
    """The plan with the data types and the groups that HCCL supports on these products."""
    products = {devices[host].product for host in plan.hosts if host in devices}
    plan = replace(plan, dtypes=reduced(products))
    for number in range(len(plan.cells)):
        if ATLAS_TRAINING in products and (refused := _refused(plan, number, products, "world")):
            raise NoGroup(
                f"HCCL cannot form a group of {refused}: on Atlas training every host of a group has 1, 2, "
                "4 or 8 NPUs, as many as the others, and 2 or 4 of them lie within NPUs 0-3 or 4-7.",
                "Choose other NPUs (ASCEND_RT_VISIBLE_DEVICES, or the rank table), or --ranks-per-host.",
            )
    cells = range(len(plan.cells))
    groups = ("dp", "embedding", *plan.layout)
    if any(_refused(plan, number, products, group) for number in cells for group in groups):
        plan = replace(plan, layout={})
    return replace(plan, dp_in_world=any(_refused(plan, number, products, "dp") for number in cells))


def _refused(plan: SmokePlan, cell: int, products: Collection[str], group: str) -> str:
    """The first of these groups that HCCL cannot form; "" if it can form all of them."""
    shape = plan.shape(cell)
    for members in dict.fromkeys(tuple(shape.members(group, place)) for place in range(shape.world)):
        seats = (plan.seat(plan.cells[cell][place]) for place in members)
        chosen = grouped((seat.host, seat.local if seat.device is None else seat.device) for seat in seats)
        if not forms_group(products, list(chosen.values())):
            return "; ".join(f"NPUs {', '.join(ranges(own))} of {host}" for host, own in chosen.items())
    return ""


def _of_job(
    layout: Layout, tp: int, cells: Sequence[Sequence[int]], framework: Framework, backend: Backend
) -> OfJob:
    """The other groups of the job's plan; none if a cell cannot be divided in this way."""
    wished = {"pp": layout.pp or 1, "cp": layout.cp or 1, "ep": layout.ep or 1}
    whole = all(len(cell) > tp * wished["pp"] for cell in cells) and framework == "torch"
    zero = {key: size for key in ("zero", "ps") if whole and (size := getattr(layout, key))}
    if wished["pp"] > 1:  # of a stage, as with Megatron's distributed optimizer, only stage 1
        zero = {key: size for key, size in zero.items() if (key, size) == ("zero", 1)}
    if max(wished.values()) == 1 or not divides(wished, tp, cells):
        return zero
    cut = wished["pp"] > 1 and framework == "torch"
    micro = micro_batches(wished["pp"], layout.accumulation or 0) if cut else 0
    vpp = layout.vpp or 1
    if vpp > 1 and backend is Backend.GLOO and may_interleave(wished["pp"], vpp, micro):
        wished["vpp"] = vpp
    return {**wished, **({"micro": micro} if micro else {}), **zero}


def _tensor_parallel(counts: dict[str, int], wished: int | None, layout: Layout) -> int:
    """That of the plan, or two if each host has an even number of ranks and replicas remain."""
    if wished is not None:
        odd = next((host for host, ranks in counts.items() if ranks % wished), None)
        if odd is not None:
            raise UsageError(
                f"--tp {wished}: the {counts[odd]} ranks of {odd} cannot be split into groups of {wished}.",
                "Tensor parallel groups lie inside a host: choose a divisor, or --ranks-per-host.",
            )
        return wished
    planned = layout.tp or (1 if layout.pp or layout.cp or layout.ep or layout.ps else None)
    fits = planned in TENSOR_PARALLEL and not any(ranks % planned for ranks in counts.values())
    if planned and fits and sum(counts.values()) >= 2 * planned:
        return planned
    return 2 if all(ranks % 2 == 0 for ranks in counts.values()) and sum(counts.values()) > 2 else 1


def _cells(counts: Mapping[str, int], layout: Layout, tp: int) -> list[list[str]]:
    """Hosts with about `CELL_RANKS` ranks: neighbours, or whole pipelines and rings of the job. One of these
    is alone only if there is no other, or two are too many.
    """
    units, total = _units(counts, layout, tp), sum(counts.values())
    few = len(units) // 2 if 2 * total <= LARGEST_CELL * len(units) else len(units)
    most = max(1, min(math.ceil(total / CELL_RANKS), few))
    parts = {name: getattr(layout, name) or 1 for name in ("pp", "cp", "ep")}
    order = {host: number for number, host in enumerate(counts)}
    for number in filter(None, (most, most // 2, most // 4, most // 8, most)):  # the last if nothing divides
        ends = [round(len(units) * (cell + 1) / number) for cell in range(number)]
        parted = [set().union(*units[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
        sizes = [sum(map(counts.__getitem__, cell)) for cell in parted]
        if max(sizes) <= LARGEST_CELL and divides(parts, tp, map(range, sizes)):
            break
    return [sorted(cell, key=order.__getitem__) for cell in parted]


def _units(counts: Mapping[str, int], layout: Layout, tp: int) -> list[frozenset[str]]:
    """The hosts that the job's pipelines and rings join; each alone if there are none, or too large ones."""
    pp, cp, total = layout.pp or 1, layout.cp or 1, sum(counts.values())
    alone = {host: frozenset([host]) for host in counts}
    joined = dict(alone)
    if pp * cp > 1 and total % (tp * pp * cp) == 0:
        whole = CellShape(total // (tp * pp), tp, (), 0, 0, pp=pp, cp=cp, micro=1, order=_order(layout))
        of_rank = [host for host, ranks in counts.items() for _ in range(ranks)]
        for members in (whole.members(name, rank) for rank in range(total) for name in ("pp", "cp")):
            unit = frozenset().union(*(joined[of_rank[member]] for member in members))
            joined.update(dict.fromkeys(unit, unit))
    fit = all(sum(map(counts.__getitem__, unit)) <= LARGEST_CELL for unit in joined.values())
    return list(dict.fromkeys((joined if fit else alone).values()))


def _order(layout: Layout) -> str:
    return "-".join(dict.fromkeys([*(layout.order or ORDER).split("-"), *AXES]))
