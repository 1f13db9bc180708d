"""Lines are broken by cells, between Chinese characters and between Latin words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from doctor.text.wrap import unwrap, wrap


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("内存正在被换出", 8, ["内存正在", "被换出"]),
        ("内存正在被换出", 9, ["内存正在", "被换出"]),
        ("设置 HCCL_IF_IP 变量", 12, ["设置", "HCCL_IF_IP", "变量"]),
        ("只到 hostfile", 10, ["只到", "hostfile"]),
        ("变小了，然后", 6, ["变小", "了，然", "后"]),  # no comma begins a line
        ("变小（然后）", 6, ["变小", "（然", "后）"]),  # no bracket ends one
        ("说“不。”然后", 6, ["说", "“不。”", "然后"]),
        ("plain words stay as they are", 11, ["plain words", "stay as", "they are"]),
        ("/a/very/long/path 在这里", 8, ["/a/very/long/path", "在这里"]),
        ("", 10, [""]),
    ],
)
def test_lines(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


@given(st.text("内存，。（）“” abAB-_/`", max_size=60), st.integers(4, 30))
def test_nothing_is_lost_and_only_what_cannot_break_is_too_long(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cell_len(line) <= width or len(wrap(line, 1)) == 1 for line in lines)


@pytest.mark.parametrize(
    ("lines", "one"),
    [
        ("内存正在\n被换出", "内存正在被换出"),
        ("设置\nHCCL_IF_IP\n变量", "设置 HCCL_IF_IP 变量"),
        ("完成；\nnvidia-smi\n（1024 MB）", "完成；nvidia-smi（1024 MB）"),
        ("two\nlines", "two lines"),
    ],
)
def test_a_line_end_in_chinese_is_not_a_space(lines: str, one: str) -> None:
    assert unwrap(lines) == one
