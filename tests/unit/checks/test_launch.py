"""The checks of a launch: silent about correct ones, whatever the launcher, and exact about faults."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from doctor.facts.network import ROUTES, ResolvedNames
from doctor.facts.software import Environment
from doctor.facts.tables import JobTable
from doctor.job.launch.process_env import Launch
from doctor.job.launch.processes import JobProcess
from doctor.job.plan import JobPlan
from doctor.job.ranktable import LiveDevice, LiveServer, make_table, read_table
from doctor.model import Confidence, Problem, Severity, View
from tests.support.captures import held
from tests.support.cases import cases
from tests.support.launches import (
    C10D,
    DYNAMIC_CLUSTER,
    ENV_FILE,
    HEALTHY,
    MPIRUN,
    MSRUN,
    TORCH_NPU_RUN,
    TORCHRUN,
    a_plan,
    dump,
    judged,
    process,
    read,
    running,
    table_rank,
    the_facts,
    torch_job,
    torch_rank,
    words,
    worker,
)

INCONSISTENT, RANKS, MASTER, TIMEOUTS = LAUNCH_CHECKS = (
    "launch-inconsistent",
    "launch-ranks",
    "master-not-here",
    "launch-timeouts",
)
Jobs = dict[str, list[JobProcess]]


def silent(launches: list[Launch] | tuple[Launch, ...], plan: JobPlan | None = None) -> None:
    for id in LAUNCH_CHECKS:
        problems, doubt = judged(id, launches, plan)
        assert ([words(problem) for problem in problems], doubt) == ([], ""), id


def only(launches: list[Launch] | tuple[Launch, ...], id: str) -> Problem:
    """The only problem; no other check of the launch reports anything."""
    found = {check: judged(check, launches) for check in LAUNCH_CHECKS}
    others = {check: [words(p) for p in problems] for check, (problems, _) in found.items() if check != id}
    assert not any(others.values()), others
    (problem,) = found[id][0]
    assert problem.evidence
    assert problem.expected
    assert problem.actual
    assert problem.commands
    assert "node1" not in problem.summary
    assert "node2" not in problem.summary
    return problem


def changed(job: Jobs, pids: range | tuple[int, ...], **env: str | int | None) -> Jobs:
    """The job with variables of some processes set or, if None, removed."""

    def change(each: JobProcess) -> JobProcess:
        if each.pid not in pids:
            return each
        merged = {**each.env, **{name: str(value) for name, value in env.items() if value is not None}}
        left = {name: value for name, value in merged.items() if env.get(name, "") is not None}
        return process(each.pid, left, *each.command, parent=each.parent)

    return {host: [change(each) for each in processes] for host, processes in job.items()}


# Healthy launches.


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_launch_of_each_launcher(name: str, tmp_path: Path) -> None:
    silent([read(tmp_path, *HEALTHY[name])])


DUMPS = {
    "rank table": [dump(table_rank(rank)) for rank in range(8)],
    "rank table on two hosts": [
        dump(table_rank(rank, 16), f"node{rank // 8 + 1}.cluster.local") for rank in range(16)
    ],
    "dynamic cluster": [
        *(dump(worker(rank)) for rank in range(8)),
        dump({**worker(7), "MS_ROLE": "MS_SCHED"}),
    ],
    "torchrun": [dump(torch_rank(rank), f"node{rank // 8 + 1}") for rank in range(16)],
    "one device for each rank": [
        dump({"RANK": r, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "MASTER_ADDR": "node1", "CUDA_VISIBLE_DEVICES": r})
        for r in range(2)
    ],
}


@pytest.mark.parametrize("name", DUMPS)
def test_healthy_dumps(name: str, tmp_path: Path) -> None:
    silent([read(tmp_path, *DUMPS[name])])


def of_one_host(env: list[dict[str, str | int]], *more: JobProcess, host: str = "node1") -> Jobs:
    return {host: [*(process(100 + n, each, parent=99) for n, each in enumerate(env)), *more]}


RUNNING: dict[str, Jobs] = {
    "torchrun": torch_job(),
    "torchrun, other words for the master": changed(torch_job(), range(108, 116), MASTER_ADDR="node1"),
    "torchrun, rendezvous on the other host": {
        host: [
            process(each.pid, {**each.env, "MASTER_ADDR": "192.168.7.2"}, *each.command)
            for each in processes[1:]
        ]
        for host, processes in torch_job().items()
    },
    "dynamic cluster": of_one_host(
        [worker(rank) for rank in range(8)], process(200, {**worker(7), "MS_ROLE": "MS_SCHED"})
    ),
    "msrun without node ranks": {
        "node1": [
            *(process(n, {**worker(0, 4), "MS_NODE_ID": ""}, "python", "net.py") for n in range(2)),
            process(9, {**worker(0, 4), "MS_ROLE": "MS_SCHED"}, "python", "net.py"),
        ],
        "node2": [process(n, {**worker(0, 4), "MS_NODE_ID": ""}, "python", "net.py") for n in range(2)],
    },
    "rank table": of_one_host([table_rank(rank) for rank in range(8)]),
    "mpirun": {
        f"node{n + 1}": [
            process(
                r, {"OMPI_COMM_WORLD_RANK": r, "OMPI_COMM_WORLD_SIZE": 4, "OMPI_COMM_WORLD_LOCAL_SIZE": 2}
            )
            for r in (2 * n, 2 * n + 1)
        ]
        for n in (0, 1)
    },
    "slurm": {
        f"node{n + 1}": [
            process(
                r, {"SLURM_PROCID": r, "SLURM_STEP_NUM_TASKS": 4, "SLURM_JOB_ID": 5, "MASTER_ADDR": "node1"}
            )
            for r in (2 * n, 2 * n + 1)
        ]
        for n in (0, 1)
    },
    "mp.spawn": {
        f"node{n}": [process(n, {"MASTER_ADDR": "node1", "MASTER_PORT": 1, "WORLD_SIZE": 16}, spawns=True)]
        for n in (1, 2)
    },
    "one-host jobs beside each other": {
        f"node{n}": [
            process(r, torch_rank(r, WORLD_SIZE=8, MASTER_ADDR="127.0.0.1", TORCHELASTIC_RUN_ID="none"))
            for r in range(8)
        ]
        for n in (1, 2)
    },
    "two jobs of one program": {
        "node1": [
            process(
                port + r,
                {"RANK": r, "WORLD_SIZE": 2, "MASTER_PORT": port, "MASTER_ADDR": "node1", "NCCL_ALGO": port},
            )
            for port in (29500, 29600)
            for r in range(2)
        ]
    },
    "variables of hosts": changed(
        torch_job(), range(108, 116), HCCL_IF_IP="1", NCCL_IB_HCA="a", NCCL_DEBUG="INFO"
    ),
}


@pytest.mark.parametrize("name", RUNNING)
def test_healthy_jobs_that_run(name: str) -> None:
    silent(running(**RUNNING[name]))


def test_commands_of_a_slurm_step_are_no_ranks_that_were_lost() -> None:
    """Other commands of the same step have already ended."""
    step = {"SLURM_STEP_NUM_TASKS": 4, "SLURM_JOB_ID": 5}
    here = [process(r, {**step, "SLURM_PROCID": r}, "sed") for r in (0, 1, 3)]
    found, _ = judged(RANKS, running(node1=here), a_plan(hosts=1))
    assert not [problem for problem in found if problem.severity is not Severity.WARN]


def test_standalone_and_one_host(tmp_path: Path) -> None:
    silent([read(tmp_path, "torchrun --standalone --nproc_per_node=8 train.py\n")])
    silent([read(tmp_path, "export MASTER_ADDR=localhost MASTER_PORT=1\npython t.py\n")], a_plan(hosts=1))
    silent([read(tmp_path, "msrun --worker_num=8 --local_worker_num=8 net.py\n")])


# launch-inconsistent


def test_one_rank_has_a_different_port(tmp_path: Path) -> None:
    texts = [
        dump(torch_rank(r, **({"MASTER_PORT": 29501} if r == 5 else {})), f"node{r // 8 + 1}")
        for r in range(16)
    ]
    problem = only([read(tmp_path, *texts)], INCONSISTENT)
    assert problem.hosts == ("node1",)
    assert [(place.host, place.rank) for place in problem.where] == [("node1", 5)]
    assert "29501, for rank 5 on node1" in problem.actual
    assert "29500" in problem.expected
    assert problem.subject == "env0.log … env15.log: MASTER_PORT"
    assert problem.commands == ("export MASTER_PORT=29500",)
    assert problem.confidence is Confidence.CERTAIN
    assert any("env5.log" in evidence.source for evidence in problem.evidence)


@cases
def test_a_variable_of_one_rank_that_runs(name: str, value: str | int) -> None:
    launches = running(**changed(torch_job(HCCL_CONNECT_TIMEOUT=600), (111,), **{name: value}))
    (problem,), _ = judged(INCONSISTENT, launches)
    assert problem.hosts == ("node2",)
    assert [(place.host, place.rank) for place in problem.where] == [("node2", 11)]
    assert problem.subject == f"train.py: {name}"
    assert problem.evidence[0].source == "process 111 on node2"


def test_two_hosts_that_differ_are_a_tie() -> None:
    launches = running(**changed(torch_job(), range(108, 116), HCCL_BUFFSIZE=100))
    problem = only(launches, INCONSISTENT)
    assert problem.confidence is Confidence.SUSPECT
    assert problem.hosts == ("node1", "node2")
    assert "undecided" in problem.summary
    assert problem.actual == "(not set): ranks 0-7; 100: ranks 8-15"


@pytest.mark.parametrize(
    ("texts", "subject"),
    [
        (
            [TORCHRUN.format(node=0), TORCHRUN.format(node=1).replace("PORT=29500", "PORT=29501")],
            "--master_port",
        ),
        ([TORCHRUN.format(node=0), TORCHRUN.format(node=1).replace("NNODES=2", "NNODES=3")], "--nnodes"),
        (
            [MSRUN.format(node=0), MSRUN.format(node=1).replace("master_port=8118", "master_port=8119")],
            "--master_port",
        ),
        ([MSRUN.format(node=0), MSRUN.format(node=1).replace("=300", "=30")], "--cluster_time_out"),
        ([C10D, C10D.replace("job7", "job8")], "--rdzv_id"),
        ([ENV_FILE.format(node=0), ENV_FILE.format(node=1).replace('"600"', "650")], "HCCL_CONNECT_TIMEOUT"),
        (
            [TORCH_NPU_RUN.format(node=0), TORCH_NPU_RUN.format(node=1).replace("=600", "=650")],
            "HCCL_CONNECT_TIMEOUT",
        ),
    ],
)
def test_scripts_of_two_hosts_that_differ(texts: list[str], subject: str, tmp_path: Path) -> None:
    problem = only([read(tmp_path, *texts)], INCONSISTENT)
    assert problem.subject == f"env0.log … env1.log: {subject}"
    assert problem.confidence is Confidence.SUSPECT


def test_two_ways_to_write_the_master_are_equal(tmp_path: Path) -> None:
    other = TORCHRUN.format(node=1).replace("192.168.7.1", "node1.cluster.local")
    silent([read(tmp_path, TORCHRUN.format(node=0), other)])
    silent([read(tmp_path, C10D, C10D.replace("node2:", "192.168.7.2:"))])


def test_a_rank_table_and_its_alternative_are_both_given(tmp_path: Path) -> None:
    both: dict[str, Any] = {"CM_CHIEF_IP": "192.168.7.1", "CM_CHIEF_PORT": 6000, "CM_WORKER_SIZE": 8}
    problem = only([read(tmp_path, *(dump(table_rank(r, **both)) for r in range(8)))], INCONSISTENT)
    assert problem.commands == ("unset CM_CHIEF_IP CM_CHIEF_PORT CM_WORKER_SIZE",)


@pytest.mark.parametrize(("local", "says"), [(4, "fewer"), (16, "more")])
def test_workers_that_do_not_add_up(local: int, says: str, tmp_path: Path) -> None:
    texts = [
        MSRUN.format(node=n).replace("--local_worker_num=8", f"--local_worker_num={local}") for n in (0, 1)
    ]
    problem = only([read(tmp_path, *texts)], INCONSISTENT)
    assert problem.summary.startswith(f"msrun starts {says} workers")
    assert problem.actual.startswith(f"{2 * local}: {local} + {local}")


def test_torchrun_does_not_read_what_its_ranks_get(tmp_path: Path) -> None:
    texts = [f"export WORLD_SIZE={size}\n{TORCHRUN.format(node=n)}" for n, size in enumerate((2, 16))]
    silent([read(tmp_path, *texts)])


def test_a_script_may_set_ranks_for_some_commands_only(tmp_path: Path) -> None:
    silent(
        [read(tmp_path, "RANK=0 python t.py &\nRANK=1 python t.py &\nRANK=2 python t.py &\npython t.py\n")]
    )


def test_one_script_decides_nothing_about_other_hosts(tmp_path: Path) -> None:
    silent([read(tmp_path, MSRUN.format(node=0))])
    silent([read(tmp_path, MSRUN.format(node=0))], a_plan(hosts=1))


def test_a_world_that_is_not_the_product(tmp_path: Path) -> None:
    problem = only(
        [read(tmp_path, ENV_FILE.format(node=0).replace("WORLD_SIZE=16", "WORLD_SIZE=8"))], INCONSISTENT
    )
    assert (problem.severity, problem.expected) == (None, "16: 2 × 8")
    assert problem.commands == ("export WORLD_SIZE=16",)


def test_ranks_of_srun_get_the_world_of_the_script(tmp_path: Path) -> None:
    line = "srun --nodes=2 --ntasks-per-node=4 python train.py\n"
    problem = only([read(tmp_path, "export WORLD_SIZE=4\n" + line)], INCONSISTENT)
    assert (problem.severity, problem.expected) == (Severity.WARN, "8: 2 × 4")
    silent([read(tmp_path, "export WORLD_SIZE=8\n" + line)])


@pytest.mark.parametrize("world", [1, 2, 8])
def test_a_launcher_gives_its_ranks_a_world_of_their_own(world: int, tmp_path: Path) -> None:
    silent([read(tmp_path, f"export WORLD_SIZE={world}\n" + TORCHRUN.format(node=0))])


# launch-ranks


@cases
def test_one_of_several_dumps_has_a_wrong_rank(
    change: dict[str, str | int], summary: str, rank: int | None, tmp_path: Path
) -> None:
    envs = [{**table_rank(r), **(change if r == 5 else {})} for r in range(8)]
    problems, _ = judged(RANKS, [read(tmp_path, *(dump(env, "node2") for env in envs))])
    (problem,) = [problem for problem in problems if problem.summary == summary]
    assert problem.hosts == ("node2",)
    assert {place.rank for place in problem.where} == {rank}
    assert "env5.log" in words(problem)
    assert problem.commands[0].startswith("export RANK_ID=$i")
    others = [problem.summary for problem in problems if problem.summary != summary]
    assert set(others) <= {"some ranks are not assigned to any process"}, "rank 5 is missing then"


def test_ranks_beyond_the_world_are_one_finding(tmp_path: Path) -> None:
    texts = [dump(torch_rank(rank, WORLD_SIZE=8), f"node{rank // 8 + 1}") for rank in range(16)]
    (problem,), _ = judged(RANKS, [read(tmp_path, *texts)])
    assert problem.expected == "0 to 7 (WORLD_SIZE=8)"
    assert [place.rank for place in problem.where] == list(range(8, 16))
    assert problem.hosts == ("node2",)
    assert problem.actual.endswith("RANK=11 (env11.log) and 4 more")


def test_a_loop_that_does_not_export_the_rank(tmp_path: Path) -> None:
    texts = [dump(table_rank(rank, RANK_ID=0)) for rank in range(8)]
    problems, _ = judged(RANKS, [read(tmp_path, *texts)])
    assert [problem.summary for problem in problems] == [
        "RANK_ID=0 is given 8 times",
        "some ranks are not assigned to any process",
    ]
    assert "ranks 1-7 missing" in problems[1].actual


def test_a_rank_that_is_not_set(tmp_path: Path) -> None:
    envs = [table_rank(rank) for rank in range(8)]
    del envs[3]["RANK_ID"]
    problem = only([read(tmp_path, *(dump(env, "node1") for env in envs))], RANKS)
    assert problem.summary == "RANK_ID is not set"
    assert problem.actual == "not set for env3.log on node1"
    assert problem.hosts == ("node1",)


def test_the_dump_of_one_rank_is_missing(tmp_path: Path) -> None:
    problem = only([read(tmp_path, *(dump(table_rank(r)) for r in range(8) if r != 3))], RANKS)
    assert problem.actual == "rank 3 missing"
    assert problem.confidence is Confidence.STRONG


def test_only_one_host_gave_dumps(tmp_path: Path) -> None:
    problems, doubt = judged(RANKS, [read(tmp_path, *(dump(table_rank(r, 16)) for r in range(8)))])
    assert problems == []
    assert "ranks 8-15 of 16" in doubt


def without(job: Jobs, *lost: int) -> Jobs:
    return {host: [each for each in processes if each.pid not in lost] for host, processes in job.items()}


@pytest.mark.parametrize(
    "job",
    [
        without(torch_job(), 110),  # rank 10 has ended, or has not started
        without(torch_job(), *range(101, 116)),  # all but rank 0
        without(torch_job(), 99, *range(108, 116)),  # no rank of node2, and no launcher
        {"node1": torch_job()["node1"]},
        {"node1": torch_job()["node1"][:1]},
        changed(torch_job(), range(100, 116), WORLD_SIZE=32),
        of_one_host([worker(rank) for rank in range(8)]),  # the scheduler has ended, or comes later
        of_one_host([table_rank(rank) for rank in (0, 3, 5)]),
    ],
)
@pytest.mark.parametrize("backend", ["gloo", "hccl"])
@pytest.mark.parametrize("hosts", [1, 2])
def test_ranks_that_do_not_run_are_nothing(job: Jobs, backend: str, hosts: int) -> None:
    """They may have ended with 0, or come later: `doctor hang` sees whether the others wait for them."""
    facts, plan = the_facts(2), a_plan(backend, hosts)
    found = {id: judged(id, running(**job), plan, facts)[0] for id in (INCONSISTENT, RANKS, MASTER)}
    assert not any(found.values()), found


def test_a_host_that_could_not_be_asked() -> None:
    heard = {"node1": ()}
    problems, doubt = judged(RANKS, running(node1=torch_job()["node1"]), facts={"job-processes": heard})
    assert problems == []
    assert "which ranks run on node2 is not known" in doubt


def test_two_processes_claim_one_rank() -> None:
    job = torch_job()
    job["node1"].append(process(500, torch_rank(3)))
    problems, _ = judged(RANKS, running(**job))
    assert problems[0].summary == "RANK=3 is given 2 times"
    assert problems[0].actual == "process 103 on node1, process 500 on node1"
    assert problems[1].summary == "2 ranks of one host take the same device"


@pytest.mark.parametrize(
    ("texts", "summary"),
    [
        ([TORCHRUN.format(node=0), TORCHRUN.format(node=0)], "--node_rank=0 is given 2 times"),
        ([TORCHRUN.format(node=0), TORCHRUN.format(node=2)], "--node_rank is out of range"),
        ([TORCHRUN.format(node="''"), TORCHRUN.format(node="0")], "--node_rank=0 is given 2 times"),
        ([MSRUN.format(node=1), MSRUN.format(node=1)], "--node_rank=1 is given 2 times"),
        ([ENV_FILE.format(node=1), ENV_FILE.format(node=1)], "NODE_RANK=1 is given 2 times"),
    ],
)
def test_wrong_node_ranks(texts: list[str], summary: str, tmp_path: Path) -> None:
    texts = [re.sub(r"--node_rank \$NODE_RANK", "", t) if "NODE_RANK=''" in t else t for t in texts]
    assert only([read(tmp_path, *texts)], RANKS).summary == summary


def side_by_side(launch: Launch) -> list[Problem]:
    return [each for id in LAUNCH_CHECKS for each in judged(id, [launch], a_plan(hosts=1), the_facts(1))[0]]


@cases
def test_a_number_that_torchrun_takes_or_refuses(words: str, says: str, tmp_path: Path) -> None:
    launch = read(tmp_path, f"torchrun {words} train.py\n")
    problems = [each.summary for each in judged(RANKS, [launch])[0] if "is not a number" in each.summary]
    assert problems == [says] * bool(says)


@cases
def test_jobs_side_by_side_at_one_port(text: str, says: str, tmp_path: Path) -> None:
    (problem,) = side_by_side(read(tmp_path, text))
    assert says in problem.summary
    assert (problem.severity, problem.hosts) == (None, ())


@cases
def test_jobs_that_do_not_share_a_port(text: str, tmp_path: Path) -> None:
    assert side_by_side(read(tmp_path, text)) == []


@cases
def test_two_hosts_that_meet_at_two_ports(text: str, tmp_path: Path) -> None:
    (problem,) = side_by_side(read(tmp_path, text))
    assert "--master_port is not the same" in problem.summary


def test_msrun_numbers_the_ranks_itself(tmp_path: Path) -> None:
    silent([read(tmp_path, MSRUN.format(node=-1), MSRUN.format(node=-1))])
    one_host = MSRUN.format(node=0).replace("worker_num=16", "worker_num=8")
    silent([read(tmp_path, one_host)])


def test_a_node_rank_that_one_of_two_scripts_gives(tmp_path: Path) -> None:
    text = "torchrun --nnodes=2 --nproc_per_node=8 --master_addr=node1 train.py\n"
    silent([read(tmp_path, text, text.replace("--nnodes=2", "--nnodes=2 --node_rank=1"))])


def test_a_role_that_mindspore_does_not_know(tmp_path: Path) -> None:
    texts = [dump({**worker(r), **({"MS_ROLE": "WORKER"} if r == 2 else {})}) for r in range(8)]
    problem = only([read(tmp_path, *texts)], RANKS)
    assert "`Role name is invalid`" in problem.summary
    assert problem.actual == "MS_ROLE=WORKER, for rank 2 (env2.log)"
    assert problem.where[0].rank == 2


def test_two_schedulers() -> None:
    sched = {**worker(0), "MS_ROLE": "MS_SCHED"}
    job = of_one_host([worker(rank) for rank in range(8)], process(200, sched), process(201, sched))
    problem = only(running(**job), RANKS)
    assert "exactly one" in problem.summary
    assert problem.hosts == ("node1",)


def test_a_scheduler_is_not_called_by_the_rank_that_it_inherited() -> None:
    sched = {**worker(7), "MS_ROLE": "MS_SCHED", "MS_SCHED_PORT": 9000}
    job = of_one_host([worker(rank) for rank in range(8)], process(200, sched))
    problem = only(running(**job), INCONSISTENT)
    assert problem.actual == "9000, for process 200 on node1"
    assert [place.rank for place in problem.where] == [None]


def test_more_workers_than_were_announced() -> None:
    envs = [{**worker(0, 4), "MS_NODE_ID": ""} for _ in range(5)]
    job = of_one_host(envs, process(200, {**worker(0, 4), "MS_ROLE": "MS_SCHED"}))
    problem = only(running(**job), RANKS)
    assert problem.actual == "5 with MS_ROLE=MS_WORKER"
    assert problem.commands == ("export MS_WORKER_NUM=5",)


@pytest.mark.parametrize(
    ("env", "device", "says"),
    [
        (torch_rank(3, LOCAL_RANK=8), 8, "LOCAL_RANK is beyond the devices of the host"),
        (torch_rank(3, LOCAL_RANK=4), 4, "2 ranks of one host take the same device"),
        (table_rank(3, DEVICE_ID=9), 9, "DEVICE_ID is beyond the devices of the host"),
        (table_rank(3, DEVICE_ID=4), 4, "2 ranks of one host take the same device"),
    ],
)
def test_devices_of_ranks_must_suit_the_host(env: dict[str, str | int], device: int, says: str) -> None:
    make = torch_rank if "RANK" in env else table_rank
    envs = [make(rank, **({"WORLD_SIZE": 8} if "RANK" in env else {})) for rank in range(8)]
    envs[3] = {**env, **({"WORLD_SIZE": 8} if "RANK" in env else {})}
    problem = only(running(**of_one_host(envs)), RANKS)
    assert problem.summary == says
    assert problem.hosts == ("node1",)
    assert (3, device) in [(place.rank, place.device) for place in problem.where]
    assert judged(RANKS, running(**of_one_host(envs)), a_plan("gloo"))[0] == []


def test_more_ranks_than_visible_devices() -> None:
    envs = [torch_rank(r, WORLD_SIZE=4, ASCEND_RT_VISIBLE_DEVICES="4,5") for r in range(4)]
    problem = only(running(**of_one_host(envs)), RANKS)
    assert problem.actual == "LOCAL_RANK=2 (rank 2 on node1), LOCAL_RANK=3 (rank 3 on node1)"
    assert [place.device for place in problem.where] == [2, 3]


def test_a_device_that_the_table_gives_to_another_rank() -> None:
    servers = [LiveServer("node1", "192.168.7.1", tuple(LiveDevice(n, f"10.0.0.{n}") for n in range(8)))]
    text = make_table(servers, "1.0")
    table = JobTable("/job/table.json", text, *read_table(text), given=True)
    envs = [table_rank(rank) for rank in range(8)]
    envs[0]["DEVICE_ID"], envs[1]["DEVICE_ID"] = 1, 0
    problems, _ = judged(RANKS, running(**of_one_host(envs)), facts={"rank-table": table})
    assert [(p.actual, p.commands) for p in problems] == [
        ("DEVICE_ID=1, for process 100", ("export DEVICE_ID=0",)),
        ("DEVICE_ID=0, for process 101", ("export DEVICE_ID=1",)),
    ]
    assert problems[0].hosts == ("node1",)
    assert problems[0].evidence[1].source == "/job/table.json"


# master-not-here


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["msrun --worker_num=16 --local_worker_num=8 net.py\n"], "the default of msrun"),
        (["torchrun --nnodes=2 --node_rank=0 train.py\n"], "the default of torchrun"),
        (["export MASTER_ADDR=node1\ntorchrun --nnodes=2 --node_rank=0 t.py\n"], "the default of torchrun"),
        (["torch_npu_run --nnodes=2 --node_rank=0 train.py\n"], "the default of torch_npu_run"),
        (["torchrun --nnodes=2 --rdzv_backend=c10d train.py\n"], "the default of c10d"),
        (["torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=localhost:1 t.py\n"], "--rdzv_endpoint"),
        ([DYNAMIC_CLUSTER.replace("192.168.7.1", "127.0.0.1").replace("NUM=8", "NUM=16")], "MS_SCHED_HOST"),
        ([TORCHRUN.format(node=n).replace("192.168.7.1", "127.0.0.1") for n in (0, 1)], "--master_addr"),
        ([MPIRUN.replace("MASTER_ADDR=node1", "MASTER_ADDR=::1")], "MASTER_ADDR"),
        ([ENV_FILE.format(node=n).replace("192.168.7.1", "localhost") for n in (0, 1)], "MASTER_ADDR"),
        (["export MASTER_ADDR=0.0.0.0\n"], "MASTER_ADDR"),
        (["accelerate launch --num_machines 2 --main_process_ip 127.0.0.1 t.py\n"], "--main_process_ip"),
    ],
)
def test_loopback_in_a_job_of_several_hosts(texts: list[str], says: str, tmp_path: Path) -> None:
    problems, _ = judged(MASTER, [read(tmp_path, *texts)])
    (problem,) = problems
    assert "each host waits for itself" in problem.summary
    assert f"by {says}" in problem.actual
    assert problem.hosts == (), "nobody told a host something else than the others"
    assert problem.evidence
    assert problem.commands


def test_a_job_that_runs_with_loopback() -> None:
    job = changed(torch_job(), range(100, 116), MASTER_ADDR="127.0.0.1")
    job = {host: processes[1:] for host, processes in job.items()}
    problem = only(running(**job), MASTER)
    assert len(problem.where) == 16


@cases
def test_a_master_that_is_not_the_host_of_rank_0(address: str, actual: str, confidence: Confidence) -> None:
    job = {
        f"node{n + 1}": [process(r, torch_rank(r, MASTER_ADDR=address)) for r in range(8 * n, 8 * n + 8)]
        for n in (0, 1)
    }
    problem = only(running(**job), MASTER)
    assert problem.actual == actual
    assert problem.expected == "an address of node1: 192.168.7.1"
    assert problem.confidence is confidence
    assert [(place.host, place.rank) for place in problem.where] == [("node1", 0)]
    assert problem.commands == ("export MASTER_ADDR=192.168.7.1",)


def test_the_scheduler_is_elsewhere() -> None:
    job = {
        "node1": [process(r, worker(r, 4)) for r in range(2)],
        "node2": [
            *(process(r, worker(r, 4)) for r in (2, 3)),
            process(9, {**worker(0, 4), "MS_ROLE": "MS_SCHED"}),
        ],
    }
    problem = only(running(**job), MASTER)
    assert problem.summary == "the master's address is not that of the host of the scheduler"
    assert problem.expected == "an address of node2: 192.168.7.2"


@cases
def test_a_master_that_cannot_be_one(options: str, summary: str, tmp_path: Path) -> None:
    problem = only([read(tmp_path, f"torchrun --nnodes=2 --node_rank=$R {options} t.py\n")], MASTER)
    assert (problem.summary, problem.severity) == (summary, None)


@cases
def test_a_port_that_the_start_chooses(options: str, tmp_path: Path) -> None:
    text = f"torchrun --nproc_per_node=8 {options} t.py\n"
    assert judged(MASTER, [read(tmp_path, text)], a_plan(hosts=1), the_facts(1)) == ([], "")


def test_one_host_with_the_address_of_nobody(tmp_path: Path) -> None:
    facts = {**the_facts(1), "routes": {"node1": held(ROUTES, {"/proc/net/route": ONE_NET})}}
    text = "torchrun --nnodes={} --nproc_per_node=8 --master_addr=192.168.7.77 t.py\n"
    (problem,), _ = judged(MASTER, [read(tmp_path, text.format(1))], a_plan(hosts=1), facts)
    assert problem.severity is None
    problems, doubt = judged(MASTER, [read(tmp_path, text.format(2))], a_plan(hosts=1), facts)
    assert problems == []
    assert "192.168.7.77 may be that of a host that was not asked" in doubt


NET = "Iface Destination Gateway Flags RefCnt Use Metric Mask\n{}"
ONE_NET = NET.format("eth0 0007A8C0 00000000 0001 0 0 0 00FFFFFF\n")
ROUTED = ONE_NET + "eth0 00000000 FE07A8C0 0003 0 0 0 00000000\n"


@pytest.mark.parametrize(
    ("address", "table", "severity"),
    [
        ("192.168.7.77", ROUTED, None),
        ("10.0.0.9", ONE_NET, None),
        ("10.0.0.9", ROUTED, Severity.WARN),
        ("fd00::9", ONE_NET, Severity.WARN),
        ("8.8.8.8", ONE_NET, Severity.WARN),
    ],
)
def test_an_address_of_nobody_is_a_fault_if_no_router_leads_to_it(
    address: str, table: str, severity: Severity | None, tmp_path: Path
) -> None:
    known = held(ROUTES, {"/proc/net/route": table})
    facts = {**the_facts(), "routes": dict.fromkeys(("node1", "node2"), known)}
    text = f"export MASTER_ADDR={address}\ntorchrun --nnodes=2 --master_addr=$MASTER_ADDR t.py\n"
    (problem,), _ = judged(MASTER, [read(tmp_path, text)], facts=facts)
    assert problem.severity is severity
    pods = {**facts, "view": {"node1": View.CONTAINER}}
    (problem,), _ = judged(MASTER, [read(tmp_path, text)], facts=pods)
    assert problem.severity is Severity.WARN, "a service may forward to the pod of rank 0"


@cases
def test_a_host_that_takes_the_name_of_the_master_for_another_machine(
    seen: dict[str, str], table: str, hosts: list[str], tmp_path: Path
) -> None:
    """`seen`: the address of the name on each host."""
    facts = {
        **the_facts(3),
        "names": {host: ResolvedNames({"head": (address,)}, host) for host, address in seen.items()},
        "routes": dict.fromkeys(seen, held(ROUTES, {"/proc/net/route": ROUTED if table else ONE_NET})),
    }
    launch = read(tmp_path, "torchrun --nnodes=3 --nproc_per_node=8 --rdzv_endpoint=head:29400 t.py\n")
    found, _ = judged(MASTER, [launch], a_plan(hosts=3), facts)
    assert [*map("".join, (each.hosts or ["several"] for each in found if each.severity is None))] == hosts
    of_job = {held for own in facts["addresses"].values() for each in own.values() for held in each}
    for each in found:
        for host in each.hosts:  # what no host of the job holds may be forwarded
            assert (each.confidence is Confidence.CERTAIN) == (seen[host] in of_job)
    pods = {**facts, "view": {"node1": View.CONTAINER}}
    found, _ = judged(MASTER, [launch], a_plan(hosts=3), pods)
    assert [each for each in found if each.severity is None] == []


def test_hosts_may_share_an_address_and_not_the_name_of_the_master(tmp_path: Path) -> None:
    """As with the bridge of a container engine, which is registered with the host's other addresses."""
    launch = read(tmp_path, "torchrun --nnodes=3 --nproc_per_node=8 --rdzv_endpoint=head:29400 t.py\n")
    facts = the_facts(3)
    for host in facts["addresses"]:
        facts["addresses"][host]["docker0"] = ("172.17.0.1",)
    both = ("192.168.7.1", "172.17.0.1")
    facts["names"] = {host: ResolvedNames({"head": both}, host) for host in facts["addresses"]}
    assert judged(MASTER, [launch], a_plan(hosts=3), facts)[0] == []


@pytest.mark.parametrize("address", ["", "192.168.7.77"])
def test_a_host_that_is_not_of_the_launch_need_not_know_its_master(address: str, tmp_path: Path) -> None:
    launch = read(tmp_path, "torchrun --nnodes=2 --nproc_per_node=8 --rdzv_endpoint=head:29400 t.py\n")
    seen = {"node1": ("192.168.7.1",), "node2": ("192.168.7.1",), "node3": (address,) if address else ()}
    names = {host: ResolvedNames({"head": found}, host) for host, found in seen.items()}
    (problem,), _ = judged(MASTER, [launch], a_plan(hosts=3), {**the_facts(3), "names": names})
    assert (problem.hosts, problem.severity) == (("node3",), Severity.WARN)


def test_the_host_of_the_master_may_take_its_name_for_loopback(tmp_path: Path) -> None:
    """As installers write it: 127.0.1.1 and the host's own name."""
    launch = read(tmp_path, "torchrun --nnodes=3 --nproc_per_node=8 --rdzv_endpoint=head:29400 t.py\n")
    seen = {"node1": "127.0.1.1", "node2": "192.168.7.1", "node3": "192.168.7.1"}
    names = {host: ResolvedNames({"head": (address,)}, host) for host, address in seen.items()}
    found, _ = judged(MASTER, [launch], a_plan(hosts=3), {**the_facts(3), "names": names})
    assert found == []
    names["node2"] = ResolvedNames({"head": ("127.0.1.1",)}, "node2")
    (problem,), _ = judged(MASTER, [launch], a_plan(hosts=3), {**the_facts(3), "names": names})
    assert problem.hosts == ("node2",)


@cases
def test_what_a_script_takes_from_each_login(
    text: str, logins: list[dict[str, str]], hosts: list[str] | None, tmp_path: Path
) -> None:
    """`hosts`: those that are accused; none if the launch is sound."""
    facts = {
        **the_facts(),
        "environment": {f"node{n}": Environment(known) for n, known in enumerate(logins, 1)},
    }
    found, _ = judged(MASTER, [read(tmp_path, text)], facts=facts)
    told = [[*each.hosts] for each in found if "from the login" in each.summary]
    assert told == ([] if hosts is None else [hosts])


@cases
def test_an_address_to_which_no_other_host_connects(address: str, sure: bool, tmp_path: Path) -> None:
    text = f"torchrun --nnodes=2 --node_rank=$1 --nproc_per_node=8 --master_addr={address} t.py\n"
    facts = the_facts()
    for host, number in (("node1", 1), ("node2", 2)):
        facts["addresses"][host]["eth0"] += (f"fe80::{number}", f"fd00::{number}", f"169.254.3.{number}")
        facts["addresses"][host]["eth0"] += (f"240.10.0.{number + 4}",)
    found, _ = judged(MASTER, [read(tmp_path, text)], facts=facts)
    assert ["no other host can connect" in each.summary for each in found] == [True] * sure


@cases
def test_every_host_takes_itself_for_the_master(text: str, tmp_path: Path) -> None:
    problem = only([read(tmp_path, text)], MASTER)
    assert problem.severity is None
    assert problem.summary == "every host takes itself for the master: each waits for itself"


@cases
def test_every_host_draws_another_one(says: str, text: str, tmp_path: Path) -> None:
    problem = only([read(tmp_path, text)], MASTER)
    assert problem.severity is None
    assert says in problem.summary
    assert problem.hosts == ()


@cases
def test_what_one_host_draws_or_all_share(text: str, tmp_path: Path) -> None:
    assert judged(MASTER, [read(tmp_path, text)])[0] == []


@cases
def test_one_host_may_name_itself_as_the_master(text: str, tmp_path: Path) -> None:
    assert judged(MASTER, [read(tmp_path, text)])[0] == []


def test_a_rendezvous_may_be_on_any_host(tmp_path: Path) -> None:
    silent([read(tmp_path, C10D)])
    problem = only([read(tmp_path, C10D.replace("node2:", "10.0.0.9:"))], MASTER)
    assert problem.summary == "the master's address is not that of one of these hosts"
    assert problem.commands == ("# start with --rdzv_endpoint=ADDRESS-OF-RANK-0:29400",)


@cases
def test_hosts_do_not_know_the_name_of_the_master(
    known: dict[str, tuple[str, ...]], hosts: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    facts = the_facts()
    for host, names in facts["names"].items():
        facts["names"][host] = type(names)({**names.addresses, "head": known[host]}, host)
    text = "export MASTER_ADDR=head MASTER_PORT=1\n"
    (problem, *more), _ = judged(MASTER, [read(tmp_path, text)], facts={"names": facts["names"]})
    assert more == []
    assert says in problem.summary
    assert problem.hosts == hosts
    assert [line.partition("=")[0] for line in problem.commands] == ["export MASTER_ADDR"]


def test_the_service_of_a_job_is_made_with_the_job(tmp_path: Path) -> None:
    text = "torchrun --nnodes=2 --node_rank=$RANK --master_addr=job-master-0 --nproc_per_node=8 t.py\n"
    pods = {"view": {"node1": View.CONTAINER, "node2": View.CONTAINER}}
    facts = the_facts(names={"job-master-0": ""}) | pods
    (problem,), _ = judged(MASTER, [read(tmp_path, text)], facts=facts)
    assert problem.severity is Severity.WARN
    held = facts["names"]["node1"]
    facts["names"]["node1"] = type(held)({**held.addresses, "job-master-0": ("192.168.7.1",)}, "node1")
    (problem,), _ = judged(MASTER, [read(tmp_path, text)], facts=facts)
    assert problem.severity is None, "one of them knows it"


@pytest.mark.parametrize("hosts", [1, 2])
@cases
def test_no_host_knows_the_name_of_the_master(text: str, hosts: int, tmp_path: Path) -> None:
    """A job on one host needs the name, too."""
    facts = the_facts(hosts, names={"nobody": ""})
    (problem,), doubt = judged(MASTER, [read(tmp_path, text)], a_plan(hosts=hosts), facts)
    assert problem.summary == "the name of the master cannot be resolved"
    assert problem.severity is None
    assert doubt == ""


@cases
def test_a_name_that_the_launcher_does_not_use(text: str, tmp_path: Path) -> None:
    facts = the_facts(1, names={"nobody": ""})
    assert judged(MASTER, [read(tmp_path, text)], a_plan(hosts=1), facts) == ([], "")


@cases
def test_nothing_is_known_about_the_master(
    text: str, facts: dict[str, Any], doubt: str, tmp_path: Path
) -> None:
    problems, why = judged(MASTER, [read(tmp_path, text)], facts=facts)
    assert problems == []
    assert doubt in why


def test_rank_0_runs_on_none_of_these_hosts() -> None:
    job = {"node1": [process(r, torch_rank(r, MASTER_ADDR="10.0.0.9")) for r in range(8, 16)]}
    problems, why = judged(MASTER, running(**job))
    assert problems == []
    assert "may be that of a host that was not asked" in why


def test_other_hosts_need_not_know_the_master_of_a_job_on_one_host(tmp_path: Path) -> None:
    facts = the_facts(names={"head": "192.168.7.1"})
    facts["names"]["node2"] = type(facts["names"]["node2"])({"head": ()}, "node2")
    launch = read(tmp_path, "torchrun --nnodes=1 --nproc_per_node=8 --master_addr=head t.py\n")
    assert judged(MASTER, [launch], facts=facts) == ([], "")


def test_a_name_that_stands_for_a_service(tmp_path: Path) -> None:
    """Its address does not belong to a host, but connections may still be forwarded to rank 0."""
    facts = the_facts(names={"job-master": "10.96.0.7"})
    (problem,), _ = judged(MASTER, [read(tmp_path, "export MASTER_ADDR=job-master\n")], facts=facts)
    assert problem.severity is Severity.WARN
    assert problem.confidence is Confidence.STRONG


def test_commands_to_type_stay_on_one_line(tmp_path: Path) -> None:
    """The part of a value after a line end would become a separate command."""
    texts = [
        f"torchrun --nnodes=2 --node_rank={n} --master_addr=node1 --rdzv_id='a\nreboot {n}' t.py\n"
        for n in (0, 1)
    ]
    problem = only([read(tmp_path, *texts)], INCONSISTENT)
    assert all("\n" not in command and command.startswith("# ") for command in problem.commands)


def test_only_one_host_of_a_larger_job_is_examined(tmp_path: Path) -> None:
    problems, why = judged(MASTER, [read(tmp_path, "export MASTER_ADDR=10.0.0.9\n")], a_plan(hosts=1))
    assert problems == []
    assert why


# launch-timeouts

FIRST = {"devices": {"node1": replace(the_facts()["devices"]["node1"], product="atlas-training")}}


@cases
def test_timeouts_that_do_not_fit(env: dict[str, str | int], name: str, value: int, tmp_path: Path) -> None:
    launch = read(tmp_path, dump(env))
    (problem,), _ = judged(TIMEOUTS, [launch])
    assert problem.subject == f"env0.log: {name}"
    assert problem.commands == (f"export {name}={value}",)
    assert problem.expected
    assert problem.actual
    corrected = read(tmp_path, dump({**env, name: value}))
    assert judged(TIMEOUTS, [corrected]) == ([], ""), "the commands of the finding are right"


@cases
def test_timeouts_that_fit(env: dict[str, str | int], tmp_path: Path) -> None:
    assert judged(TIMEOUTS, [read(tmp_path, dump({"HCCL_BUFFSIZE": 200, **env}))]) == ([], "")


@cases
def test_the_first_generation_has_rules_of_its_own(
    env: dict[str, str | int], actual: str, tmp_path: Path
) -> None:
    launch = read(tmp_path, dump(env))
    (problem,), _ = judged(TIMEOUTS, [launch], facts=FIRST)
    assert problem.actual == actual
    assert judged(TIMEOUTS, [launch]) == ([], "")


def test_a_script_may_inherit_what_it_does_not_set(tmp_path: Path) -> None:
    text = "export HCCL_CONNECT_TIMEOUT=7200\npython train.py\n"
    assert judged(TIMEOUTS, [read(tmp_path, text)]) == ([], "")


def test_equal_findings_of_several_ranks_are_merged() -> None:
    (problem,), _ = judged(TIMEOUTS, running(**torch_job(HCCL_CONNECT_TIMEOUT=7200)))
    assert len(problem.where) == 16


def test_an_address_that_every_host_has(tmp_path: Path) -> None:
    """As that of docker0; what only a part of them has beside the master is sound."""
    launch = read(
        tmp_path, "torchrun --nnodes=2 --node_rank=$R --nproc_per_node=8 --master_addr=172.17.0.1 t.py\n"
    )
    known = the_facts()
    docker = {"docker0": ("172.17.0.1",)}
    both = {host: {**own, **docker} for host, own in known["addresses"].items()}
    (problem,) = judged(MASTER, [launch], facts={"addresses": both})[0]
    assert "the address of the master means several hosts" in problem.summary
    assert (problem.hosts, problem.severity) == ((), None)
    service = {host: {**own, "kube-ipvs0": ("172.17.0.1",)} for host, own in known["addresses"].items()}
    assert judged(MASTER, [launch], facts={"addresses": service})[0] == []
    coordinator = read(tmp_path, "python t.py --coordinator_address=172.17.0.1:1 --process_id=$R\n")
    assert len(judged(MASTER, [coordinator], facts={"addresses": both})[0]) == 1
    one = {**known["addresses"], "node1": both["node1"]}
    assert judged(MASTER, [launch], facts={"addresses": one})[0] == []
    other = read(tmp_path, "torchrun --nnodes=2 --node_rank=$R --nproc_per_node=8 --master_addr=node1 t.py\n")
    assert judged(MASTER, [other], facts={"addresses": both})[0] == []


@pytest.mark.parametrize(("ranks", "found"), [("01", 0), ("10", 1), (" 1", 0), ("1 ", 1), ("  ", 0)])
def test_the_first_host_by_the_logins_is_that_of_the_master(ranks: str, found: int, tmp_path: Path) -> None:
    launch = read(tmp_path, "torchrun --nnodes=2 --nproc_per_node=8 --master_addr=node1 t.py\n")
    logins = {
        f"node{n}": Environment({"PET_NODE_RANK": rank} if rank.strip() else {})
        for n, rank in enumerate(ranks, 1)
    }
    problems, _ = judged(MASTER, [launch], facts={"environment": logins})
    assert [each.summary for each in problems] == [
        "the master's address is not that of the host of rank 0"
    ] * found
