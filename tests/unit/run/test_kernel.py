"""Which lines of a kernel's log are about the job: by their time, and by the process that was killed."""

from datetime import datetime
from math import inf

import pytest

from doctor.agents.onhost.kernel_kills import JobMarks
from doctor.run.kernel import marks_of, of_job

BEGAN = datetime.fromisoformat("2026-11-20T10:00:00+00:00").timestamp()
OWN = (320, BEGAN, inf)
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


Known = tuple[JobMarks, bool]


def known(*lives: tuple[int, float, float], ids: tuple[str, ...] = (), lost: bool = False) -> Known:
    return JobMarks(ids=ids, lives=lives), lost


def own(log: bytes, job: Known, until: float = BEGAN + 60) -> tuple[bytes, frozenset[int]]:
    return of_job(log, BEGAN, until, job[0], lost=job[1])


def kept(log: bytes, job: Known) -> bytes:
    return own(log, job)[0]


def doubted(job: Known) -> frozenset[int]:
    return own(b"".join(KILLED), job)[1]


def killed(job: Known, *, lines: tuple[bytes, ...] = KILLED) -> bool:
    return b"Kill" in kept(b"".join(lines), job)


def said_by(said: bytes) -> Known:
    return marks_of(said, (), {})


def test_only_lines_from_the_time_of_the_job_count() -> None:
    job, second = known(), LOG.index(b"2026-11-20T10:00:30")
    assert of_job(LOG, BEGAN, BEGAN + 60, job[0], lost=job[1])[0] == LOG[second:]
    assert of_job(LOG, BEGAN - 600, BEGAN, job[0], lost=job[1])[0] == LOG[:second]
    assert of_job(LOG, BEGAN, BEGAN + 20, job[0], lost=job[1])[0] == b""
    assert of_job(b"[16001.398] eth0: link down\n", BEGAN, BEGAN + 60, job[0], lost=job[1])[0] == b""


def test_nobody_elses_process_counts() -> None:
    said, other = b"step 320 loss 320.1\nprocess 3201 ended\n", (32, BEGAN, inf)
    others = marks_of(said, [other], {"SLURM_JOB_ID": "7"})
    assert kept(b"".join(KILLED), others) == KILLED[1]


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
    assert killed(known(ids=("77",)))
    assert killed(known(ids=("77",)), lines=OF_4_19)
    assert not killed(known(ids=("7",)), lines=OF_4_19)
    assert not killed(known(ids=("0",)), lines=OF_4_19), "that is the user and the step"
    found = marks_of(b"", (), {"SLURM_JOB_ID": "77", "PBS_JOBID": ""})
    assert [*found[0].ids] == ["77"]


@pytest.mark.parametrize("name", ["/slurm/job_77", "train", "77"])
def test_the_name_of_a_program_says_nothing(name: str) -> None:
    """Its user chooses it."""
    lines = tuple(
        line.replace(b"/docker/c/slurm/job_77/step_0", b"/user.slice").replace(b"python", name.encode())
        for line in KILLED
    )
    assert not killed(known(ids=("77",)), lines=lines)


def test_an_unannounced_kill_is_of_the_group_before_it() -> None:
    """The kernel announces ten kills in five seconds, and the first of a group that is killed as a whole."""
    more = KILLED[-1].replace(b"320", b"321")
    assert kept(b"".join((*KILLED, more)), known(ids=("77",))).count(b"Killed process") == 2
    assert kept(more, known(ids=("77",))) == b""


@pytest.mark.parametrize(
    ("spans", "its"), [([(0, 20)], False), ([(40, 60)], False), ([(0, 20), (25, 31)], True)]
)
def test_a_pid_is_the_jobs_only_while_its_process_runs(spans: list[tuple[int, int]], its: bool) -> None:
    """The kernel kills the process 320 in second 30. Before and later the PID may be another program's."""
    own = known(*((320, BEGAN + begin, BEGAN + until) for begin, until in spans))
    assert killed(own) == its


def test_of_two_processes_with_the_same_pid_only_the_jobs_counts() -> None:
    earlier = b"".join(KILLED).replace(b"10:00:30", b"10:00:05")
    left = kept(earlier + b"".join(KILLED), known((320, BEGAN + 20, inf)))
    assert left.count(b"Killed process 320") == 1
    assert b"10:00:05,000001+00:00 Memory" not in left


def test_only_a_kill_that_names_a_process_of_the_job_is_certain() -> None:
    lost = b"process 1 terminated with signal SIGKILL"
    assert doubted(said_by(lost)) == {320}
    assert doubted(said_by(b"  exitcode  : -9 (pid: 17)")) == {320}
    assert doubted(known((17, BEGAN, inf), lost=True)) == {320}
    assert doubted(said_by(b"  exitcode  : -9 (pid: 320)")) == set()
    assert doubted(known(OWN, lost=True)) == set()
    assert doubted(known(ids=("77",), lost=True)) == set()


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
def test_a_rank_that_was_lost_may_have_another_pid_in_its_container(said: bytes) -> None:
    assert killed(said_by(said))


@pytest.mark.parametrize(
    "said", [b"exit code 1", b"task 3 skilled", b"exitcode: 1 (pid: 17)", b"loss 137", b""]
)
def test_a_job_that_lost_no_process_to_kill_has_none_that_the_kernel_killed(said: bytes) -> None:
    assert not killed(said_by(said))


def test_what_was_killed_long_before_the_end_did_not_end_the_job() -> None:
    lost, log = said_by(b"Killed\n"), b"".join(KILLED)
    assert b"Killed process" in of_job(log, BEGAN, BEGAN + 120, lost[0], lost=lost[1])[0]
    assert b"Killed process" not in of_job(log, BEGAN, BEGAN + 3600, lost[0], lost=lost[1])[0]


def test_if_the_job_names_one_of_two_that_were_killed_the_other_is_not_its_own() -> None:
    other = tuple(line.replace(b"320", b"321") for line in KILLED)
    left = kept(b"".join((*KILLED, *other)), said_by(b"Signal 9 (SIGKILL) received by PID 320"))
    assert b"Killed process 320" in left
    assert b"Killed process 321" not in left
