"""A launch for more devices than hosts have: the launch is at fault; a host that lost one still is, too."""

from dataclasses import replace

import pytest

from doctor.api import AMD, ASCEND, NVIDIA, Backend, Check, Expect, Here, JobPlan, Problem, Skip, Vendor
from doctor.facts.gpus import Gpu, Gpus
from doctor.facts.nvidia.gpus import NvidiaHealth
from doctor.facts.software import Environment
from doctor.facts.system import Devices, FoundDevices
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Host, SourcedValue, View
from tests.support.cases import cases

CHECKS = {check.id: check for check in find_checks().checks}
MISSING = {NVIDIA: "gpu-missing", AMD: "amd-missing", ASCEND: "device-missing"}


def plan(vendor: Vendor, hosts: int, ranks: int = 0, source: str = "--launch", visible: str = "") -> JobPlan:
    drafted = draft(
        [Host(f"node{n}", f"node{n}") for n in range(1, hosts + 1)],
        JobWishes(backend=SourcedValue(vendor.backend, "--backend")),
    )
    told = SourcedValue(ranks, source) if ranks else None
    known = tuple(replace(host, ranks=told) for host in drafted.hosts)
    env = {vendor.visible[0]: visible} if visible else {}
    return replace(drafted, hosts=known, vendor=vendor, env=env)


def devices(vendor: Vendor, count: int, on_bus: int = 0) -> Devices:
    found = FoundDevices(tuple(range(count)), on_bus or count, "550.54.15")
    return Devices({vendor.name: found}, {NVIDIA: "nvidia", AMD: "amd"}.get(vendor, "atlas-training"))


def judged(check: Check, *facts: object) -> list[Problem]:
    return list(check.run(*facts))


def both(
    vendor: Vendor, job: JobPlan, there: dict[str, Devices], expects: dict[str, Expect]
) -> tuple[list[str], list[str]]:
    """The hosts that are blamed, and what is told of the launch."""
    views = dict.fromkeys(there, View.HOST)
    facts = (there, expects, job, views) if vendor is ASCEND else (there, expects, job, {}, views)
    missing = judged(CHECKS[MISSING[vendor]], *facts)
    launch = judged(CHECKS["launch-devices"], there, expects, job)
    assert all(each.hosts == () for each in launch)
    return [host for each in missing for host in each.hosts], [each.summary for each in launch]


@cases
def test_who_is_at_fault(
    counts: list[int],
    ranks: int,
    visible: str,
    source: str,
    expected: int,
    on_bus: int,
    blamed: list[str],
    launch: bool,
) -> None:
    for vendor in (NVIDIA, AMD, ASCEND):
        there = {f"node{n}": devices(vendor, count, on_bus) for n, count in enumerate(counts, 1)}
        expects = {host: Expect(devices=expected) for host in there}
        job = plan(vendor, len(counts), ranks, source, visible)
        hosts, told = both(vendor, job, there, expects)
        assert (vendor.name, hosts, bool(told)) == (vendor.name, blamed, launch)


def test_the_launch_is_told_what_it_asks_for() -> None:
    there = {"node1": devices(NVIDIA, 8), "node2": devices(NVIDIA, 8)}
    assert both(NVIDIA, plan(NVIDIA, 2, 16), there, {})[1] == [
        "the launch asks for 16 ranks on a host, and no host has so many NVIDIA GPUs"
    ]
    assert both(NVIDIA, plan(NVIDIA, 2, visible="8"), there, {})[1] == [
        "the launch names NVIDIA GPU 8, which no host has"
    ]
    on_cpus = replace(plan(NVIDIA, 2, 16), backend=SourcedValue(Backend.GLOO, "--backend"))
    with pytest.raises(Skip, match="trains on no devices"):
        judged(CHECKS["launch-devices"], there, {}, on_cpus)


def test_neither_a_split_gpu_nor_a_login_is_at_fault_for_more_ranks_than_gpus() -> None:
    listed = Gpus(tuple(Gpu(n, f"GPU-{n}", "NVIDIA H100", f"0000:{n:02x}:00", 0) for n in range(8)))
    split, here = {0: NvidiaHealth(mig=True)}, Here("node1", is_head=True)
    login = Environment({"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"})
    for ranks, faults in ((8, 1), (16, 0)):
        job = plan(NVIDIA, 1, ranks)
        assert len(judged(CHECKS["gpu-split"], split, listed, None, job, here)) == faults
        assert judged(CHECKS["devices-hidden"], devices(NVIDIA, 8), listed, login, job, here) == []
    short = Environment({"CUDA_VISIBLE_DEVICES": "0,1,2,3"})
    job = plan(NVIDIA, 1, 16)
    assert len(judged(CHECKS["devices-hidden"], devices(NVIDIA, 8), listed, short, job, here)) == 1
