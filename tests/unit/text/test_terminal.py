"""When output has colours."""

import os
from collections.abc import Iterator
from typing import TextIO

import pytest

from doctor.text.terminal import can_redraw, coloured
from tests.support.cases import cases

VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[TextIO, TextIO]]:
    """A terminal and a pipe."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    master, slave = os.openpty()
    ear, mouth = os.pipe()
    with open(slave, "w") as terminal, open(mouth, "w") as pipe:
        yield terminal, pipe
    os.close(master)
    os.close(ear)


@cases
def test_colours(
    wish: str,
    env: dict[str, str],
    on_a_terminal: bool,
    in_a_pipe: bool,
    streams: tuple[TextIO, TextIO],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert [coloured(stream, wish) for stream in streams] == [on_a_terminal, in_a_pipe]
    assert coloured(None, wish) is in_a_pipe


def test_only_a_terminal_that_can_is_drawn_over(
    streams: tuple[TextIO, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, pipe = streams
    assert [can_redraw(stream) for stream in (terminal, pipe, None)] == [True, False, False]
    monkeypatch.setenv("TERM", "dumb")
    assert not can_redraw(terminal)
