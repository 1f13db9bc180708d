"""Running processes, grouped into jobs: one job is not split, and neighbouring jobs are not merged."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from doctor.job.launch.process_env import Launch
from doctor.job.launch.processes import JobProcess
from doctor.job.launch.rank_env import rank_of
from tests.support.launches import process, running, table_rank, torch_job, torch_rank, worker

Env = Mapping[str, str | int]


def sizes(*launches: Launch) -> list[int]:
    return sorted(len(launch.told) for launch in launches)


def ranks(envs: list[dict[str, str | int]], first: int = 100, parent: int = 1) -> list[JobProcess]:
    return [process(first + n, env, parent=parent) for n, env in enumerate(envs)]


def test_one_job_over_two_hosts() -> None:
    (launch,) = running(**torch_job())
    assert (launch.name, len(launch.told)) == ("train.py", 18)
    assert launch.live
    assert launch.live
    assert not launch.complete, "a rank that does not run may have ended"
    assert {told.host for told in launch.told} == {"node1", "node2"}
    assert launch.told[1].source == "process 100"


def test_without_processes_there_is_no_launch() -> None:
    assert running(node1=(), node2=()) == ()


def test_two_programs_are_two_jobs() -> None:
    mine = ranks([torch_rank(r, WORLD_SIZE=2) for r in range(2)])
    other = ranks([torch_rank(r, WORLD_SIZE=2) for r in range(2)], 200)
    other = [process(p.pid, p.env, "python", "/job/eval.py") for p in other]
    assert [launch.name for launch in running(node1=[*mine, *other])] == ["eval.py", "train.py"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([torch_rank(r, WORLD_SIZE=2) for r in range(2)],
         [torch_rank(r, WORLD_SIZE=2, MASTER_PORT=29501) for r in range(2)]),
        ([{**worker(r, 2)} for r in range(2)] + [{**worker(0, 2), "MS_ROLE": "MS_SCHED"}],
         [{**worker(r, 2), "MS_SCHED_PORT": 9000} for r in range(2)]
         + [{**worker(1, 2), "MS_ROLE": "MS_SCHED", "MS_SCHED_PORT": 9000}]),
        ([table_rank(r, 2) for r in range(2)],
         [table_rank(r, 2, RANK_TABLE_FILE="/job/other.json") for r in range(2)]),
        ([torch_rank(r, WORLD_SIZE=2, SLURM_STEP_ID=0) for r in range(2)],
         [torch_rank(r, WORLD_SIZE=2, SLURM_STEP_ID=1) for r in range(2)]),
        ([torch_rank(r, WORLD_SIZE=2, SLURM_JOB_ID=5) for r in range(2)],
         [torch_rank(r, WORLD_SIZE=2, SLURM_JOB_ID=6) for r in range(2)]),
        ([torch_rank(r, WORLD_SIZE=2, TORCHELASTIC_RUN_ID="a") for r in range(2)],
         [torch_rank(r, WORLD_SIZE=2, TORCHELASTIC_RUN_ID="b") for r in range(2)]),
    ],
)  # fmt: skip
def test_two_whole_jobs_of_one_program_on_one_host(first: list[Env], second: list[Env]) -> None:
    processes = [process(n, env) for n, env in enumerate([*first, *second])]
    assert sizes(*running(node1=processes)) == [len(first), len(second)]


def test_two_parts_of_jobs_side_by_side_on_shared_hosts() -> None:
    """Neither is complete here, since both continue elsewhere; no job has a rank twice on one host."""
    first = ranks([torch_rank(r) for r in range(8)])
    second = ranks([torch_rank(r, MASTER_PORT=29501) for r in range(8)], 200)
    assert sizes(*running(node1=[*first, *second])) == [8, 8]


def test_one_job_on_each_host() -> None:
    """Both use 127.0.0.1, which is a different address on each host."""
    jobs = {
        f"node{n}": ranks([torch_rank(r, WORLD_SIZE=8, MASTER_ADDR="127.0.0.1") for r in range(8)])
        for n in (1, 2)
    }
    launches = running(**jobs)
    assert [{told.host for told in launch.told} for launch in launches] == [{"node1"}, {"node2"}]


def test_one_job_on_each_host_and_some_ranks_have_ended() -> None:
    """As a loop starts them, with no word of the host."""
    env: dict[str, str | int] = {"WORLD_SIZE": 8, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}
    jobs = {f"node{n}": [process(r, {"RANK": r, **env}) for r in range(8 - n)] for n in (1, 2)}
    launches = running(**jobs)
    assert [{told.host for told in launch.told} for launch in launches] == [{"node1"}, {"node2"}]


def test_ranks_with_another_master_stay_in_their_job() -> None:
    """They are not complete by themselves: this is the fault, not a second job."""
    job = torch_job()
    job["node2"] = [process(p.pid, {**p.env, "MASTER_PORT": 1}, *p.command) for p in job["node2"]]
    assert sizes(*running(**job)) == [18]


def test_hosts_that_each_start_the_job_as_node_0() -> None:
    """The same ranks twice, on different hosts and with different masters."""
    first = ranks([torch_rank(r) for r in range(8)])
    second = ranks([torch_rank(r, MASTER_ADDR="192.168.7.2") for r in range(8)])
    (launch,) = running(node1=first, node2=second)
    assert len(launch.told) == 16


def test_steps_of_one_slurm_job_may_be_one_job() -> None:
    """`srun -w node1 … & srun -w node2 …` makes two steps."""
    (launch,) = running(
        node1=ranks([torch_rank(r, SLURM_JOB_ID=5, SLURM_STEP_ID=0) for r in range(8)]),
        node2=ranks([torch_rank(r, SLURM_JOB_ID=5, SLURM_STEP_ID=1) for r in range(8, 16)]),
    )
    assert len(launch.told) == 16


def test_a_host_without_the_id_of_the_scheduler_belongs_to_the_job() -> None:
    (launch,) = running(
        node1=ranks([torch_rank(r, SLURM_JOB_ID=5) for r in range(8)]),
        node2=ranks([torch_rank(r) for r in range(8, 16)]),
    )
    assert len(launch.told) == 16


def test_agents_belong_to_their_ranks() -> None:
    agent = ("python", "/usr/bin/torchrun", "--nproc_per_node=2", "/job/train.py")
    processes = [
        process(1, {}, *agent),
        process(2, {}, *agent),
        *ranks([torch_rank(r, WORLD_SIZE=2) for r in range(2)], 10, parent=1),
        *ranks([torch_rank(r, WORLD_SIZE=2, MASTER_PORT=1) for r in range(2)], 20, parent=2),
    ]
    first, second = running(node1=processes)
    assert sizes(first, second) == [3, 3]
    for launch in (first, second):
        (started,) = [told for told in launch.told if rank_of(told) is None]
        assert {told.parent for told in launch.told if rank_of(told)} == {started.pid}


def test_agents_without_ranks_are_a_launch() -> None:
    job = {host: processes[:1] for host, processes in torch_job().items()}
    (launch,) = running(**job)
    assert len(launch.told) == 2


def test_a_program_that_spawns_its_ranks() -> None:
    (launch,) = running(node1=[process(1, {"MASTER_ADDR": "a", "MASTER_PORT": 1}, spawns=True)])
    assert [told.pid for told in launch.told] == [1]


def test_processes_in_another_network_namespace_are_of_no_launch() -> None:
    here = ranks([torch_rank(0), torch_rank(1)])
    apart = [replace(each, outside=True) for each in ranks([torch_rank(2)], first=200)]
    (launch,) = running(node1=[*here, *apart])
    assert [each.pid for each in launch.told] == [each.pid for each in here]
