"""A log that ends with a complaint unknown to all symptoms is never taken for healthy."""

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from tests.support.cases import from_cases
from tests.support.each import each
from tests.support.fault_logs import concluded, written

SAYS = from_cases(__file__, "SAYS", list[str])
STEPS = [f"step {step} loss {3 - step / 1000:.4f}" for step in range(800)]


@pytest.mark.parametrize("before", [STEPS, ["start of training"], []], ids=["steps", "start", "nothing"])
@each("line", SAYS)
def test_it_is_no_healthy_log(line: str, before: list[str], tmp_path: Path) -> None:
    said = written(tmp_path, *before, line)
    assert said.outcome is not LogOutcome.CLEAN
    if said.outcome is LogOutcome.UNKNOWN:
        known = [each for charge in said.charges for each in charge.lines]
        assert [each.text for each in (*said.odd, *known)] == [line]


@each("line", SAYS)
def test_a_job_that_goes_on_after_it_to_its_end_is_healthy(line: str, tmp_path: Path) -> None:
    said = written(tmp_path, *STEPS[:200], line, *STEPS[200:], "training finished")
    assert said.outcome is LogOutcome.CLEAN, said.odd


def test_what_was_overcome_before_counts_at_the_end(tmp_path: Path) -> None:
    said = written(tmp_path, *STEPS[:200], SAYS[0], *STEPS[200:], SAYS[0])
    assert said.outcome is LogOutcome.UNKNOWN
    assert [each.number for each in said.odd] == [802]


def test_many_others_before_do_not_hide_it(tmp_path: Path) -> None:
    others = [f"ERROR {name}: not there" for name in ("lamp", "fan", "door", "shelf", "rack", "cable")]
    said = written(tmp_path, *STEPS[:200], *others, *STEPS[200:], SAYS[0])
    assert said.outcome is LogOutcome.UNKNOWN
    assert [each.text for each in said.odd] == [SAYS[0]]


BAR = "\r  1%|▏         | {}/1856 [00:01<04:11,  7.3it/s]"
CRASH = from_cases(__file__, "CRASH", str)
FATAL = from_cases(__file__, "FATAL", list[str])


@each("line", FATAL)
def test_a_bar_that_is_printed_again_at_the_end_clears_nobody(line: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    bars = "".join(BAR.format(step) for step in range(11))
    path.write_text(f"start\n{bars}{CRASH.format(line)}{BAR.format(10)}\n")
    assert concluded(path).outcome is not LogOutcome.CLEAN
    on = "\n".join(BAR.format(step) for step in (11, 12, 13))
    path.write_text(f"start\n{bars}\n{CRASH.format(line)}{on}\n")
    if "ValueError" in line:
        assert concluded(path).outcome is LogOutcome.CLEAN


@each("line", FATAL)
def test_what_print_held_back_clears_nobody(line: str, tmp_path: Path) -> None:
    said = written(tmp_path, *STEPS[:200], CRASH.format(line), *STEPS[200:300])
    assert said.outcome is not LogOutcome.CLEAN


@each("line", FATAL)
def test_the_steps_of_another_rank_clear_nobody(line: str, tmp_path: Path) -> None:
    """Without prefixes, srun's log does not show which rank logged a step."""
    ends = "srun: error: node2: task 1: Exited with exit code 1"
    said = written(tmp_path, *STEPS[:200], CRASH.format(line), *STEPS[200:210], ends)
    assert said.outcome is not LogOutcome.CLEAN
    text = [each.text for each in said.odd] + [at.text for each in said.charges for at in each.lines]
    assert any(line in each for each in text), text


@each(
    "line",
    [
        *SAYS[-9:],
        "slurmstepd: error: *** JOB 7 ON node1 CANCELLED AT 2026-01-01T10:00:00 DUE TO TIME LIMIT ***",
    ],
)
def test_a_line_glued_to_a_bar_is_a_line(line: str, tmp_path: Path) -> None:
    bars = "".join(BAR.format(step) for step in range(11))
    said = written(tmp_path, "start", bars + line)
    assert said.outcome is not LogOutcome.CLEAN
    if "LIMIT" in line:
        assert said.charges[0].symptom == "slurm-time-limit"


OUT_OF_MEMORY = from_cases(__file__, "OUT_OF_MEMORY", list[str])


def bar(step: int, of: int = 500, name: str = "train") -> str:
    return f"\r{name}:  20%|##        | {step}/{of} [00:40<03:59,  20.8it/s]"


@each("at_exit", [[bar(105)], [bar(20, 40, "batch"), bar(1, 5, "epochs")], ["INFO:train:step 105"] * 3])
def test_what_bars_and_other_ranks_print_once_more_clears_nobody(at_exit: list[str], tmp_path: Path) -> None:
    steps = [*map(bar, range(104)), *(f"INFO:train:step {step}" for step in range(104))]
    assert written(tmp_path, *steps, *OUT_OF_MEMORY, *at_exit).outcome is LogOutcome.NAMED


@each("name", ["bars", "records"])
def test_several_steps_after_an_exception_show_that_it_was_caught(name: str, tmp_path: Path) -> None:
    on = ["".join(map(bar, range(104, 130)))] if name == "bars" else [f"INFO:t:step {n}" for n in range(9)]
    assert written(tmp_path, *OUT_OF_MEMORY, *on).outcome is LogOutcome.CLEAN


CUT_OFF = from_cases(__file__, "CUT_OFF", list[list[str]])


@each("lines", CUT_OFF)
def test_a_log_that_ends_inside_a_traceback_complains(lines: list[str], tmp_path: Path) -> None:
    said = written(tmp_path, *STEPS[:50], *lines)
    assert said.outcome is LogOutcome.UNKNOWN
    assert "the log ends here" in said.odd[0].text


ANY_NAME = from_cases(__file__, "ANY_NAME", list[str])


@each("line", ANY_NAME)
def test_an_exception_of_any_name_ends_a_program(line: str, tmp_path: Path) -> None:
    said = written(tmp_path, *STEPS[:200], *CRASH.format(line).splitlines())
    assert said.outcome is LogOutcome.NAMED
    assert f"ended with an exception: {line} (" in said.charges[0].says
    gone_on = written(tmp_path, *STEPS[:100], *CRASH.format(line).splitlines(), *STEPS[100:])
    assert gone_on.outcome is LogOutcome.CLEAN


LIMITS = from_cases(__file__, "LIMITS", dict[str, str])


@each("line", LIMITS)
def test_other_batch_systems_say_why_they_ended_a_job(line: str, tmp_path: Path) -> None:
    said = written(tmp_path, *STEPS[:200], line)
    assert [each.symptom for each in said.charges] == [LIMITS[line]]


def test_a_bar_that_a_cloud_marks_as_an_error_is_no_complaint(tmp_path: Path) -> None:
    bar = "ERROR 2026-11-20T10:00:{0}.000000  26/99  2.5G  0.01:  64%|6   | {0}/1860 [04:49<02:49, 3.94it/s]"
    bars = [bar.format(number) for number in range(10, 20)]
    assert written(tmp_path, *bars).outcome is LogOutcome.CLEAN
    failed = "ERROR 2026-11-20T10:00:20.000000 worker 3/8 gave up after [3 s/it]: no answer"
    assert written(tmp_path, *bars, failed).outcome is LogOutcome.UNKNOWN
