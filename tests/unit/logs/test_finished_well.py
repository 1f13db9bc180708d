"""A job that caught its complaints and says that it is over did not fail; one whose end another told did."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from doctor.logs.model import Conclusion, LogOutcome
from tests.support.cases import from_cases
from tests.support.fault_logs import concluded, written
from tests.support.paths import ROOT

MEMORY = from_cases(__file__, "MEMORY", list[str])
MISSING = from_cases(__file__, "MISSING", list[str])
PREFIXES = from_cases(__file__, "PREFIXES", list[str])
OVER = from_cases(__file__, "OVER", list[str])
NOT_OVER = from_cases(__file__, "NOT_OVER", list[str])
STEPS = [f"step {step}/12" for step in range(1, 13)]
DONE = "Training finished"


def caught(raised: Sequence[str], end: str = DONE) -> list[str]:
    return [*STEPS[:5], *raised, "trying something else", *STEPS[5:], *end.split("\n")]


def by(prefix: str, lines: Sequence[str]) -> list[str]:
    return [prefix + line for line in lines]


def accused(found: Conclusion) -> set[int | None]:
    assert found.outcome is LogOutcome.NAMED
    return {party.rank for party in found.charges[0].who}


@pytest.mark.parametrize("raised", [MEMORY, MISSING], ids=["memory", "file"])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_a_rank_caught_does_not_fail_it(prefix: str, raised: list[str], tmp_path: Path) -> None:
    found = written(tmp_path, *by(prefix, caught(raised)))
    assert found.outcome is LogOutcome.UNKNOWN
    dead = written(tmp_path, *by(prefix, [*STEPS[:5], *raised]))
    assert dead.outcome is LogOutcome.NAMED


@pytest.mark.parametrize("end", OVER)
def test_words_of_an_end(end: str, tmp_path: Path) -> None:
    assert written(tmp_path, *caught(MISSING, end)).outcome is LogOutcome.UNKNOWN


@pytest.mark.parametrize("end", NOT_OVER)
def test_words_of_something_else(end: str, tmp_path: Path) -> None:
    assert written(tmp_path, *caught(MISSING, end)).outcome is LogOutcome.NAMED


def test_each_rank_says_it_for_itself(tmp_path: Path) -> None:
    both = [line for step in STEPS for line in (f"[rank0]: {step}", f"[rank1]: {step}")]
    ends = ["[rank0]: " + DONE, "[rank1]: step 13/13", "[rank1]: " + DONE]
    memory = by("[rank0]: ", MEMORY)
    assert written(tmp_path, *both[:8], *memory, *both[8:], *ends).outcome is LogOutcome.UNKNOWN
    assert accused(written(tmp_path, *both[:8], *memory, *both[8:], *ends[1:])) == {0}


@pytest.mark.parametrize(("own", "other"), [("3: ", "0: "), ("[1,3]<stderr>:", "[1,0]<stdout>:")])
def test_another_rank_that_finished_acquits_nobody(own: str, other: str, tmp_path: Path) -> None:
    begin = [front + step for step in STEPS[:3] for front in (own, other)]
    found = written(tmp_path, *begin, *by(own, MEMORY), *by(other, [*STEPS[3:], DONE]))
    assert accused(found) == {3}


def test_an_end_before_the_exception_acquits_nobody(tmp_path: Path) -> None:
    for said in ("Download finished", "Stage 1 training finished", DONE):
        assert written(tmp_path, *STEPS[:6], said, *STEPS[6:], *MISSING).outcome is LogOutcome.NAMED
        assert written(tmp_path, *STEPS, said, "saving", *MISSING).outcome is LogOutcome.NAMED


def test_steps_after_it_show_that_it_was_a_stage(tmp_path: Path) -> None:
    """Python writes what it held back when it ends: then also the end of an earlier stage comes last."""
    assert written(tmp_path, *MISSING, "warm-up run finished", *STEPS).outcome is LogOutcome.NAMED


def test_torch_tags_what_ends_a_rank(tmp_path: Path) -> None:
    assert accused(written(tmp_path, *STEPS, *by("[rank0]: ", MEMORY), DONE)) == {0}


def test_a_launcher_that_saw_the_end_is_believed(tmp_path: Path) -> None:
    ended = "srun: error: node1: task 0: Exited with exit code 1"
    assert written(tmp_path, *by("0: ", caught(MEMORY)), ended).outcome is LogOutcome.NAMED


@pytest.mark.parametrize("said", ["Job finished", "Done", "Training finished"])
@pytest.mark.parametrize("name", ["01", "09", "418", "474", "74", "own-mpi-slots"])
def test_the_last_line_of_a_script_hides_no_fault(name: str, said: str, tmp_path: Path) -> None:
    """Scripts end with such a line whatever happened before: it is no word of a rank or of a launcher."""
    log = (ROOT / f"tests/exam/logs/{name}.log").read_text(errors="replace").rstrip("\n")
    before, after = written(tmp_path, log), written(tmp_path, log, said)
    assert before.outcome is after.outcome is LogOutcome.NAMED
    assert before.charges[0].says == after.charges[0].says


def test_errors_in_a_file_of_their_own(tmp_path: Path) -> None:
    for folder, end, outcome in (
        ("a", [DONE], LogOutcome.UNKNOWN),
        ("b", [DONE, "saving"], LogOutcome.NAMED),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "job.err").write_text("\n".join(MISSING) + "\n")
        (tmp_path / folder / "job.out").write_text("\n".join([*STEPS, *end]) + "\n")
        assert concluded(tmp_path / folder).outcome is outcome


def test_who_caught_it_is_not_accused_with_who_did_not(tmp_path: Path) -> None:
    (tmp_path / "rank0.log").write_text("\n".join(caught(MEMORY)) + "\n")
    (tmp_path / "rank1.log").write_text("\n".join([*STEPS[:5], *MEMORY]) + "\n")
    assert accused(concluded(tmp_path)) == {1}


def test_what_healthy_logs_say_too_stays_silent(tmp_path: Path) -> None:
    network = "node1:100:100 [0] NCCL INFO NET/IB : No device found."
    assert written(tmp_path, *caught([network])).outcome is LogOutcome.CLEAN


LIMIT = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-03-01T10:00:00 DUE TO TIME LIMIT ***"
SCANCEL = LIMIT.replace(" DUE TO TIME LIMIT", "")
SHELL = "PackagesNotFoundError: The following packages are not available from current channels:"


def test_an_exception_without_a_traceback_before_steps_did_not_end_the_job(tmp_path: Path) -> None:
    says = written(tmp_path, SHELL, *STEPS, LIMIT).charges[0].says
    assert says.startswith("the scheduler ended the job: the job reached its time limit")


@pytest.mark.parametrize("last", [LIMIT, SCANCEL])
def test_an_exception_that_nothing_follows_came_first(last: str, tmp_path: Path) -> None:
    value = [*MISSING[:-1], "ValueError: shard 0017 is empty"]
    for lines in ([SHELL], [*STEPS, *value], [*value, *STEPS]):  # the steps may have been held back
        assert "an exception of the program came first" in written(tmp_path, *lines, last).charges[0].says


HYDRA = from_cases(__file__, "HYDRA", str)


@pytest.mark.parametrize(
    ("code", "string", "says"),
    [
        (139, "Segmentation fault (signal 11)", "process 12 on n3 died of SIGSEGV"),
        (11, "Segmentation fault (signal 11)", "process 12 on n3 died of SIGSEGV"),
        (9, "Killed (signal 9)", "process 12 on n3 was killed (SIGKILL)"),
    ],
)
def test_hydra_says_who_ended_and_how(code: int, string: str, says: str, tmp_path: Path) -> None:
    found = written(tmp_path, *HYDRA.format(code, string).split("\n"))
    assert found.charges[0].says.startswith(says)


@pytest.mark.parametrize(
    ("line", "symptom"),
    [
        (
            "[mpiexec@n1] HYDU_parse_hostfile (lib/utils/args.c:324): unable to open host file: h",
            "mpi-hostfile",
        ),
        ("Open RTE was unable to open the hostfile:", "mpi-hostfile"),
        ("mpirun: The file does not exist", "mpi-hostfile"),
        ("[mpiexec@n1] main (mpiexec/mpiexec.c:54): error parsing parameters", "mpi-arguments"),
        ('mpiexec: Error: unknown option "--foo"', "mpi-arguments"),
    ],
)
def test_a_launch_that_failed_is_not_silent(line: str, symptom: str, tmp_path: Path) -> None:
    assert written(tmp_path, "begin", line, "end").charges[0].symptom == symptom


@pytest.mark.parametrize(
    "line",
    [
        "cache: the file does not exist, it is made now",
        "mpirun: the hostfile is hosts",
        "INFO unable to open host file cache, using the default",
        "parser: unrecognized argument foo is left out",
    ],
)
def test_what_others_say_of_files_and_arguments(line: str, tmp_path: Path) -> None:
    assert written(tmp_path, *STEPS, line, *STEPS, DONE).outcome is LogOutcome.CLEAN
