"""Jobs in pods, jobs side by side, jobs that are only partly visible: healthy ones are not called faulty."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from doctor.job.launch.processes import JobProcess
from doctor.model import Confidence, Problem, Severity, View
from tests.support.each import each
from tests.support.launches import a_plan, judged, process, running, the_facts, torch_rank, words, worker

INCONSISTENT, RANKS, MASTER = CHECKS = ("launch-inconsistent", "launch-ranks", "master-not-here")
Jobs = dict[str, list[JobProcess]]
LOCAL = "127.0.0.1"
HEAD, OTHER = "192.168.7.1", "192.168.7.3"


def found(
    job: Jobs, hosts: int = 2, backend: str = "nccl", ranks: int = 8
) -> tuple[dict[str, list[Problem]], list[str]]:
    """The problems by check, and the reasons of undecided checks."""
    facts = {**the_facts(hosts), "job-processes": {f"node{n}": () for n in range(1, hosts + 1)}}
    said = {id: judged(id, running(**job), a_plan(backend, hosts, ranks), facts) for id in CHECKS}
    return {id: problems for id, (problems, _) in said.items()}, [why for _, why in said.values() if why]


def silent(job: Jobs, **given: Any) -> list[str]:
    """The reasons of undecided checks; asserts that there is no problem."""
    problems, doubts = found(job, **given)
    assert [words(problem) for some in problems.values() for problem in some] == []
    return doubts


def only(job: Jobs, **given: Any) -> Problem:
    problems, _ = found(job, **given)
    (problem,) = [problem for some in problems.values() for problem in some]
    return problem


def torchrun(pid: int, *options: str, **env: str | int) -> JobProcess:
    return process(pid, env, "python3", "/usr/bin/torchrun", *options, "/job/train.py")


def agent_and_ranks(
    node: int = 0, nodes: int = 1, each: int = 8, master: str = LOCAL, pid: int = 90, **more: str | int
) -> list[JobProcess]:
    """The processes that torchrun starts on one host."""
    where = ("--standalone",) if master == "localhost" else (f"--master_addr={master}",)
    options = (f"--nnodes={nodes}", f"--node_rank={node}", f"--nproc_per_node={each}", *where)
    return [
        torchrun(pid, *options, **{n: v for n, v in more.items() if "NCCL" in n}),
        *(
            process(
                pid + 1 + local,
                torch_rank(
                    node * each + local,
                    LOCAL_RANK=local,
                    GROUP_RANK=node,
                    WORLD_SIZE=nodes * each,
                    LOCAL_WORLD_SIZE=each,
                    MASTER_ADDR=master,
                    TORCHELASTIC_RUN_ID="none",
                )
                | more,
                parent=pid,
            )
            for local in range(each)
        ),
    ]


def msrun(node: int, *outer: str, worker_num: int = 16) -> list[JobProcess]:
    """If srun has started it, its command line appears twice: as its own, and in that of srun."""
    own = (f"--worker_num={worker_num}", "--local_worker_num=8", f"--master_addr={HEAD}", "net.py")
    agent = process(9, {}, "python", "/usr/bin/msrun", *own)
    return [process(5, {}, *outer, "msrun", *own), agent] if outer and not node else [agent]


def workers(scheduler: Mapping[str, str | int], **env: Any) -> list[JobProcess]:
    """Eight workers and their scheduler, on one host."""
    own: dict[str, str | int] = {
        "MS_ROLE": "MS_SCHED",
        "MS_WORKER_NUM": 8,
        "MS_SCHED_HOST": HEAD,
        "MS_SCHED_PORT": 8118,
    }
    return [
        process(99, {**own, **scheduler}),
        *(process(100 + rank, worker(rank, **env)) for rank in range(8)),
    ]


def alone(rank: int, **env: str | int) -> JobProcess:
    return process(10 + rank, {"RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": 23456, **env})


HEALTHY: dict[str, Jobs] = {
    "pods: rank 0 waits at localhost": {
        "node1": [alone(0, MASTER_ADDR="localhost")],
        "node2": [alone(1, MASTER_ADDR=HEAD)],
    },
    "pods with one device each": {
        "node1": [
            each
            for node in range(8)
            for each in agent_and_ranks(node, nodes=8, each=1, master=HEAD, pid=100 * (node + 1))
        ]
    },
    "one device for each task": {
        "node1": [
            process(r, torch_rank(r, LOCAL_RANK=0, WORLD_SIZE=8, GROUP_RANK=0, CUDA_VISIBLE_DEVICES=0))
            for r in range(8)
        ]
    },
    "a job of one host on each of two": {f"node{n}": agent_and_ranks() for n in (1, 2)},
    "the same, with other variables": {
        "node1": agent_and_ranks(NCCL_ALGO="Ring"),
        "node2": agent_and_ranks(MASTER_PORT=29501),
    },
    "the same, starting": {f"node{n}": [torchrun(9, "--nproc_per_node=8")] for n in (1, 2)},
    "the same, starting at other ports": {
        f"node{n}": [torchrun(9, "--nproc_per_node=8", f"--master_port=2950{n}")] for n in (1, 2)
    },
    "mp.spawn on each of two hosts": {
        f"node{n}": [process(9, {"MASTER_ADDR": "localhost", "MASTER_PORT": 1}, spawns=True)] for n in (1, 2)
    },
    "two standalone jobs of one host": {
        "node1": [
            each
            for pid, id, devices, env in (
                (100, "aaaa", "0,1,2,3", {"NCCL_P2P_DISABLE": 1}),
                (200, "bbbb", "4,5,6,7", {"MASTER_PORT": 29501}),
            )
            for each in agent_and_ranks(
                each=4,
                master="localhost",
                pid=pid,
                TORCHELASTIC_RUN_ID=id,
                CUDA_VISIBLE_DEVICES=devices,
                **env,
            )
        ]
    },
    "srun around msrun": {"node1": msrun(0, "srun", "-N2", "--ntasks-per-node=1"), "node2": msrun(1)},
    "mpirun around msrun": {"node1": msrun(0, "mpirun", "-np", "2", "-H", "node1,node2"), "node2": msrun(1)},
    "a scheduler without the workers' variables": {"node1": workers({}, HCCL_BUFFSIZE=400)},
    "a scheduler at another address of its host": {"node1": workers({"MS_SCHED_HOST": LOCAL})},
    "workers that inherited a device": {"node1": workers({"DEVICE_ID": 0}, DEVICE_ID=0)},
    "deepspeed on one of two hosts": {
        "node1": [
            process(
                5, {}, "python3", "-m", "deepspeed.launcher.launch", f"--master_addr={LOCAL}", "/job/train.py"
            ),
            *(
                process(
                    10 + r,
                    {"RANK": r, "LOCAL_RANK": r, "WORLD_SIZE": 8, "MASTER_ADDR": LOCAL, "MASTER_PORT": 1},
                    parent=5,
                )
                for r in range(8)
            ),
        ]
    },
    "a loop that tells no rank": {
        "node1": [
            process(r, {"LOCAL_RANK": r, "WORLD_SIZE": 8, "MASTER_ADDR": LOCAL, "MASTER_PORT": 1})
            for r in range(8)
        ]
    },
    "libraries at other places": {
        "node1": [alone(0, MASTER_ADDR=HEAD, NCCL_HOME="/opt/nccl")],
        "node2": [alone(1, MASTER_ADDR=HEAD, NCCL_HOME="/usr/local/nccl", NCCL_VERSION="2.19.3")],
    },
}


@pytest.mark.parametrize("backend", ["nccl", "hccl"])
@pytest.mark.parametrize("ranks", [8, 2])
@each("name", HEALTHY)
def test_healthy_jobs(name: str, ranks: int, backend: str) -> None:
    assert silent(HEALTHY[name], ranks=ranks, backend=backend) == []


def test_a_service_in_front_of_the_scheduler() -> None:
    """The operator gives the workers the address of a service, and the scheduler that of its own pod."""
    (doubt,) = silent({"node1": workers({}, MS_SCHED_HOST="10.96.1.7")}, backend="hccl")
    assert "10.96.1.7 may be a service that forwards to node1" in doubt


def nobodys(job: Jobs, view: View, hosts: int = 2) -> Severity | None:
    facts = {**the_facts(hosts), "view": {f"node{n}": view for n in range(1, hosts + 1)}}
    (problem,), doubt = judged(MASTER, running(**job), a_plan("gloo", hosts), facts)
    assert doubt == ""
    assert "is not that of any of these hosts" in problem.actual
    return problem.severity


def test_a_job_that_waits_for_an_address_of_nobody() -> None:
    """In pods, the address may be that of a service. Launchers that have started ranks did meet there."""
    workers_of_one = {"node1": workers({"MS_SCHED_HOST": "10.96.1.7"}, MS_SCHED_HOST="10.96.1.7")}
    assert nobodys(workers_of_one, View.HOST) is None
    assert nobodys(workers_of_one, View.CONTAINER) is Severity.WARN
    started = {f"node{n + 1}": agent_and_ranks(n, nodes=2, master="10.0.0.9") for n in (0, 1)}
    waiting = {host: processes[:1] for host, processes in started.items()}
    assert nobodys(waiting, View.HOST) is None
    assert nobodys(started, View.HOST) is Severity.WARN
    assert nobodys({"node1": waiting["node1"]}, View.HOST, hosts=1) is None
    by_hand = {f"node{n + 1}": [alone(n, MASTER_ADDR="10.0.0.9")] for n in (0, 1)}
    assert nobodys(by_hand, View.HOST) is None
    public = {f"node{n + 1}": [alone(n, MASTER_ADDR="8.8.4.4")] for n in (0, 1)}
    assert nobodys(public, View.HOST) is Severity.WARN
    (launch,) = running(**by_hand)
    (problem,), _ = judged(MASTER, [replace(launch, met=True)], a_plan("gloo"), the_facts())
    assert problem.severity is Severity.WARN, "its ranks came to doctor itself by this address"


def test_a_rendezvous_of_nobody() -> None:
    """All launchers of the job are visible, so none of them can be the endpoint."""
    options = ("--nnodes=2", "--rdzv_backend=c10d", "--rdzv_endpoint=10.0.0.9:29400")
    agents = {f"node{n}": [torchrun(9, *options)] for n in (1, 2)}
    assert nobodys(agents, View.HOST) is None
    problems, doubt = judged(MASTER, running(node1=agents["node1"]), a_plan("gloo"), the_facts())
    assert problems == []
    assert "may be that of a host that was not asked" in doubt


def test_every_host_runs_as_the_first_node() -> None:
    """The same script was started on both, with one node rank or with the ranks of one host."""
    agents = {f"node{n}": agent_and_ranks(0, nodes=2, master=HEAD)[:1] for n in (1, 2)}
    assert only(agents).summary == "--node_rank=0 is given 2 times"
    ranks = {f"node{n}": agent_and_ranks(0, nodes=2, master=HEAD) for n in (1, 2)}
    summaries = {problem.summary for some in found(ranks)[0].values() for problem in some}
    assert {"--node_rank=0 is given 2 times", "ranks 0-7 are given 2 times"} <= summaries
    by_hand = {f"node{n}": [process(r, torch_rank(r)) for r in range(8)] for n in (1, 2)}
    assert "ranks 0-7 are given 2 times" in [
        problem.summary for some in found(by_hand)[0].values() for problem in some
    ]


def test_a_whole_job_and_a_part_of_another() -> None:
    """The other job continues on hosts that were not examined."""
    job = {f"node{n + 1}": agent_and_ranks(n, nodes=2, master=HEAD) for n in (0, 1)}
    assert silent({**job, "node3": agent_and_ranks(0, nodes=2, master=OTHER)}, hosts=3) == []


# Faulty jobs.


FAULTS: dict[str, tuple[Jobs, str, str]] = {
    "a worker waits at loopback": (
        {"node1": [alone(0, MASTER_ADDR=HEAD)], "node2": [alone(1, MASTER_ADDR="localhost")]},
        MASTER,
        "each host waits for itself",
    ),
    "all wait at loopback": (
        {"node1": [alone(0, MASTER_ADDR=LOCAL)], "node2": [alone(1, MASTER_ADDR=LOCAL)]},
        MASTER,
        "each host waits for itself",
    ),
    "mp.spawn that was told of several nodes": (
        {
            f"node{n + 1}": [
                process(9, {"MASTER_ADDR": LOCAL, "NODE_RANK": n}, "python", "t.py", spawns=True)
            ]
            for n in (0, 1)
        },
        MASTER,
        "each host waits for itself",
    ),
    "a worker with another variable than the others": (
        {"node1": [*workers({})[:-1], process(107, worker(7, HCCL_BUFFSIZE=1))]},
        INCONSISTENT,
        "HCCL_BUFFSIZE differs",
    ),
    "two pods with one rank": (
        {
            "node1": [
                each
                for node in (0, 1, 2, 2)
                for each in agent_and_ranks(node, nodes=4, each=1, master=HEAD, pid=100 * (node + 1))
            ]
        },
        RANKS,
        "RANK=2 is given 2 times",
    ),
    "two ranks of a loop on one device": (
        {
            "node1": [
                process(r, {"LOCAL_RANK": r % 7, "WORLD_SIZE": 8, "MASTER_ADDR": LOCAL, "MASTER_PORT": 1})
                for r in range(8)
            ]
        },
        RANKS,
        "2 ranks of one host take the same device",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faulty_jobs(name: str) -> None:
    job, id, summary = FAULTS[name]
    problems, _ = found(job, backend="hccl")
    severe = [problem for problem in problems[id] if summary in problem.summary]
    assert len(severe) == 1, problems
    assert severe[0].severity is None


def by_hand(*env: Mapping[str, str | int], program: str = "/job/eval.py") -> Jobs:
    pod: dict[str, str | int] = {"RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": HEAD, "MASTER_PORT": 1}
    return {"node1": [process(20 + n, {**pod, **each}, "python", program) for n, each in enumerate(env)]}


def test_scripts_started_by_hand_in_a_pod() -> None:
    """They inherit the pod's rank variables but are not ranks."""
    problem = only(by_hand({}, {}))
    assert problem.summary == "RANK=0 is given 2 times"
    assert (problem.severity, problem.confidence) == (Severity.WARN, Confidence.SUSPECT)
    problems, _ = found(by_hand({"LOCAL_RANK": 0}, {"LOCAL_RANK": 0}))
    assert {problem.severity for problem in problems[RANKS]} == {Severity.WARN}


@pytest.mark.parametrize(
    "job",
    [
        by_hand({}, {}, {"RANK": 1}),
        by_hand({"LOCAL_RANK": 0}, {"LOCAL_RANK": 1}),
        {"node1": [*by_hand({}, {})["node1"], process(9, {}, "torchrun", "--nnodes=2", "/job/eval.py")]},
        by_hand({"TORCHELASTIC_RUN_ID": "none"}, {"TORCHELASTIC_RUN_ID": "none"}),
        {"node1": by_hand({})["node1"], "node2": by_hand({})["node1"]},
        {"node1": [process(n, {"PMI_RANK": 0, "PMI_SIZE": 2}) for n in (1, 2)]},
    ],
)
def test_ranks_that_are_doubled(job: Jobs) -> None:
    """They are ranks if there is a second rank number of the same program, or a launcher."""
    problems, _ = found(job)
    (problem,) = [problem for problem in problems[RANKS] if "given 2 times" in problem.summary]
    assert problem.severity is None
    assert problem.confidence is Confidence.CERTAIN


def test_doubled_ranks_of_the_same_hosts_are_one_finding() -> None:
    job = {
        f"node{n}": [
            process(10 + rank, {"RANK": rank, "WORLD_SIZE": 600, "MASTER_ADDR": HEAD}) for rank in range(300)
        ]
        for n in (1, 2)
    }
    problems, _ = found(job)
    (problem,) = problems[RANKS]
    assert problem.summary == "ranks 0-299 are given 2 times"
    assert problem.hosts == ("node1", "node2")
    assert problem.evidence


# Ranks that do not run.


def one_host_job(lost: Sequence[int], address: str = LOCAL) -> Jobs:
    """Eight ranks without any information about hosts, except those that are lost."""
    env: dict[str, str | int] = {"WORLD_SIZE": 8, "MASTER_ADDR": address, "MASTER_PORT": 29500}
    return {"node1": [process(10 + r, {"RANK": r, **env}) for r in range(8) if r not in lost]}


STARTING = ("--nproc_per_node=8", f"--master_addr={HEAD}")
INCOMPLETE: dict[str, Jobs] = {
    "one rank": one_host_job([3]),
    "several": one_host_job([0, 1, 5]),
    "half of them": one_host_job([4, 5, 6, 7]),
    "all but rank 0": one_host_job(range(1, 8)),
    "half of them, with an address": one_host_job([4, 5, 6, 7], HEAD),
    "on one of two hosts that have a job each": {
        "node1": agent_and_ranks(),
        "node2": [each for each in agent_and_ranks() if each.pid != 94],
    },
    "of a loop on each of two hosts": {
        f"node{n}": [process(r, {"RANK": r, "WORLD_SIZE": 8, "MASTER_ADDR": LOCAL}) for r in range(8 - n)]
        for n in (1, 2)
    },
    "a launcher that comes late": {
        f"node{n + 1}": [torchrun(9, "--nnodes=3", f"--node_rank={n}", *STARTING)] for n in (0, 1)
    },
    "an msrun that comes late": {"node1": msrun(0, worker_num=24), "node2": msrun(1, worker_num=24)},
    "a rendezvous that may grow": {
        f"node{n}": [torchrun(9, "--nnodes=1:4", "--rdzv_backend=c10d", f"--rdzv_endpoint={HEAD}:29400")]
        for n in (1, 2)
    },
    "more than one host can hold": {
        "node1": [
            process(10 + r, {"RANK": r, "WORLD_SIZE": 16, "MASTER_ADDR": LOCAL, "MASTER_PORT": 29500})
            for r in range(7)
        ]
    },
}


@pytest.mark.parametrize("given", [("hccl", 8), ("gloo", 2)])
@pytest.mark.parametrize("hosts", [1, 2, 3])
@each("name", INCOMPLETE)
def test_ranks_that_do_not_run_may_have_ended_or_come_later(
    name: str, hosts: int, given: tuple[str, int]
) -> None:
    silent(INCOMPLETE[name], hosts=hosts, backend=given[0], ranks=given[1])
