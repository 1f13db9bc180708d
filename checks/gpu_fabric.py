"""Connections of NVIDIA GPUs within a host: their NVLinks, and the manager of the NVSwitches between them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from doctor.api import (
    NVIDIA,
    PLAN,
    Confidence,
    Damage,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Severity,
    Skip,
    Undecided,
    check,
    maybe,
)
from doctor.facts.gpus import Gpus, gpus_named
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS, NvidiaHealth
from doctor.facts.nvidia.nvlink import FABRIC_MANAGER, GPU_TOPOLOGY, NVLINKS, FabricManager, Links
from doctor.facts.system import VIEW
from doctor.rules.devices import alike
from doctor.rules.gpus import SHOWN, cuda_gpus, gpu_problem

K = TypeVar("K")
Topology = Mapping[tuple[int, int], str]
ENOUGH = 3
"""The number of other GPUs of the host that must agree before they alone accuse one that differs."""
MOST = 0.75


@dataclass(frozen=True, slots=True)
class Usual:
    """How many links a GPU should have, the source of this number, and how sure it is."""

    count: int
    why: str
    sure: bool


@check(
    "nvlink-down",
    NVLINKS,
    maybe(GPU_TOPOLOGY),
    maybe(GPUS),
    PLAN,
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    causes=("fabric-manager-down", "gpu-missing", "gpu-unhealthy", "gpu-xid"),
    remedy="look-at-nvlinks",
    vendor=NVIDIA,
)
def nvlink_down(
    links: Mapping[str, Mapping[int, Links]],
    topologies: Mapping[str, Topology],
    gpus: Mapping[str, Gpus],
    plan: JobPlan,
) -> Iterator[Problem]:
    """A GPU has fewer NVLinks than its like.

    Why it matters: NCCL falls back to PCIe or to fewer links for the whole ring, so that every step of the
    job takes several times as long; on hosts with NVSwitches it may not start at all.

    How it is known: the links of a GPU are compared with those of the same GPU on other hosts of the same
    product; without such hosts, with the other GPUs of its host. Links that no such GPU has are not in use.

    What to do: reset the GPUs (all of them if there are NVSwitches); if the link stays down, have the
    baseboard or the bridge examined. The kernel log names the link (Xid 74; 144-150 on Blackwell).
    """
    if not links:
        raise Skip("no GPU has NVLinks")
    kinds = _kinds(links, topologies)
    for host, own in links.items():
        mine = _mine(gpus.get(host), plan, own)
        kind = kinds[_names(own)]
        blamed: dict[tuple[Usual, int], list[int]] = {}
        for index in mine:
            usual = _usual(index, own, kind)
            if usual and len(own[index].active) < usual.count:
                blamed.setdefault((usual, len(own[index].active)), []).append(index)
        for (usual, count), indices in blamed.items():
            yield _fewer(host, usual, count, indices, own)
        named = {index for indices in blamed.values() for index in indices}
        topology = {
            pair: joined
            for pair, joined in topologies.get(host, {}).items()
            if not named & set(pair) and set(pair) <= mine
        }
        yield from _distant(host, topology, kind)


def _mine(gpus: Gpus | None, plan: JobPlan, own: Mapping[int, Links]) -> set[int]:
    """The job's GPUs that have NVLinks."""
    return set(own) if gpus is None or gpus.silent else {g.index for g in cuda_gpus(gpus, plan)} & set(own)


@dataclass(frozen=True, slots=True)
class Kind:
    """Counts over hosts with the same GPUs: GPU -> numbers of active links, pair -> kinds of connection."""

    active: Mapping[int, Counter[int]]
    joined: Mapping[tuple[int, int], Counter[str]]


def _names(own: Mapping[int, Links]) -> frozenset[tuple[int, str]]:
    return frozenset((index, links.name) for index, links in own.items())


def _kinds(
    links: Mapping[str, Mapping[int, Links]], topologies: Mapping[str, Topology]
) -> dict[frozenset[tuple[int, str]], Kind]:
    kinds: dict[frozenset[tuple[int, str]], Kind] = {}
    for host, own in links.items():
        kind = kinds.setdefault(_names(own), Kind(defaultdict(Counter), defaultdict(Counter)))
        for index, of_gpu in own.items():
            kind.active[index][len(of_gpu.active)] += 1
        for pair, joined in topologies.get(host, {}).items():
            kind.joined[pair][joined] += 1
    return kinds


def _without(counts: Counter[K], own: K) -> Counter[K]:
    """The counts of the other hosts."""
    return counts - Counter([own])


def _usual(index: int, own: Mapping[int, Links], kind: Kind) -> Usual | None:
    peers = _without(kind.active[index], len(own[index].active))
    if peers:
        count, votes = _common(peers)
        others = f"as on {votes} other host{'s' if votes > 1 else ''} of the job"
        return Usual(count, others, True)
    beside = [len(other.active) for i, other in own.items() if i != index and other.name == own[index].name]
    if len(beside) < ENOUGH:
        return None
    count, votes = _common(Counter(beside))
    if votes < MOST * len(beside):
        return None
    # A GPU without links may be intended: GPUs without a bridge next to pairs with one.
    return Usual(count, f"as {votes} other GPUs of the host have", bool(own[index].active))


def _common(votes: Counter[int]) -> tuple[int, int]:
    """The most frequent count (the larger of two that are equally frequent), and how often it occurs."""
    best = max(votes, key=lambda count: (votes[count], count))
    return best, votes[best]


def _fewer(host: str, usual: Usual, count: int, indices: Sequence[int], own: Mapping[int, Links]) -> Problem:
    lines = [
        f"GPU {index}: {count} active"
        + (f", inactive: {', '.join(str(n) for n in own[index].inactive)}" if own[index].inactive else "")
        for index in indices
    ]
    return gpu_problem(
        indices,
        "NVLinks are inactive",
        *(Evidence("nvidia-smi nvlink --status", line) for line in lines[:SHOWN]),
        host=host,
        expected=f"{usual.count} active links, {usual.why}",
        actual=f"{count} active",
        severity=None if usual.sure else Severity.WARN,
        confidence=Confidence.STRONG if usual.sure else Confidence.SUSPECT,
    )


def _distant(host: str, topology: Topology, kind: Kind) -> Iterator[Problem]:
    """Pairs of GPUs that are connected by fewer links than usual."""
    within, votes = Counter(topology.values()).most_common(1)[0] if topology else ("", 0)
    lost: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for pair, joined in topology.items():
        seen = _without(kind.joined[pair], joined)
        if seen:
            usual = max(seen, key=lambda kind: (seen[kind], _strength(kind)))
        else:
            usual = within if votes >= MOST * len(topology) and len(topology) > ENOUGH else ""
        if _strength(joined) < _strength(usual):
            lost.setdefault((usual, joined), []).append(pair)
    for (usual, joined), pairs in lost.items():
        ends = Counter(index for pair in pairs for index in pair)
        worst = [index for index, times in ends.items() if len(pairs) > 1 and times == len(pairs)]
        yield gpu_problem(
            sorted(worst or ends),
            "GPUs are joined by fewer NVLinks than usual",
            *(Evidence("nvidia-smi topo -m", f"GPU{a} to GPU{b}: {joined}") for a, b in pairs[:SHOWN]),
            host=host,
            expected=usual,
            actual=joined,
            confidence=Confidence.STRONG,
        )


def _strength(joined: str) -> int:
    """NV18 -> 18; anything that is not an NVLink -> 0."""
    match = re.fullmatch(r"NV(\d{1,3})", joined)
    return int(match[1]) if match else 0


_UNWELL = {"unhealthy": None, "limited capacity": Severity.WARN}


@check(
    "fabric-manager-down",
    FABRIC_MANAGER,
    maybe(GPU_HEALTH),
    maybe(VIEW),
    damage=Damage.GONE,
    remedy="start-fabric-manager",
    vendor=NVIDIA,
)
def fabric_manager_down(
    manager: FabricManager, health: Mapping[int, NvidiaHealth] | None, view: str | None
) -> Iterator[Problem]:
    """GPUs are joined by NVSwitches that have not been set up.

    Why it matters: until the fabric manager has set the NVSwitches up and every GPU has joined the fabric,
    CUDA does not start on any of them (error 802, "system not yet initialized"), although nvidia-smi shows
    nothing wrong.

    How it is known: whether nv-fabricmanager runs if there are NVSwitches (a container cannot see it), and
    the fabric state that the GPUs themselves report (from Hopper on).

    What to do: start nvidia-fabricmanager; it must have exactly the driver's version. Its log is
    /var/log/fabricmanager.log.
    """
    states = {index: own for index, own in sorted((health or {}).items()) if own.fabric}
    waiting = [i for i, own in states.items() if _is_waiting(own, manager)]
    refused = [i for i, own in states.items() if _is_refused(own)]
    hurt = {i: own.fabric_health.lower() for i, own in states.items()}
    if manager.switches and manager.running is False and view == "host":
        yield Problem(
            "the fabric manager does not run",
            expected=f"nv-fabricmanager runs, for {manager.switches} NVSwitches",
            actual="no such process" + (f"; {gpus_named(waiting)} wait for it" if waiting else ""),
            where=tuple(Place(device=index) for index in waiting),
            evidence=(Evidence("/proc/*/comm", "no nv-fabricmanage"), *_fabric(waiting, states)),
        )
    elif waiting:
        yield gpu_problem(
            waiting,
            "GPUs have not joined the NVLink fabric",
            *_fabric(waiting, states),
            expected="Completed",
            actual=states[waiting[0]].fabric,
        )
    if refused:
        yield gpu_problem(
            refused,
            "GPUs could not join the NVLink fabric",
            *_fabric(refused, states),
            expected="Completed, Success",
            actual=f"Completed, {states[refused[0]].fabric_status}",
        )
    for state, indices in alike({i: state for i, state in hurt.items() if state in _UNWELL}):
        yield gpu_problem(
            indices,
            "the NVLink fabric of the GPU is not healthy",
            *_fabric(indices, states),
            expected="Healthy",
            actual=states[indices[0]].fabric_health,
            severity=_UNWELL[state],
        )
    if manager.switches and not manager.running and not states and view != "host":
        raise Undecided("the processes of the host, nv-fabricmanager among them, cannot be seen from here")
    if manager.switches and manager.running is None and not states:
        raise Undecided("the processes of others, nv-fabricmanager among them, are hidden from this login")
    if not manager.switches and not states:
        raise Skip("there is no NVSwitch")


def _is_waiting(own: NvidiaHealth, manager: FabricManager) -> bool:
    state = own.fabric.lower()
    return state == "in progress" or (state == "not started" and manager.switches > 0)


def _is_refused(own: NvidiaHealth) -> bool:
    """Its status counts only once the state is Completed: a lone GPU has "Not Supported, Unknown Error"."""
    return own.fabric.lower() == "completed" and own.fabric_status.lower() not in ("", "success")


def _fabric(indices: Sequence[int], states: Mapping[int, NvidiaHealth]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            "nvidia-smi --query-gpu=fabric.state,fabric.status",
            f"GPU {i}: {states[i].fabric}, {states[i].fabric_status or 'no status'}",
        )
        for i in indices[:SHOWN]
    )
