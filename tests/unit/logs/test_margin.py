"""A text that was pasted with blanks or `> ` before every line means what it means without them."""

import re
from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from doctor.logs.reading.window import margin_of, without_margin
from tests.support.cases import from_cases
from tests.support.fault_logs import pasted

LOGS = from_cases(__file__, "LOGS", dict[str, str])
FRAMES = from_cases(__file__, "FRAMES", str)
MARGINS = (" ", "    ", "\t", "> ", "> > ", "  > ")


def behind(margin: str, text: str) -> str:
    """The text with the margin; as where blanks at the end are cut off, empty lines have none."""
    return "".join(f"{margin + line if line else ''}\n" for line in text.splitlines())


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("name", LOGS)
def test_the_answer_is_that_without_it(name: str, margin: str, tmp_path: Path) -> None:
    plain, moved = pasted(tmp_path, LOGS[name]), pasted(tmp_path, behind(margin, LOGS[name]))
    assert plain.outcome is not LogOutcome.CLEAN
    assert [(each.symptom, each.says, each.who) for each in moved.charges] == [
        (each.symptom, each.says, each.who) for each in plain.charges
    ]


def test_lines_with_ends_of_windows_are_joined_where_a_terminal_broke_them(tmp_path: Path) -> None:
    broken = pasted(tmp_path, LOGS["broken"])
    assert pasted(tmp_path, LOGS["broken"].replace("\n", "\r\n")).charges == broken.charges


@pytest.mark.parametrize("name", LOGS)
def test_numbers_of_lines_and_blanks_that_do_not_break_mean_nothing(name: str, tmp_path: Path) -> None:
    plain = pasted(tmp_path, LOGS[name])
    numbered = "".join(f"{number:6d}\t{line}\n" for number, line in enumerate(LOGS[name].splitlines(), 1))
    for text in (numbered, LOGS[name].replace(" ", "\xa0")):
        assert [each.says for each in pasted(tmp_path, text).charges] == [each.says for each in plain.charges]


def test_what_belongs_to_the_lines_stays() -> None:
    assert margin_of(FRAMES.encode()) == b""
    assert margin_of(b"  exitcode  : -9 (pid: 5362)\n  error_file: <N/A>\n") == b""
    assert margin_of(b"  a\n b\n   c\n") == re.escape(b" ")
    assert margin_of(b"1\t0.9\n2\t0.8\n3\t0.7\n") == b""
    assert margin_of(b"a\n  b\n  c\n") == b""
    assert margin_of(b"\n>\n  \n") == b""


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_pieces_may_end_anywhere(size: int) -> None:
    text = behind("> ", "one\n\n  two\n\n> three\nfour").encode() * 50
    whole = b"".join(without_margin([text[:1000], text[1000:]]))
    assert b"> one" not in whole
    assert b"\n  two\n" in whole
    assert b"\n> three\n" in whole
    pieces = [text[:1000], *(text[at : at + size] for at in range(1000, len(text), size))]
    assert b"".join(without_margin(pieces)).replace(b"> > three", b"> three").count(b"four\n") == 50


def test_what_only_the_first_piece_has_is_taken_from_no_other() -> None:
    """Progress lines that begin with a blank, and then a traceback."""
    first, then = b" iteration 1\n" * 100, b'Traceback\n  File "a.py", line 1\n'
    assert b"".join(without_margin([first, then, first])).endswith(then + first)


def test_a_text_without_one_is_the_same() -> None:
    text = [b"one\n two\n", b"  three", b"\nfour\n"]
    assert b"".join(without_margin(text)) == b"".join(text)
