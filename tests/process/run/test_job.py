"""A training under `doctor run`: who is named if it hangs or ends badly; a healthy one is left alone."""

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.cases import from_cases
from tests.support.command import await_true, ran, ready, relays, started
from tests.support.commands import DOCTOR
from tests.support.paths import ROOT

pytestmark = pytest.mark.slow
JOB = ROOT / "tests/support/command_job.py"
RANK = (sys.executable, str(JOB))
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(JOB))
LONG = 400
"""Seconds: torch starts slowly on a busy machine."""


class Run:
    """`doctor run` around a training in a folder of its own."""

    def __init__(self, folder: Path, *options: str, of: Sequence[str] = TORCHRUN, **env: str) -> None:
        self.mark = f"mark-{uuid.uuid4()}"
        self.folder = folder
        env = {**os.environ, "OMP_NUM_THREADS": "1", "MARK": self.mark, **env}
        self.ended = ran(
            [*DOCTOR, "run", "--no-preflight", *options, "--", *of], cwd=folder, env=env, seconds=LONG
        )
        self.said = self.ended.err.decode()
        await_true(lambda: not relays(self.mark), "the end of all processes")

    def written(self, name: str) -> Iterator[str]:
        yield from (path.read_text() for path in self.folder.glob(f"doctor-runs/*/{name}"))

    @property
    def ours(self) -> str:
        """What doctor itself said."""
        return self.said[self.said.find("\ndoctor: ") :]


def test_a_healthy_training_leaves_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path, "--stall", "20")
    assert run.ended.code == 0, run.said
    assert run.ended.out.count(b"step ") == 12
    assert run.ours.strip().startswith("doctor: the exit code 0 is the job's")
    assert list(tmp_path.iterdir()) == []


def test_a_rank_that_hangs_is_named_and_the_job_is_ended(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    tell = f'echo "$DOCTOR_SUMMARY" > {notes}; cat >> {notes}'
    run = Run(tmp_path, "--stall", "3", "--on-hang", "end", "--notify", tell, FAULT="sleep")
    assert run.ended.code == 75, run.said
    (hang,) = run.written("hang-*.txt")
    assert "HANG  rank 1 on " in hang
    assert "HANG  rank 0 on " not in hang
    assert "rank 1" in notes.read_text().splitlines()[0]
    assert len(notes.read_text().splitlines()) > 3
    assert run.said.splitlines()[-1].startswith("doctor: the exit code 75 is doctor's, which ended the job")
    (folder,) = (tmp_path / "doctor-runs").iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())


LOOP = from_cases(__file__, "LOOP", str)


def test_the_ranks_of_a_script_that_is_ended_end_too(tmp_path: Path) -> None:
    """The shell ends at once, and leaves its background processes alone."""
    run = Run(
        tmp_path, "--stall", "3", "--on-hang", "end", FAULT="sleep", of=("sh", "-c", LOOP, "loop", *RANK)
    )
    assert run.ended.code == 75, run.said
    assert "rank 1" in run.ours.splitlines()[1]


def test_a_rank_that_is_killed_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path, FAULT="kill")
    assert run.ended.code == 1
    assert "rank 1" in run.ours.splitlines()[1]
    (why,) = run.written("why.txt")
    assert "rank 1" in why
    assert "FAIL  rank 0" not in why


@pytest.mark.parametrize(
    ("number", "who"),
    [(signal.SIGKILL, "; nothing says who sent it"), (signal.SIGSEGV, ": it crashed, or somebody sent it")],
)
def test_a_program_that_is_killed_is_said_to_be(tmp_path: Path, number: signal.Signals, who: str) -> None:
    line = f"kill -{number.value} $$"
    killed = ran([*DOCTOR, "run", "--no-preflight", "--", "sh", "-c", line], cwd=tmp_path)
    assert killed.code == -number
    assert f"doctor: {number.name} ended the command{who}.\n" in killed.err.decode()


def test_an_exception_of_the_program_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path, FAULT="raise")
    assert run.ended.code == 1
    assert "rank 1 ended with an exception of the program: ValueError: shape of the batch" in run.ours
    assert "FAIL  rank 0" not in run.ours


@pytest.mark.long
def test_a_pause_is_no_hang(tmp_path: Path) -> None:
    """The first pause is learned; the second is not even looked at."""
    run = Run(tmp_path, "--stall", "5", FAULT="pause", PAUSE="40", VICTIM="0", EACH="1")
    assert run.ended.code == 0
    assert "hang" not in run.ours


def test_who_ended_the_job_is_said_and_nobody_is_accused(tmp_path: Path) -> None:
    words = [*DOCTOR, "run", "--no-preflight", "--", sys.executable, "-c"]
    code = "import time; print('ready', flush=True); time.sleep(600)"
    with started([*words, code], cwd=tmp_path) as doctor:
        ready(doctor)
        assert doctor.stderr is not None
        doctor.send_signal(signal.SIGINT)
        assert doctor.wait(60) == -signal.SIGINT
        said = doctor.stderr.read().decode()
    assert "doctor: somebody ended the job by SIGINT.\n" in said
    assert "FAIL" not in said
    assert list(tmp_path.iterdir()) == []


def test_an_order_to_end_that_is_repeated_takes_no_last_word_away(tmp_path: Path) -> None:
    """Slurm sends TERM again while doctor asks it why the job ended."""
    words = [*DOCTOR, "run", "--no-preflight", "--json", "run.json", "--"]
    with started([*words, "sh", "-c", "echo ready; exec sleep 600"], cwd=tmp_path) as doctor:
        ready(doctor)
        assert doctor.stderr is not None
        while doctor.poll() is None and not (tmp_path / "run.json").exists():
            doctor.send_signal(signal.SIGTERM)
            time.sleep(0.005)
        assert doctor.wait(60) == -signal.SIGTERM
        said = doctor.stderr.read().decode()
    assert (tmp_path / "run.json").exists(), said
    assert "doctor: somebody ended the job by SIGTERM.\n" in said


FAILS = "raise RuntimeError('CUDA error: an illegal memory access was encountered')"
GOES_ON = from_cases(__file__, "GOES_ON", str)


ORDERED = from_cases(__file__, "ORDERED", str)


@pytest.mark.parametrize(
    ("code", "failed"),
    [(FAILS, True), (GOES_ON, False), (ORDERED, False)],
    ids=["fails", "goes on", "is told to end"],
)
def test_a_script_that_fails_and_ends_all_that_it_started_has_a_cause(
    code: str, failed: bool, tmp_path: Path
) -> None:
    """`kill 0` reaches doctor too, which shares the script's process group."""
    shell = f'{sys.executable} -c "$0" || kill -TERM 0'
    run = ran(
        ["setsid", "--wait", *DOCTOR, "run", "--no-preflight", "--", "bash", "-c", shell, code], cwd=tmp_path
    )
    said = run.err.decode()
    assert "the exit code 143 is the job's" in said
    assert "doctor: somebody ended the job by SIGTERM.\n" in said
    assert ("doctor: it had failed before that:\n" in said) == failed, said
    assert ("torch-cuda-program" in said) == failed
    assert bool(list(tmp_path.iterdir())) == failed


WHILE_THE_RELAY_WAITS = from_cases(__file__, "WHILE_THE_RELAY_WAITS", str)


def test_what_was_printed_before_an_order_to_end_counts_though_it_had_not_arrived(tmp_path: Path) -> None:
    run = ran([*DOCTOR, "run", "--no-preflight", "--", "sh", "-c", WHILE_THE_RELAY_WAITS], cwd=tmp_path)
    said = run.err.decode()
    assert "doctor: it had failed before that:\n" in said, said
    assert "torch-cuda-program" in said


LOST = from_cases(__file__, "LOST", tuple[str, ...])


@pytest.mark.parametrize("printed", [LOST[:1], LOST], ids=["caught", "lost"])
def test_a_lost_rank_is_told_though_a_pipe_hides_the_exit_code(
    printed: Sequence[str], tmp_path: Path
) -> None:
    lines = ["[rank1]: Traceback (most recent call last):", '[rank1]:   File "t.py", line 7, in <module>']
    words = ["sh", "-c", 'printf "%s\\n" "$@" | cat', "sh", *lines, *printed]
    run = ran([*DOCTOR, "run", "--no-preflight", "--json", "run.json", "--", *words], cwd=tmp_path)
    said = run.err.decode()
    assert run.code == 0
    lost = printed == LOST
    assert ("doctor: a launcher lost a rank, but the exit code is 0" in said) == lost, said
    assert ("bad label" in said) == lost
    assert (json.loads((tmp_path / "run.json").read_text())["verdict"] == "faulty") == lost


def test_a_quoted_end_of_a_launcher_is_not_one(tmp_path: Path) -> None:
    lines = [
        "srun: error: node2: task 5: Killed",
        "[rank5]: torch.OutOfMemoryError: CUDA out of memory.",
        "step 9 loss 2",
    ]
    run = ran([*DOCTOR, "run", "--no-preflight", "--", "printf", "%s\\n", *lines], cwd=tmp_path)
    assert (run.code, b"rank" in run.err) == (0, False), run.err.decode()


@pytest.mark.long
def test_a_standstill_is_told_with_what_was_printed(tmp_path: Path) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "t.py", line 7, in <module>',
        "ValueError: bad label",
    ]
    words = ["sh", "-c", 'printf "%s\\n" "$@"; sleep 170', "sh", *lines]
    run = ran([*DOCTOR, "run", "--no-preflight", "--stall", "2", "--", *words], cwd=tmp_path, seconds=200)
    assert "By what it printed: Possible cause: the program ended with an exception" in run.err.decode()


def test_a_loss_that_is_no_number_ends_the_job(tmp_path: Path) -> None:
    run = Run(tmp_path, "--on-loss", "end", "--json", "run.json", FAULT="nan", STEPS="100000")
    assert run.ended.code == 75, run.said
    assert "NaN" in run.ours.splitlines()[1]
    (told,) = run.written("loss-1.txt")
    assert "NaN" in told
    report = json.loads((tmp_path / "run.json").read_text())["around"]
    assert report["whose"] == "ended by doctor"
    assert "NaN" in report["attempts"][0]["losses"][0]
    assert "NaN" in report["attempts"][0]["ended"]


@pytest.mark.parametrize(("last", "code", "told"), [("nan", 0, True), ("nan", 1, True), ("1.01", 0, False)])
def test_a_loss_that_turns_bad_at_the_end_is_told(tmp_path: Path, last: str, code: int, told: bool) -> None:
    losses = " ".join(f"{4 - n / 10}" for n in range(30))
    loop = f"for l in {losses} {' '.join([last] * 9)}; do echo step $((n+=1)) loss $l; done; exit {code}"
    run = ran([*DOCTOR, "run", "--local", "--no-preflight", "--", "sh", "-c", loop], cwd=tmp_path)
    said = run.err.decode()
    assert run.code == code
    assert ("The loss of stdout is NaN since step 31" in said) is told
    assert ("doctor: but the loss of stdout is NaN" in said) is (told and not code)


QUOTES = from_cases(__file__, "QUOTES", str)


def test_a_loss_that_its_data_quotes_does_not_end_a_job(tmp_path: Path) -> None:
    words = ["sh", "-c", QUOTES]
    run = ran([*DOCTOR, "run", "--no-preflight", "--on-loss", "end", "--", *words], cwd=tmp_path)
    assert run.code == 0, run.err.decode()


MSRUN = from_cases(__file__, "MSRUN", str)


def test_what_msrun_lets_its_workers_print_into_files_is_read(tmp_path: Path) -> None:
    """The stand-in does what msrun does with --log_dir."""
    msrun = tmp_path / "msrun"
    msrun.write_text(MSRUN)
    msrun.chmod(0o755)
    words = [str(msrun), "--worker_num=2", "--local_worker_num=2", "--log_dir=out", "train.py"]
    run = ran([*DOCTOR, "run", "--no-preflight", "--", *words], cwd=tmp_path)
    assert run.code == 1
    said = run.err.decode()
    assert "rank 1" in said
    assert "KeyError: 7 (/job/train.py:40, in main)" in said
    assert "of another job" not in said
