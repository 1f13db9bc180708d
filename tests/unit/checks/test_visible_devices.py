"""What *_VISIBLE_DEVICES leaves to the ranks of a host, by the login or by the launch, which overrides it."""

from dataclasses import replace

import pytest

from doctor.api import AMD, ASCEND, NVIDIA, Backend, Here, JobPlan, Skip
from doctor.facts.gpus import Gpu, Gpus
from doctor.facts.nvidia.gpus import NvidiaHealth
from doctor.facts.software import Environment
from doctor.facts.system import Devices, FoundDevices
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Host, Problem, SourcedValue
from tests.support.cases import cases

(CHECK,) = (check for check in find_checks().checks if check.id == "devices-hidden")
VENDORS = {each.visible[0]: each for each in (NVIDIA, AMD, ASCEND)}
BEYOND = "0,8,1,2"
"""With a device that no whole host has."""
LISTED = Gpus(tuple(Gpu(n, f"GPU-{n}abc-{n}", "H100", "") for n in range(8)))


def plan(name: str, ranks: int, source: str = "run.sh", env: dict[str, str] | None = None) -> JobPlan:
    backend = Backend.HCCL if VENDORS[name] is ASCEND else Backend.NCCL
    wishes = JobWishes(
        backend=SourcedValue(backend, "test"), ranks_per_host=SourcedValue(ranks, source), env=env or {}
    )
    return replace(draft([Host("a", "a")], wishes), vendor=VENDORS[name])


def problems(made: JobPlan, login: dict[str, str], listed: Gpus | None = LISTED) -> list[Problem]:
    vendor = made.vendor
    assert vendor
    devices = Devices({vendor.name: FoundDevices(tuple(range(8)), 8)}, vendor.name)
    return list(CHECK.run(devices, listed, Environment(login), made, Here("a", is_head=True)))


def of_launch(made: JobPlan) -> list[str]:
    (check,) = (check for check in find_checks().checks if check.id == "launch-values")
    return [each.summary for each in check.run(made)]


@cases
def test_what_a_launch_names_on_any_host(env: dict[str, str], told: list[str]) -> None:
    assert of_launch(plan("CUDA_VISIBLE_DEVICES", 8, env=env)) == told


@cases
def test_as_many_as_ranks(name: str, value: str, ranks: int, expected: str) -> None:
    for login, env in (({name: value}, {}), ({}, {name: value})):
        if env and of_launch(plan(name, ranks, env=env)):
            with pytest.raises(Skip, match="launch-values tells"):
                problems(plan(name, ranks, env=env), login)
            continue
        if env and value == BEYOND:
            with pytest.raises(Skip, match="launch-devices tells"):
                problems(plan(name, ranks, env=env), login)
            continue
        told = problems(plan(name, ranks, env=env), login)
        said = [(each.summary, each.severity.value if each.severity else "fail") for each in told]
        whose = " of the login" if login else ""
        word, _, left = expected.partition(": ")
        assert said == ([(f"{name}{whose} leaves {left} of this host", word)] if expected else [])


def test_the_launch_overrides_the_login() -> None:
    name = "CUDA_VISIBLE_DEVICES"
    assert problems(plan(name, 4, env={name: "0,1,2,3"}), {name: "0"}) == []
    assert len(problems(plan(name, 4, env={name: "0,1,2,3,3"}), {name: "0,1,2,3"})) == 1


def test_what_nobody_said_and_what_slurm_gives_is_not_judged() -> None:
    name = "CUDA_VISIBLE_DEVICES"
    with pytest.raises(Skip, match="nobody says how many ranks"):
        problems(plan(name, 8, "devices found"), {name: "0,1"})
    by_slurm = replace(plan(name, 4), launch="run.sh: srun, 4 ranks a host")
    assert problems(by_slurm, {name: "0"}) == []
    assert problems(plan(name, 4), {name: "0", "SLURM_PROCID": "0"}) == []
    assert problems(plan(name, 4), {name: "GPU-1abc"}, None) == [], "nothing lists the UUIDs"


def split(made: JobPlan, login: dict[str, str], parts: int) -> list[Problem]:
    (check,) = (check for check in find_checks().checks if check.id == "gpu-split")
    health = {n: NvidiaHealth(mig=n < parts) for n in range(8)}
    return list(check.run(health, LISTED, Environment(login), made, Here("a", is_head=True)))


def test_split_gpus_are_not_whole_ones() -> None:
    name = "CUDA_VISIBLE_DEVICES"
    (told,) = split(plan(name, 7), {}, 2)
    assert (told.actual, told.subject) == ("6 of 8", "GPUs 0-1")
    assert told.commands[-1] == "sudo nvidia-smi -mig 0"
    assert split(plan(name, 6), {}, 2) == []
    assert split(plan(name, 8), {name: "MIG-1a,MIG-2b"}, 8) == [], "somebody has chosen instances"
    assert split(plan(name, 8), {"SLURM_PROCID": "0"}, 8) == [], "Slurm gives instances"
    with pytest.raises(Skip, match="nobody says how many ranks"):
        split(plan(name, 8, "devices found"), {}, 8)
