"""Which lines of a kernel's log are about the job: by their time, and by the process that was killed."""

from __future__ import annotations

from datetime import datetime
from math import inf

import pytest

from doctor.run.kernel import JobProcesses, of_job, processes_of

BEGAN = datetime.fromisoformat("2026-11-20T10:00:00+00:00").timestamp()
ALWAYS = ((BEGAN, inf),)
LOG = (
    b"2026-11-20T09:59:00,000001+00:00 eth0: link down\n"
    b"  a line that goes on\n"
    b"2026-11-20T10:00:30,000001+00:00 eth0: link up\n"
    b"  and on\n"
)
AT = b"2026-11-20T10:00:30,000001+00:00 "
KILLED = (
    AT + b"python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n",
    AT + b"[    320]     0   320   354930   226000  [...] python\n",
    AT + b"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/docker/c,"
    b"task_memcg=/docker/c/slurm/job_77/step_0,task=python,pid=320,uid=0\n",
    AT + b"Memory cgroup out of memory: Killed process 320 (python) total-vm:1419720kB, anon-rss:815228kB\n",
)
OF_4_19 = (
    AT + b"Task in /slurm/uid_0/job_77/step_0 killed as a result of limit of /slurm/uid_0/job_77\n",
    AT + b"Memory cgroup out of memory: Kill process 320 (python) score 1 or sacrifice child\n",
)


def kept(log: bytes, job: JobProcesses, *, here: bool = False) -> bytes:
    return of_job(log, BEGAN, BEGAN + 60, job, here=here)[0]


def doubted(job: JobProcesses, *, here: bool = False) -> frozenset[int]:
    return of_job(b"".join(KILLED), BEGAN, BEGAN + 60, job, here=here)[1]


def killed(job: JobProcesses, *, here: bool = False, lines: tuple[bytes, ...] = KILLED) -> bool:
    return b"Kill" in kept(b"".join(lines), job, here=here)


def said_by(said: bytes) -> JobProcesses:
    return processes_of(said, {}, {}, killed=False)


def test_only_lines_from_the_time_of_the_job_count() -> None:
    job, second = JobProcesses(), LOG.index(b"2026-11-20T10:00:30")
    assert of_job(LOG, BEGAN, BEGAN + 60, job, here=False)[0] == LOG[second:]
    assert of_job(LOG, BEGAN - 600, BEGAN, job, here=False)[0] == LOG[:second]
    assert of_job(LOG, BEGAN, BEGAN + 20, job, here=False)[0] == b""
    assert of_job(b"[16001.398] eth0: link down\n", BEGAN, BEGAN + 60, job, here=False)[0] == b""


@pytest.mark.parametrize("here", [True, False])
def test_nobody_elses_process_counts(here: bool) -> None:
    others = processes_of(
        b"step 320 loss 320.1\nprocess 3201 ended\n", {32: ALWAYS}, {"SLURM_JOB_ID": "7"}, killed=False
    )
    left = kept(b"".join(KILLED), others, here=here)
    assert left == KILLED[1]


@pytest.mark.parametrize(
    "said",
    [
        b"  exitcode  : -9 (pid: 320)",
        b"mpirun noticed that process rank 1 with PID 320 on node node2 exited on signal 9 (Killed).",
        b"run.sh: line 3:   320 Killed                  python train.py",
        b"[2026-11-20 10:00:31,000] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 320",
    ],
)
def test_a_process_that_the_job_names_counts(said: bytes) -> None:
    assert killed(said_by(said))


def test_the_id_of_the_job_in_the_name_of_the_control_group_counts() -> None:
    assert killed(JobProcesses(job_ids=("77",)))
    assert killed(JobProcesses(job_ids=("77",)), lines=OF_4_19)
    assert not killed(JobProcesses(job_ids=("7",)), lines=OF_4_19)
    found = processes_of(b"", {}, {"SLURM_JOB_ID": "77", "PBS_JOBID": ""}, killed=False)
    assert found.job_ids == ("77",)


def test_a_process_of_this_machine_counts_only_here() -> None:
    own = JobProcesses(here={320: ALWAYS})
    assert killed(own, here=True)
    assert not killed(own)


@pytest.mark.parametrize(
    ("spans", "its"), [([(0, 20)], False), ([(40, 60)], False), ([(0, 20), (25, 31)], True)]
)
def test_a_pid_is_the_jobs_only_while_its_process_runs(spans: list[tuple[int, int]], its: bool) -> None:
    """The kernel kills the process 320 in second 30. Before and later the PID may be another program's."""
    own = JobProcesses(here={320: [(BEGAN + begin, BEGAN + until) for begin, until in spans]})
    assert killed(own, here=True) == its


def test_of_two_processes_with_the_same_pid_only_the_jobs_counts() -> None:
    earlier = b"".join(KILLED).replace(b"10:00:30", b"10:00:05")
    left = kept(earlier + b"".join(KILLED), JobProcesses(here={320: [(BEGAN + 20, inf)]}), here=True)
    assert left.count(b"Killed process 320") == 1
    assert b"10:00:05,000001+00:00 Memory" not in left


def test_only_a_kill_that_names_a_process_of_the_job_is_certain() -> None:
    lost = b"process 1 terminated with signal SIGKILL"
    assert doubted(said_by(lost)) == {320}
    assert doubted(said_by(b"  exitcode  : -9 (pid: 17)")) == {320}
    assert doubted(processes_of(b"", {17: ALWAYS}, {}, killed=True), here=True) == {320}
    assert doubted(said_by(b"  exitcode  : -9 (pid: 320)")) == set()
    assert doubted(JobProcesses(here={320: ALWAYS}, lost=True), here=True) == set()
    assert doubted(JobProcesses(job_ids=("77",), lost=True)) == set()


def outside_containers(lines: tuple[bytes, ...]) -> tuple[bytes, ...]:
    return tuple(line.replace(b"/docker/c", b"/user.slice") for line in lines)


@pytest.mark.parametrize(
    "said",
    [
        b"  exitcode  : -9 (pid: 17)",
        b"E1120 10:00:31 api.py:874] failed (exitcode: -9) local_rank: 0 (pid: 17) of binary: python",
        b"traceback : Signal 9 (SIGKILL) received by PID 17",
        b"process 1 terminated with signal SIGKILL",
        b"Killed",
        "run.sh: 行 3:    17 已杀死               python train.py".encode(),
    ],
)
def test_a_container_has_pids_of_its_own_so_a_rank_that_was_lost_counts(said: bytes) -> None:
    assert killed(said_by(said))


def test_outside_of_containers_the_job_knows_the_pid_of_a_rank_that_was_lost() -> None:
    lines = outside_containers(KILLED)
    assert not killed(said_by(b"  exitcode  : -9 (pid: 17)"), lines=lines)
    assert killed(said_by(b"process 1 terminated with signal SIGKILL"), lines=lines)
    assert killed(processes_of(b"", {}, {}, killed=True), lines=lines)
    unknown = b"mpirun noticed that process rank 0 with PID 0 on node vm exited on signal 9 (Killed)."
    assert killed(said_by(unknown), lines=lines)


@pytest.mark.parametrize(
    "said", [b"exit code 1", b"task 3 skilled", b"exitcode: 1 (pid: 17)", b"loss 137", b""]
)
def test_a_job_that_lost_no_process_to_kill_has_none_that_the_kernel_killed(said: bytes) -> None:
    assert not killed(said_by(said))


def test_what_was_killed_long_before_the_end_did_not_end_the_job() -> None:
    lost, log = said_by(b"Killed\n"), b"".join(KILLED)
    assert b"Killed process" in of_job(log, BEGAN, BEGAN + 120, lost, here=False)[0]
    assert b"Killed process" not in of_job(log, BEGAN, BEGAN + 3600, lost, here=False)[0]


def test_if_the_job_names_one_of_two_that_were_killed_the_other_is_not_its_own() -> None:
    other = tuple(line.replace(b"320", b"321") for line in KILLED)
    left = kept(b"".join((*KILLED, *other)), said_by(b"Signal 9 (SIGKILL) received by PID 320"))
    assert b"Killed process 320" in left
    assert b"Killed process 321" not in left
