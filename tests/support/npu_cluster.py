"""Typed facts of Ascend hosts for tests of checks, and the judgement of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from doctor.api import ASCEND, Here, Skip, Undecided
from doctor.facts.ascend.hccn_tool import PerDevice, SilentDevice
from doctor.facts.ascend.network import Address
from doctor.facts.system import Devices, FoundDevices
from doctor.job.plan import JobPlan, draft
from doctor.job.ranktable import RankEntry, Server, Spot
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Backend, Confidence, Host, Problem, Severity, SourcedValue

T = TypeVar("T")
CHECKS = {check.id: check for check in find_checks().checks}
SILENT = SilentDevice("hccn_tool did not answer within 4 s")
UNSUPPORTED = SilentDevice("the command is not supported on this product", unsupported=True)
EIGHT = range(8)
HOSTS = ("node1", "node2", "node3")
NODE1 = Here("node1", is_head=True)
ONE_HOST = pytest.mark.parametrize(
    ("hosts", "product", "severity"),
    [
        (2, "atlas-a2", None),
        (1, "atlas-a2", Severity.WARN),
        (1, "atlas-a3", Severity.WARN),
        (1, "atlas-training", None),
    ],
)
"""A job on one host does not need the network, except on Atlas training servers."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a check: its problems, and the reason why the rest is undecided."""

    problems: tuple[Problem, ...]
    unknown: str = ""
    unknown_hosts: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def only(self) -> Problem:
        (problem,) = self.problems
        return problem

    @property
    def passed(self) -> bool:
        return not (self.problems or self.unknown or self.skipped)

    @property
    def places(self) -> set[tuple[str | None, int | None]]:
        return {(place.host, place.device) for problem in self.problems for place in problem.where}


def judge(id: str, *values: Any) -> Judgement:
    problems: list[Problem] = []
    try:
        problems.extend(CHECKS[id].run(*values))
    except Undecided as undecided:
        return Judgement(tuple(problems), str(undecided), undecided.hosts)
    except Skip as skip:
        assert not problems, "a skip would lose them"
        return Judgement((), skipped=str(skip))
    for problem in problems:
        if CHECKS[id].scope == "cluster":
            culprits = set(problem.hosts)
            assert not culprits or {p.host for p in problem.where} <= culprits, "a place on an innocent host"
        suspect = problem.confidence is Confidence.SUSPECT
        assert problem.summary.endswith("; undecided which of them is at fault") is suspect
    return Judgement(tuple(problems))


def plan(
    *names: str, env: Mapping[str, str] | None = None, ranks: SourcedValue[int] | None = None
) -> JobPlan:
    hosts = [Host(name, name) for name in names or HOSTS]
    wishes = JobWishes(backend=SourcedValue(Backend.HCCL, "--backend"), ranks_per_host=ranks)
    return replace(draft(hosts, wishes), env=env or {})


def tabled(job: JobPlan, table: Mapping[str, Iterable[int]]) -> JobPlan:
    """The job with a rank table that names these devices of hosts."""
    spot = Spot(1, 1)
    servers = {
        host: Server(host, None, tuple(RankEntry(0, host, n, spot) for n in numbers), spot)
        for host, numbers in table.items()
    }
    own = tuple(replace(host, server=servers.get(host.name)) for host in job.hosts)
    return replace(job, hosts=own, servers=tuple(servers.values()))


def devices(product: str = "atlas-a2", npus: Iterable[int] = EIGHT, on_bus: int | None = None) -> Devices:
    own = tuple(npus)
    return Devices({ASCEND.name: FoundDevices(own, len(own) if on_bus is None else on_bus)}, product)


def everywhere(value: T, *names: str) -> dict[str, T]:
    return dict.fromkeys(names or HOSTS, value)


def each(value: T, changes: Mapping[int, Any] | None = None, numbers: Iterable[int] = EIGHT) -> PerDevice[T]:
    """The same value for every device, except for some."""
    return {number: (changes or {}).get(number, value) for number in numbers}


@dataclass(frozen=True, slots=True)
class Network:
    """The addresses of all devices: by a plan, except for some."""

    address: Callable[[int, int], str]
    prefix: int = 24
    changes: Mapping[tuple[int, int], Any] = field(default_factory=dict)

    def of(self, hosts: int = 3, numbers: Iterable[int] = EIGHT) -> dict[str, PerDevice[Address | None]]:
        return {
            f"node{host}": {
                number: self.changes.get((host, number), Address(self.address(host, number), self.prefix))
                for number in numbers
            }
            for host in range(1, hosts + 1)
        }

    def but(self, changes: Mapping[tuple[int, int], Any]) -> Network:
        return replace(self, changes=changes)


FLAT = Network(lambda host, device: f"10.20.0.{8 * host + device}")
"""One segment, as on Atlas A2."""
RAILS = Network(lambda host, device: f"192.168.{100 + device % 4}.{99 + 2 * host + (device < 4)}")
"""Four segments, as on Atlas training servers."""
SIX = Network(lambda host, device: f"fd00:0:0:{device // 4}::{8 * host + device}", 64)
"""Two segments, of IPv6."""
ROUTED = Network(lambda host, device: f"10.{host}.{device}.2")
"""One segment for each device."""
