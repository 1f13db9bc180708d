"""The script of the task of each node, as text."""

from __future__ import annotations

import pytest

from doctor.transport.slurm.task import Ear, opening, openings

TOKEN = "0123456789abcdef"


def test_equal_lines_are_sent_once() -> None:
    body = b"".join(b"line %d\n" % n for n in range(100))
    texts = {f"node{n}": opening("cat", b"my name\nis %d\n" % n + body) for n in range(50)}
    sent = openings(texts)
    assert sent.count(b"line 42") == 1
    assert len(sent) < 50 * 40 + 2 * len(body)


@pytest.mark.parametrize(
    "line",
    [
        b"a prolog speaks",
        b"0123456789abcdef",
        b"0123456789abcdef node1",
        b"0123456789abcdef stranger data",
        b"fedcba9876543210 node1 data",
        b"\xff\xfe",
    ],
)
def test_lines_that_are_not_from_a_task(line: bytes) -> None:
    (said,) = Ear(TOKEN, ["node1"]).hear(line + b"\n")
    assert (said.host, said.kind, said.data) == (None, "other", line)


def test_a_prolog_that_leaves_its_line_open() -> None:
    (said,) = Ear(TOKEN, ["node1"]).hear(b"loading modules... 0123456789abcdef node1 hello\n")
    assert (said.host, said.data) == ("node1", b"hello\n")


def test_endless_lines_are_bounded() -> None:
    ear = Ear(TOKEN, ["node1"])
    for _ in range(100):
        assert ear.hear(b"x" * 10_000) == []
    (said,) = ear.rest()
    assert len(said.data) <= 8192
