"""Lines are broken by cells, between Chinese characters and between Latin words."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from doctor.text.wrap import unwrap, wrap
from tests.support.cases import cases


@cases
def test_lines(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


@given(st.text("内存，。（）“” abAB-_/`", max_size=60), st.integers(4, 30))
def test_nothing_is_lost_and_only_what_cannot_break_is_too_long(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cell_len(line) <= width or len(wrap(line, 1)) == 1 for line in lines)


@cases
def test_a_line_end_in_chinese_is_not_a_space(lines: str, one: str) -> None:
    assert unwrap(lines) == one
