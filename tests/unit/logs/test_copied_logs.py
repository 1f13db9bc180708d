"""Logs that somebody copied: with numbers in front of the lines, with identifiers, or years later."""

from datetime import datetime, timezone
from pathlib import Path

from doctor.logs.model import LogOutcome
from tests.support.cases import cases, from_cases
from tests.support.fault_logs import accusations, accused, concluded

TIMED_OUT = from_cases(__file__, "TIMED_OUT", str)
FRAMES = 'Traceback (most recent call last):\n  File "/job/train.py", line 12, in <module>\n    main()\n'
TABLE = from_cases(__file__, "TABLE", str)


def written(folder: Path, text: str) -> Path:
    path = folder / "train.log"
    path.write_text(text)
    return path


def test_the_numbers_of_lines_are_not_ranks(tmp_path: Path) -> None:
    lines = [TIMED_OUT.format(number=80746 + rank, rank=rank) for rank in range(4)]
    said = concluded(written(tmp_path, "\n".join(lines)))
    assert {each.rank for each in accused(said)} <= set(range(4))


def test_the_end_of_a_uuid_is_not_a_host(tmp_path: Path) -> None:
    prefix = "2023-04-29 06:01:12.977 [177/train] [09c561ee-a44c-4795-967c-7183a83b3160] "
    text = "".join(
        prefix + line + "\n" for line in (FRAMES + "OSError: [Errno 28] No space left on device").split("\n")
    )
    said = concluded(written(tmp_path, text))
    assert [each.symptom for each in accusations(said)] == ["python-disk-full"]
    assert {each.host for each in accused(said)} == {None}


def test_lines_without_a_year_take_it_from_those_with_one(tmp_path: Path) -> None:
    said = concluded(written(tmp_path, TABLE))
    years = {datetime.fromtimestamp(at, timezone.utc).year for at, _ in said.story if at is not None}
    assert years == {2025}


@cases
def test_an_exception_that_ends_the_program_is_an_answer(tmp_path: Path, last: str) -> None:
    said = concluded(written(tmp_path, f"step 10 loss 2.0\n{FRAMES}{last}\n"))
    assert said.outcome is LogOutcome.NAMED
    assert last.split(":")[0] in accusations(said)[0].says


def test_an_exception_after_which_the_program_speaks_is_not_one(tmp_path: Path) -> None:
    caught = f"{FRAMES}ValueError: no\n" + "the shard is skipped\n" * 5
    assert concluded(written(tmp_path, caught)).outcome is not LogOutcome.NAMED


def test_each_process_that_crashed_is_named(tmp_path: Path) -> None:
    lines = [f"[node{n}:{n}00] Signal: Segmentation fault (11)" for n in (4, 5)]
    assert {each.host for each in accused(concluded(written(tmp_path, "\n".join(lines))))} == {
        "node4",
        "node5",
    }
