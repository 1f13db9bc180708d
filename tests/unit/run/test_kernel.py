"""Which lines of a kernel's log are about the job: by their time, and by the process that was killed."""

from datetime import datetime

import pytest

from doctor.agents.onhost.kernel_kills import JobMarks
from doctor.run.kernel import marks_of, of_job
from tests.support.cases import cases, from_cases

BEGAN = datetime.fromisoformat("2026-11-20T10:00:00+00:00").timestamp()
LOG = from_cases(__file__, "LOG", str).encode()
KILLED = from_cases(__file__, "KILLED", str).encode()
OF_4_19 = from_cases(__file__, "OF_4_19", str).encode()


Known = tuple[JobMarks, bool]


def known(*pids: int, ids: tuple[str, ...] = (), lost: bool = False) -> Known:
    return JobMarks(pids, ids), lost


def own(log: bytes, job: Known, until: float = BEGAN + 60) -> tuple[bytes, frozenset[int]]:
    return of_job(log, BEGAN, until, job[0], lost=job[1])


def kept(log: bytes, job: Known) -> bytes:
    return own(log, job)[0]


def doubted(job: Known) -> frozenset[int]:
    return own(KILLED, job)[1]


def killed(job: Known, log: bytes = KILLED) -> bool:
    return b"Kill" in kept(log, job)


def said_by(said: bytes) -> Known:
    return marks_of(said, {})


def test_only_lines_from_the_time_of_the_job_count() -> None:
    job, second = known(), LOG.index(b"2026-11-20T10:00:30")
    assert of_job(LOG, BEGAN, BEGAN + 60, job[0], lost=job[1])[0] == LOG[second:]
    assert of_job(LOG, BEGAN - 600, BEGAN, job[0], lost=job[1])[0] == LOG[:second]
    assert of_job(LOG, BEGAN, BEGAN + 20, job[0], lost=job[1])[0] == b""
    assert of_job(b"[16001.398] eth0: link down\n", BEGAN, BEGAN + 60, job[0], lost=job[1])[0] == b""


def test_nobody_elses_process_counts() -> None:
    others = marks_of(b"step 320 loss 320.1\nprocess 3201 ended\n", {"SLURM_JOB_ID": "7"})
    assert kept(KILLED, others) == KILLED.splitlines(keepends=True)[1]


@cases
def test_a_process_that_the_job_names_counts(said: str) -> None:
    assert killed(said_by(said.encode()))


def test_the_id_of_the_job_in_the_name_of_the_control_group_counts() -> None:
    assert killed(known(ids=("77",)))
    assert killed(known(ids=("77",)), OF_4_19)
    assert not killed(known(ids=("7",)), OF_4_19)
    assert not killed(known(ids=("0",)), OF_4_19), "that is the user and the step"
    found = marks_of(b"", {"SLURM_JOB_ID": "77", "PBS_JOBID": ""})
    assert [*found[0].ids] == ["77"]


@pytest.mark.parametrize("name", ["/slurm/job_77", "train", "77"])
def test_the_name_of_a_program_says_nothing(name: str) -> None:
    """Its user chooses it."""
    log = KILLED.replace(b"/docker/c/slurm/job_77/step_0", b"/user.slice").replace(b"python", name.encode())
    assert not killed(known(ids=("77",)), log)


def test_an_unannounced_kill_is_of_the_group_before_it() -> None:
    """The kernel announces ten kills in five seconds, and the first of a group that is killed as a whole."""
    more = KILLED.splitlines(keepends=True)[-1].replace(b"320", b"321")
    assert kept(KILLED + more, known(ids=("77",))).count(b"Killed process") == 2
    assert kept(more, known(ids=("77",))) == b""


def test_only_a_kill_that_names_a_process_of_the_job_is_certain() -> None:
    lost = b"process 1 terminated with signal SIGKILL"
    assert doubted(said_by(lost)) == {320}
    assert doubted(said_by(b"  exitcode  : -9 (pid: 17)")) == {320}
    assert doubted(known(17, lost=True)) == {320}
    assert doubted(said_by(b"  exitcode  : -9 (pid: 320)")) == set()
    assert doubted(known(320, lost=True)) == set()
    assert doubted(known(ids=("77",), lost=True)) == set()


@cases
def test_a_rank_that_was_lost_may_have_another_pid_in_its_container(said: str) -> None:
    assert killed(said_by(said.encode()))


@cases
def test_a_job_that_lost_no_process_to_kill_has_none_that_the_kernel_killed(said: str) -> None:
    assert not killed(said_by(said.encode()))


def test_what_was_killed_long_before_the_end_did_not_end_the_job() -> None:
    lost = said_by(b"Killed\n")
    assert b"Killed process" in own(KILLED, lost, BEGAN + 120)[0]
    assert b"Killed process" not in own(KILLED, lost, BEGAN + 3600)[0]


def test_if_the_job_names_one_of_two_that_were_killed_the_other_is_not_its_own() -> None:
    other = KILLED.replace(b"320", b"321")
    left = kept(KILLED + other, said_by(b"Signal 9 (SIGKILL) received by PID 320"))
    assert b"Killed process 320" in left
    assert b"Killed process 321" not in left
