"""Launches as people write them, and their cluster: node1 and node2 with eight ranks each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from doctor.api import ASCEND, Backend, Check, JobPlan, Undecided
from doctor.facts.network import ResolvedNames
from doctor.facts.system import Devices, FoundDevices
from doctor.job.launch.files import read_launch_files
from doctor.job.launch.process_env import Launch
from doctor.job.launch.processes import JobProcess, launch_of_processes
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Host, Problem, SourcedValue
from tests.support.cases import from_cases

CHECKS = {check.id: check for check in find_checks().checks}

LINES = from_cases(__file__, "LINES", tuple[str, ...])
"""Command lines of launchers; the part written as k3y must not leave the host."""

MINDSPORE_LOOP = from_cases(__file__, "MINDSPORE_LOOP", str)

DYNAMIC_CLUSTER = from_cases(__file__, "DYNAMIC_CLUSTER", str)

TORCHRUN = from_cases(__file__, "TORCHRUN", str)

C10D = from_cases(__file__, "C10D", str)

TORCH_NPU_RUN = from_cases(__file__, "TORCH_NPU_RUN", str)

MSRUN = from_cases(__file__, "MSRUN", str)

MPIRUN = from_cases(__file__, "MPIRUN", str)

SLURM = from_cases(__file__, "SLURM", str)

SPAWN = from_cases(__file__, "SPAWN", str)

BY_HAND = from_cases(__file__, "BY_HAND", str)

ENV_FILE = from_cases(__file__, "ENV_FILE", str)

HEALTHY: dict[str, list[str]] = {
    "shell loop": [MINDSPORE_LOOP],
    "mp.spawn": [SPAWN],
    "python": [BY_HAND],
    "torchrun": [TORCHRUN.format(node=0), TORCHRUN.format(node=1)],
    "torchrun with c10d": [C10D],
    "torch_npu_run": [TORCH_NPU_RUN.format(node=0), TORCH_NPU_RUN.format(node=1)],
    "msrun": [MSRUN.format(node=0), MSRUN.format(node=1)],
    "dynamic cluster": [DYNAMIC_CLUSTER],
    "mpirun": [MPIRUN],
    "slurm": [SLURM],
    "env files": [ENV_FILE.format(node=0), ENV_FILE.format(node=1)],
}
"""Scripts; a pair if each of the two hosts has its own."""

REST_OF_A_DUMP = from_cases(__file__, "REST_OF_A_DUMP", str)


def dump(env: Mapping[str, str | int], host: str | None = None) -> str:
    """What `env` prints in the process of a rank."""
    own = {**({"HOSTNAME": host} if host else {}), **env}
    return "".join(f"{name}={value}\n" for name, value in own.items()) + REST_OF_A_DUMP


def torch_rank(rank: int, **more: str | int) -> dict[str, str | int]:
    """The variables that torchrun sets for a rank of the two hosts."""
    return {
        "RANK": rank,
        "LOCAL_RANK": rank % 8,
        "GROUP_RANK": rank // 8,
        "WORLD_SIZE": 16,
        "LOCAL_WORLD_SIZE": 8,
        "MASTER_ADDR": "192.168.7.1",
        "MASTER_PORT": 29500,
        **more,
    }


def table_rank(rank: int, size: int = 8, **more: str | int) -> dict[str, str | int]:
    """The variables that the guide's loop sets for a rank."""
    return {
        "RANK_ID": rank,
        "DEVICE_ID": rank % 8,
        "RANK_SIZE": size,
        "RANK_TABLE_FILE": "/job/table.json",
        "HCCL_CONNECT_TIMEOUT": 600,
        **more,
    }


def worker(rank: int, size: int = 8, **more: str | int) -> dict[str, str | int]:
    """The variables that the guide sets for a worker of a dynamic cluster."""
    return {
        "MS_ROLE": "MS_WORKER",
        "MS_NODE_ID": rank,
        "MS_WORKER_NUM": size,
        "MS_SCHED_HOST": "192.168.7.1",
        "MS_SCHED_PORT": 8118,
        **more,
    }


def read(folder: Path, *texts: str) -> Launch:
    """The launch that files with these texts describe."""
    return read_launch_files(written(folder, *texts))


def written(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"env{number}.log" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def process(pid: int, env: Mapping[str, str | int], *words: str, parent: int = 1, **more: Any) -> JobProcess:
    return JobProcess(
        pid, parent, {n: str(v) for n, v in env.items()}, words or ("python3", "/job/train.py"), **more
    )


def running(**by_host: Sequence[JobProcess]) -> tuple[Launch, ...]:
    return launch_of_processes(by_host)


def torch_job(**more: str | int) -> dict[str, list[JobProcess]]:
    """Sixteen ranks on two hosts and their agents."""
    agents = {
        node: process(
            99,
            {},
            *("python3", "/usr/bin/torchrun", "--nnodes=2", f"--node_rank={node}", "--nproc_per_node=8"),
            *("--master_addr=192.168.7.1", "--master_port=29500", "/job/train.py"),
        )
        for node in (0, 1)
    }
    return {
        f"node{node + 1}": [
            agents[node],
            *(
                process(100 + r, torch_rank(r, TORCHELASTIC_RUN_ID="none", **more), parent=99)
                for r in range(node * 8, node * 8 + 8)
            ),
        ]
        for node in (0, 1)
    }


def a_plan(backend: str = "hccl", hosts: int = 2, ranks: int = 8) -> JobPlan:
    wishes = JobWishes(
        backend=SourcedValue(Backend(backend), "test"), ranks_per_host=SourcedValue(ranks, "--ranks-per-host")
    )
    plan = draft([Host(f"node{n}", f"node{n}") for n in range(1, hosts + 1)], wishes)
    return replace(plan, vendor=ASCEND if plan.backend.value is Backend.HCCL else None)


def the_facts(hosts: int = 2, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The facts of the hosts: addresses, names, devices."""
    known: dict[str, tuple[str, ...]] = {f"node{n}": (f"192.168.7.{n}",) for n in range(1, hosts + 1)}
    known.update({name: (address,) if address else () for name, address in (names or {}).items()})
    every = [f"node{n}" for n in range(1, hosts + 1)]
    return {
        "addresses": {h: {"lo": ("127.0.0.1", "::1"), "eth0": (f"192.168.7.{h[4:]}",)} for h in every},
        "names": {host: ResolvedNames(known, host) for host in every},
        "identity": {host: f"{host}.cluster.local" for host in every},
        "devices": {
            host: Devices({ASCEND.name: FoundDevices(tuple(range(8)), 8)}, "atlas-a2") for host in every
        },
        "job-processes": dict.fromkeys(every, ()),
    }


def judged(
    id: str,
    launches: Sequence[Launch],
    plan: JobPlan | None = None,
    facts: Mapping[str, Any] | None = None,
) -> tuple[list[Problem], str]:
    """The problems that a check finds, and the reason why it cannot decide."""
    check: Check = CHECKS[id]
    plan = plan or a_plan()
    given = {"plan": plan, "launches": tuple(launches), "needed-hosts": len(plan.hosts)}
    known = {**the_facts(), **given, **(facts or {})}
    needs: list[Any] = [getattr(need, "need", need) for need in check.needs]
    problems: list[Problem] = []
    doubt = ""
    try:
        for problem in check.run(*(known.get(need.name) for need in needs)):
            problems.append(problem)  # noqa: PERF402
    except Undecided as undecided:
        doubt = str(undecided)
    return problems, doubt


def words(problem: Problem) -> str:
    """The whole text of a problem."""
    seen = " ".join(f"{e.source}: {e.text}" for e in problem.evidence)
    parts = (problem.summary, problem.expected, problem.actual, problem.subject or "", seen)
    return " | ".join((*parts, " ; ".join(problem.commands)))
