"""A job that was started again: only its last attempt is judged; how the others ended is reported."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from doctor.logs.explanation import Explanation, last_words, why_unknown
from doctor.logs.loss.collect import LossCollector
from doctor.logs.model import LogOutcome, Logs
from doctor.logs.read import read
from doctor.logs.reading.attempts import MOST, cut, head_of
from doctor.logs.reading.window import Window
from tests.support.cases import from_cases
from tests.support.fault_logs import JOBS, concluded, matcher, pasted

LOOP = JOBS / "loopback"


def logs_of(*given: Path) -> Logs:
    return read(given, matcher(), loss=LossCollector)


def text_of(name: str) -> str:
    return (LOOP / name / "train.log").read_text()


def later(text: str, hours: int = 20) -> str:
    """The same job, this many hours later and with other processes."""
    start = datetime(2026, 11, 22, 1, 0, 0)

    def moved(found: re.Match[str]) -> str:
        then = start.replace(hour=int(found[2]), minute=int(found[3])) + timedelta(hours=hours)
        return f"{found[1]}{then:%m%d %H:%M}"

    text = re.sub(r"([EWI])1122 (\d\d):(\d\d)", moved, text)
    end = f"{start + timedelta(hours=hours):%Y-%m-%d_%H:%M}"
    text = re.sub(r"(time {6}: )2026-11-22_\d\d:\d\d", rf"\g<1>{end}", text)
    return re.sub(r"\b(\d{5}) torch/distributed", r"9\1 torch/distributed", text)


RESTARTED = from_cases(__file__, "RESTARTED", list[tuple[str, ...]])


@pytest.mark.parametrize(("name", "what"), RESTARTED)
def test_a_job_that_went_on_is_told_of_and_blames_nobody(name: str, what: str) -> None:
    said = concluded(LOOP / name)
    assert said.outcome is LogOutcome.CLEAN
    assert said.charges == ()
    assert len(said.beside) == 1
    assert said.beside[0].startswith(f"attempt 1 of 2 failed: {what}")
    assert last_words(Explanation(said, logs_of(LOOP / name))).startswith("Attempt 2 went on")


@pytest.mark.parametrize(("name", "first"), [("failed-again", 2), ("failed-again-redirects", 3)])
def test_the_last_attempt_is_judged_alone(name: str, first: int) -> None:
    said = concluded(LOOP / name)
    assert said.outcome is LogOutcome.NAMED
    assert {party.rank for each in said.charges if each.because is None for party in each.who} == {1}
    assert said.beside[0].startswith(f"attempt 1 of 2 failed: rank {first} ended with an exception")
    assert last_words(Explanation(said, logs_of(LOOP / name))).endswith(" in attempt 2.")


def test_an_attempt_of_which_no_step_is_told_has_not_gone_on(tmp_path: Path) -> None:
    text = text_of("restarted")
    began = text[: text.rindex("step 10/40")]
    said = pasted(tmp_path, began)
    assert said.outcome is LogOutcome.UNKNOWN
    assert any("attempt 2 of 2 began" in each for each in said.open)
    assert said.beside[0].startswith("attempt 1 of 2 failed: rank 2")


def test_two_starts_in_one_file(tmp_path: Path) -> None:
    """Rank 1 failed yesterday, rank 2 today."""
    today = later(text_of("failed")).replace("0023 is empty", "0031 is empty")
    said = pasted(tmp_path, text_of("failed") + today)
    assert said.outcome is LogOutcome.NAMED
    assert "shard 0031" in said.charges[0].says
    assert "shard 0023" in said.beside[0]


def test_what_ctrl_c_ended_yesterday_is_no_cause_today(tmp_path: Path) -> None:
    said = pasted(tmp_path, text_of("ctrlc") + later(text_of("failed")))
    assert [each.rank for each in said.charges[0].who] == [1]
    assert "Ctrl-C" in said.beside[0]


def test_one_start_that_failed_has_no_earlier_ones() -> None:
    for name in ("failed", "ctrlc", "healthy"):
        assert concluded(LOOP / name).beside == ()


def test_two_hosts_in_one_file_are_one_attempt(tmp_path: Path) -> None:
    files = [JOBS / "killed" / name for name in ("node1.log", "node2.log")]
    said = pasted(tmp_path, "".join(path.read_text() for path in files))
    assert said.beside == ()


def test_two_launchers_that_write_at_the_same_time_are_one_attempt(tmp_path: Path) -> None:
    """As srun writes one file: both report the failure before either prints its table."""
    parts = []
    for name, begins in (("node2.log", "[rank2]: Traceback"), ("node1.log", "[rank1]: Traceback")):
        text = (JOBS / "exception" / name).read_text()
        text = text if name == "node2.log" else re.sub(r"\b(5\d)( torch/|\)| closing)", r"9\1\2", text)
        failed = text.index("\n", text.index("failed (exitcode")) + 1
        trained = text.index(begins)
        parts.append((text[:trained], text[trained:failed], text[failed:]))
    said = pasted(tmp_path, "".join("".join(each) for each in zip(*parts, strict=True)))
    assert said.beside == ()
    assert [each.rank for each in said.charges[0].who] == [2]


def test_a_launcher_that_ends_later_on_another_host_is_no_attempt(tmp_path: Path) -> None:
    """All ranks wrote before that; node1 has its first line of torchrun when node2 has ended."""
    steps = "".join(f"[rank{rank}]: step {step} loss 1.0\n" for step in range(9) for rank in range(4))
    second = (JOBS / "exception/node2.log").read_text()
    first = (JOBS / "exception/node1.log").read_text()
    first = re.sub(r"\b(5\d)( torch/|\)| closing)", r"9\1\2", first).replace(" 21:17:", " 21:18:")
    ends = second[second.index("[rank2]: Traceback") :] + first[first.index("[rank1]: Traceback") :]
    said = pasted(tmp_path, steps + ends)
    assert said.beside == ()
    assert [each.rank for each in said.charges[0].who] == [2]
    assert "shard 0017" in said.charges[0].says


def test_the_kernel_killed_in_the_attempt_before(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(text_of("restarted-tee"))
    (tmp_path / "kern.log").write_text(
        "2026-11-22T01:09:00.000000 node1 kernel: Out of memory: Killed process 4711 (python) total-vm:1kB\n"
    )
    said = concluded(tmp_path)
    assert not any(each.who and each.who[0].rank is not None for each in said.charges)


def test_what_follows_on_the_end_is_no_attempt(tmp_path: Path) -> None:
    """The scheduler's line after a log that breaks off, and a rank's output after its launcher's end."""
    text = text_of("failed")
    cut = text[: text.index("Traceback (most recent call last):\n  File")]
    said = pasted(tmp_path, f"{cut}srun: error: node1: task 0: Exited with exit code 1\n")
    assert [each.rank for each in said.charges[0].who] == [1]
    late = "[rank0]:[W1122 01:00:59.000000000 ProcessGroupNCCL.cpp:1553] Warning: not destroyed\n"
    said = pasted(tmp_path, text_of("ctrlc") + late)
    assert said.beside == ()
    assert "Ctrl-C" in said.charges[0].says


def test_two_hosts_that_were_both_restarted(tmp_path: Path) -> None:
    (tmp_path / "node1.log").write_text(text_of("failed-again"))
    (tmp_path / "node2.log").write_text(re.sub(r"\[rank(\d)\]", r"[rank1\1]", text_of("failed-again")))
    said = concluded(tmp_path)
    assert len(said.beside) == 1
    assert not any("shard" in each.says for each in said.charges)


def test_hosts_that_disagree_on_the_attempts_are_read_as_one(tmp_path: Path) -> None:
    (tmp_path / "node1.log").write_text(text_of("restarted"))
    (tmp_path / "node2.log").write_text(text_of("failed"))
    assert concluded(tmp_path).beside == ()


BANNER = """+---------------------------------------------------+
| NVIDIA-SMI 570.158.01   Driver Version: 570.158.01 |
|-----------------------------------------+---------+
"""
CANCELLED = "slurmstepd: error: *** JOB {} ON dgx-10 CANCELLED AT 2025-10-16T02:31:48{} ***\n"


def steps(first: int, last: int) -> str:
    return "".join(f"step {n}: loss={3 - n / 100:.4f}, grad_norm=0.51\n" for n in range(first, last))


def began(at: str, said: str) -> str:
    """A run of a program that says when it begins and what it runs on."""
    about = "---Environment Information---\nplatform: Linux-5.11\nPython: 3.8.5 (GCC 7.3.0)\n"
    return f"2022-05-14 {at} [INFO] begins\n{about}{said}"


def raised(what: str) -> str:
    return f'Traceback (most recent call last):\n  File "train.py", line 165, in main\n    raise E\n{what}\n'


def test_a_job_that_appended_its_output_is_judged_alone(tmp_path: Path) -> None:
    """The first lines of the file come again below what ended the job before."""
    before = f"Thu Oct 16 01:38:22 2025\n{BANNER}{steps(0, 9)}{CANCELLED.format(304184, '')}"
    after = f"Sat Oct 18 09:12:40 2025\n{BANNER}{steps(0, 30)}"
    said = pasted(tmp_path, before, after, CANCELLED.format(310529, " DUE TO PREEMPTION"))
    assert [each.symptom for each in said.charges if each.because is None] == ["slurm-preempted"]
    assert said.beside == (
        "attempt 1 of 2 failed: the scheduler ended the job: the job was cancelled (JOB 304184)",
    )
    said = pasted(tmp_path, before, after)
    assert (said.outcome, said.charges, len(said.beside)) == (LogOutcome.CLEAN, (), 1)


def test_the_last_of_several_starts_by_hand_is_judged_alone(tmp_path: Path) -> None:
    first = began("23:14:47", raised("RuntimeError: No configuration file specified."))
    said = pasted(tmp_path, first, began("23:18:46", steps(0, 9) + raised("KeyError: 'label'")))
    assert "KeyError: 'label'" in said.charges[0].says
    assert ["RuntimeError" in each for each in said.beside] == [True]


def test_ranks_that_begin_alike_are_one_attempt(tmp_path: Path) -> None:
    """One of two ranks fails before the other writes its first lines."""
    first = began("23:14:47", raised("RuntimeError: No configuration file specified."))
    said = pasted(tmp_path, first, began("23:14:49", "I0514 waits for its peers\n"))
    assert "No configuration file specified" in said.charges[0].says
    assert said.beside == ()
    said = pasted(tmp_path, *(f"{BANNER}rank {n} begins\n" for n in range(4)), raised("KeyError: 'label'"))
    assert "KeyError: 'label'" in said.charges[0].says


ABOUT = "Loading the configuration base.yaml\nUsing device cuda:0\nDataset: 5021 samples in data/train\n"
PROMPT = "(env) me@gpu1:~/w$ "


@pytest.mark.parametrize(
    ("begins", "first", "last"),
    [
        (ABOUT, steps(0, 3), steps(0, 9)),
        (ABOUT.replace("\n", " …\n  warn(it)\n"), "", ""),
        ("nohup: ignoring input\n", "", ""),
        (f"{PROMPT}python train.py --lr 1\n", f"{PROMPT}vim train.py\n", f"{PROMPT}\n"),
        ("[me@gpu1 w]$ python train.py\n", "", ""),
        ("+ python /w/train.py --fast\n", "", ""),
        (f"2026-02-01 10:00:00 INFO {ABOUT}", "", ""),
    ],
)
def test_a_program_that_ended_and_begins_again_is_another_attempt(
    begins: str, first: str, last: str, tmp_path: Path
) -> None:
    """Without times, and whichever of its first lines are in the file."""
    before, after = raised("KeyError: 'a'"), raised("ValueError: bad label 7")
    said = pasted(tmp_path, f"{begins}{first}{before}", f"wandb: synced\n{begins}{last}{after}")
    assert "ValueError: bad label 7" in said.charges[0].says
    assert ["KeyError" in each for each in said.beside] == [True]


def test_a_command_line_that_was_mended_is_no_longer_at_fault(tmp_path: Path) -> None:
    usage = "usage: train.py [-h] [--lr LR]\n             [--seed SEED] [--out OUT]\n             [--fp16]\n"
    error = "train.py: error: argument --{}: invalid int value: 's'\n"
    said = pasted(tmp_path, *(usage + error.format(name) for name in ("lr", "seed", "seed")))
    assert "argument --seed" in said.charges[0].says
    assert ["--lr" in each for each in said.beside] == [True]


def test_a_run_after_one_that_failed_is_clean(tmp_path: Path) -> None:
    said = pasted(
        tmp_path,
        ABOUT + raised("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"),
        ABOUT + steps(0, 40),
    )
    assert (said.outcome, said.charges, len(said.beside)) == (LogOutcome.CLEAN, (), 1)


@pytest.mark.parametrize(
    "parts",
    [
        [ABOUT + raised("KeyError: 'a'"), ABOUT + raised("KeyError: 'a'")],
        [f"+ python prepare.py\n{raised('KeyError: 1')}", f"+ python train.py\n{raised('ValueError: x')}"],
        [ABOUT + raised("KeyError: 'a'"), steps(0, 3) + raised("ValueError: x")],
    ],
    ids=["ranks that end alike", "the next program of a script", "a program that caught its exception"],
)
def test_what_ends_twice_is_one_attempt(parts: list[str], tmp_path: Path) -> None:
    assert pasted(tmp_path, *parts).beside == ()


def test_a_rank_that_begins_late_and_loses_another_is_of_the_same_attempt(tmp_path: Path) -> None:
    lost = "RuntimeError: [../gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:3320"
    assert pasted(tmp_path, ABOUT + raised("KeyError: 'a'"), ABOUT + raised(lost)).beside == ()


def test_starts_on_whose_number_the_files_disagree_do_not_end_a_job_that_goes_on(tmp_path: Path) -> None:
    """What ended a rank is not its last word if it begins again, even if its last start is not told apart."""
    waits = "".join(f"waiting for the others, {n} of them are here\n" for n in range(300))
    (tmp_path / "workerlog.0").write_text(ABOUT + steps(0, 90))
    failed = began("08:56:29", steps(0, 3) + raised("KeyError: 'eval_f1'"))
    (tmp_path / "workerlog.1").write_text(failed + began("10:35:11", waits))
    said = concluded(tmp_path)
    assert not any("ended with an exception" in each.says for each in said.charges)


LAUNCH = """/usr/lib/torch/distributed/launch.py:188: FutureWarning: The module is deprecated
and will be removed in future. Use torchrun.
Note that --use_env is set by default in torchrun.
If your script expects `--local_rank` argument to be set, please
"""
LOST = "[../gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:3320"
GAVE_UP = (
    "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 18895 closing signal SIGTERM\n"
    "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 18894) of "
    "binary: /usr/bin/python\n"
)


@pytest.mark.parametrize(
    ("then", "cause", "beside"),
    [
        (raised("OSError: [Errno 28] No space left on device") + GAVE_UP, "a file system is full", 1),
        (steps(0, 40), "", 1),
        (
            raised(f"RuntimeError: {LOST}"),
            "KeyError: 'a'",
            0,
        ),
    ],
    ids=["ended", "goes on", "a host that begins late"],
)
def test_launchers_without_times_that_begin_again(then: str, cause: str, beside: int, tmp_path: Path) -> None:
    """Each host writes the same first lines; those below a launcher that gave up belong to another start."""
    said = pasted(tmp_path, 2 * LAUNCH + raised("KeyError: 'a'") + GAVE_UP, LAUNCH + then)
    causes = [each.says for each in said.charges if each.because is None]
    assert len(said.beside) == beside
    assert causes == [] if not cause else cause in causes[0]


TERMINATED = """

--------------------------------------
C++ Traceback (most recent call last):
--------------------------------------
No stack trace in paddle, may be caused by external reasons.

----------------------
Error Message Summary:
----------------------
FatalError: `Termination signal` is detected by the operating system.
  [TimeInfo: *** Aborted at 1680688160 (unix time) try "date -d @1680688160" if you are using GNU date ***]
  [SignalInfo: *** SIGTERM (@0x3f4002bdc34) received by PID 2711 (TID 0x7f8d95a6b4c0) from PID 2420 ***]

"""


def paddle(hour: int, pid: int) -> str:
    """What a rank of Paddle says when it starts."""
    return (
        f"I0405 {hour:02}:09:50.156263 {pid} tcp_utils.cc:181] The server starts to listen on IP_ANY:54371\n"
        f"W0405 {hour:02}:09:56.274407 {pid} gpu_resources.cc:61] Please NOTE: device: 0, Driver API: 11.5\n"
    )


def epochs(hour: int, first: int = 0, last: int = 30) -> str:
    return "".join(
        f"[04/05 {hour:02}:10:{n:02}] ppdet.engine INFO: Epoch: [0] [{n}/726] loss: {3 - n / 40:.3f}\n"
        for n in range(first, last)
    )


CAUGHT = (
    raised("ConnectionError: later") + "Retrying the shard\nUsing a mirror of the data\nOpening the shard\n"
)
KEY, DISK = raised("KeyError: 'a'"), raised("OSError: [Errno 28] No space left on device")


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (
            [
                paddle(8, 1) + KEY + paddle(9, 3) + epochs(9),
                paddle(8, 2) + TERMINATED + paddle(9, 4) + epochs(9),
            ],
            "",
        ),
        ([paddle(8, 1) + KEY + paddle(9, 3) + epochs(9), paddle(8, 2) + raised("ValueError: old")], ""),
        ([epochs(8, 0, 20) + CAUGHT + epochs(8, 20, 40) + CAUGHT + epochs(9), epochs(8) + epochs(9)], ""),
        (
            [
                paddle(8, 1) + KEY + paddle(9, 3) + epochs(9) + TERMINATED,
                paddle(8, 2) + TERMINATED + paddle(9, 4) + epochs(9) + DISK,
            ],
            "rank 1: a file system is full",
        ),
        (
            [
                KEY + paddle(9, 3) + epochs(9) + TERMINATED,
                raised("ImportError: x") + paddle(7, 2) + KEY + paddle(9, 4) + epochs(9) + DISK,
            ],
            "rank 1: a file system is full",
        ),
        (
            [
                epochs(8) + TERMINATED,
                epochs(8, 0, 9) + CAUGHT + epochs(8, 9, 18) + CAUGHT + epochs(8, 18) + KEY,
            ],
            "rank 1 ended with an exception of the program: KeyError: 'a' (train.py:165, in main)",
        ),
    ],
    ids=[
        "began again",
        "an older job had more ranks",
        "caught",
        "ended",
        "not as often",
        "caught, and then ended",
    ],
)
def test_paddle_appends_to_the_logs_of_its_ranks(files: list[str], named: str, tmp_path: Path) -> None:
    """The last start is judged, also if the ranks did not start equally often."""
    for number, text in enumerate(files):
        (tmp_path / f"workerlog.{number}").write_text(text)
    said = concluded(tmp_path)
    causes = [each.says for each in said.charges if each.because is None]
    assert causes == ([named] if named else [])
    assert named or said.outcome is not LogOutcome.NAMED


@pytest.mark.parametrize(
    ("others", "says"),
    [
        (raised("ValueError: bad shape") + TERMINATED, "ranks 0-2 ended"),
        (raised("ValueError: another") + TERMINATED, "rank 1 ended"),
        (TERMINATED, "rank 1 ended"),
    ],
    ids=["raised the same", "raised another", "raised nothing"],
)
def test_who_was_ended_after_what_it_raised_is_as_much_at_fault(
    others: str, says: str, tmp_path: Path
) -> None:
    """Paddle's launcher ends the ranks that still print the exception that all of them met."""
    for rank in range(3):
        ended = raised("ValueError: bad shape") if rank == 1 else others
        (tmp_path / f"workerlog.{rank}").write_text(paddle(8, rank) + epochs(8) + ended)
    causes = [each.says for each in concluded(tmp_path).charges if each.because is None]
    assert [each.partition(" with")[0] for each in causes] == [says]


def test_the_first_process_of_another_host_is_not_rank_0(tmp_path: Path) -> None:
    """Paddle numbers the logs of each host from 0."""
    for host, ended in (("node1", ""), ("node2", raised("KeyError: 'a'"))):
        (tmp_path / host).mkdir()
        (tmp_path / host / "workerlog.0").write_text(paddle(8, 1) + epochs(8) + ended)
        (tmp_path / host / "workerlog.1").write_text(paddle(8, 2) + epochs(8))
    assert [each.says.partition(" with")[0] for each in concluded(tmp_path).charges] == [
        "device 0 of node2 ended"
    ]


@pytest.mark.parametrize("where", ["", "site-packages/"])
def test_the_launcher_of_another_host_ends_no_attempt(where: str, tmp_path: Path) -> None:
    """Each writes the path of its module as its version of torch does."""
    text = text_of("failed").replace(" torch/distributed", f" {where}torch/distributed")
    mine = next(line for line in text.splitlines() if "failed (exitcode: 1)" in line)
    other = re.sub(r"\b\d{5} (?=(?:site-packages/)?torch/)", "70701 ", mine)
    other = re.sub(r"local_rank: \d \(pid: \d+\)", "local_rank: 0 (pid: 70702)", other)
    said = pasted(tmp_path, text.replace(mine, f"{mine}\nTraceback (most recent call last):\n{other}", 1))
    assert "ended with an exception of the program" in said.charges[0].says
    assert (said.charges[0].who[0].rank, said.beside) == (1, ())


def test_a_beginning_that_never_ends_costs_no_more_than_a_hundred_cuts() -> None:
    text = began("23:14:47", "RuntimeError: bad\n").encode() * 5_000
    parts = [*cut(Window(text, 0, len(text), 1), head_of(text))]
    assert len(parts) == MOST
    assert b"".join(part.text for part, _ in parts) == text


def test_how_the_attempt_before_an_undecided_one_ended_is_said_first(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(
        "Epoch [1][1812/1950] lr: 1.0e-04, loss: 0.7595\n"
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 20277)"
        " of binary: /opt/python\n"
        "INFO:torch.distributed.elastic.agent.server.api:[default] Worker group FAILED. 3/3 attempts left;"
        " will restart worker group\n"
        "INFO:torch.distributed.elastic.agent.server.api:[default] Rendezvous complete for workers. Result:\n"
        "  restart_count=1\n"
    )
    said = why_unknown(Explanation(concluded(path), logs_of(path)))
    ended = "attempt 1 of 2 failed: process 20277 (local rank 1) was killed (SIGKILL)"
    assert said == f"The log does not say whether the last attempt went on; {ended}"
