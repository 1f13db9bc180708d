"""Lines that a terminal broke at its width mean what the whole lines mean."""

from pathlib import Path

import pytest

from doctor.logs.reading.window import whole, width_of
from tests.support.cases import from_cases
from tests.support.fault_logs import pasted
from tests.support.paths import ROOT

LOGS = from_cases(__file__, "LOGS", dict[str, str])
COMPLAINS = from_cases(__file__, "COMPLAINS", dict[str, str])
ROWS = from_cases(__file__, "ROWS", list[str])
WIDTHS = (80, 97, 100, 120, 132)


def broken(text: str, width: int) -> str:
    """The text as `fold -w WIDTH` writes it."""
    lines = text.splitlines()
    return "".join(f"{line[at : at + width]}\n" for line in lines for at in range(0, len(line) or 1, width))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", LOGS)
def test_the_answer_is_that_to_the_whole_lines(name: str, width: int, tmp_path: Path) -> None:
    whole_lines, cut = pasted(tmp_path, LOGS[name]), pasted(tmp_path, broken(LOGS[name], width))
    assert [(each.symptom, each.who, each.confidence) for each in cut.charges] == [
        (each.symptom, each.who, each.confidence) for each in whole_lines.charges
    ]


@pytest.mark.parametrize("name", COMPLAINS)
def test_a_part_of_a_sentence_that_complains_by_itself_is_still_a_part(name: str, tmp_path: Path) -> None:
    text = broken(COMPLAINS[name], 80)
    assert _first(tmp_path, text) == _first(tmp_path, COMPLAINS[name])


@pytest.mark.parametrize(
    "complaint", ["error: no such device", "fatal: it hangs", "Killed", "[rank1]: failed"]
)
def test_a_complaint_below_a_line_of_the_width_begins_anew(complaint: str) -> None:
    text = broken(COMPLAINS["port"], 80) + f"{'the last words of a program ':.<79}d\n{complaint}\n"
    assert whole(text.encode(), 80).endswith(f"d\n{complaint}\n".encode())


def _first(folder: Path, text: str) -> tuple[str | None, str]:
    first = pasted(folder, text).charges[0]
    return first.symptom, first.says


@pytest.mark.parametrize("width", WIDTHS)
def test_each_line_keeps_its_number(width: int) -> None:
    text = broken(LOGS["watchdog"], width).encode()
    last = text.splitlines()[-1]
    made = whole(text + b"[rank1]: the end\n", width)
    assert made.split(b"\n").index(b"[rank1]: the end") == len(text.splitlines())
    assert last not in made.split(b"\n")


@pytest.mark.parametrize("row", ROWS)
def test_rows_of_one_length_are_not_joined(row: str) -> None:
    assert width_of("".join(f"{row.format(number)}\n" for number in range(1, 9)).encode()) == 0


def test_rows_that_begin_alike_are_not_joined() -> None:
    assert width_of((ROOT / "tests/exam/logs/926.log").read_bytes()) == 0
