"""The line of progress of real runs: on a terminal, beside a pager, when it is interrupted, and in a pipe."""

import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cases import from_cases
from tests.support.commands import DOCTOR, environment
from tests.support.screen import in_terminal

SMOKE = [*DOCTOR, "smoke", "--local", "--ranks-per-host", "2", "--python", sys.executable]
SHORT = ["--steps", "20"]


ERASED = re.compile(r"\r\x1b\[J(\x1b\[[0-9;]*m)*this machine only")
"""The report begins on an empty line."""


def slow_python(folder: Path) -> str:
    """An interpreter for the ranks that does not start until the file `go` exists."""
    python = folder / "python"
    wait = f"until [ -e {shlex.quote(str(folder / 'go'))} ]; do sleep 0.05; done"
    python.write_text(f'#!/bin/sh\n{wait}\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return str(python)


@pytest.mark.parametrize("columns", [pytest.param(40, marks=pytest.mark.long), 120])
def test_a_training_on_a_terminal(columns: int) -> None:
    with in_terminal([*SMOKE, *SHORT], columns=columns) as terminal:
        terminal.await_that(lambda t: "train " in t.text)
        assert len(terminal.text.splitlines()) == 1
        code = terminal.await_end()
    assert code in (0, 1, 3)
    assert terminal.widest <= columns
    assert "smoke  train" not in terminal.text
    assert terminal.text.startswith("this machine only")
    assert ERASED.search(terminal.seen)
    if columns > 100:
        assert "/20  loss " in terminal.seen
        assert "2 ranks on " in terminal.seen


def test_a_window_that_gets_narrower(tmp_path: Path) -> None:
    python = slow_python(tmp_path)
    with in_terminal([*SMOKE, *SHORT, "--python", python], columns=120) as terminal:
        terminal.await_that(lambda t: "0/1 answered" in t.text)
        terminal.resize(40)
        terminal.widest = 0
        drawn = len(terminal.seen)
        terminal.await_that(lambda t: "\x1b[J" in t.seen[drawn:])
        assert terminal.widest <= 40
        assert len(terminal.text.splitlines()) == 1
        (tmp_path / "go").touch()
        terminal.await_end()
    assert "0/1" not in terminal.text


def test_an_interruption_leaves_nothing_of_it(tmp_path: Path) -> None:
    python = slow_python(tmp_path)
    with in_terminal([*SMOKE, "--python", python]) as terminal:
        terminal.await_that(lambda t: "0/1 answered" in t.text)
        terminal.type(b"\x03")
        assert terminal.await_end() == 130
    assert "0/1" not in terminal.text
    assert ERASED.search(terminal.seen)


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_escapes(variable: dict[str, str], tmp_path: Path) -> None:
    python = slow_python(tmp_path)
    with in_terminal([*SMOKE, *SHORT, "--python", python, "-v"], env=variable) as terminal:
        terminal.await_that(lambda t: "0/1 answered" in t.text)
        (tmp_path / "go").touch()
        terminal.await_end()
    assert "\x1b[J" not in terminal.seen
    assert ("\r" in terminal.seen.replace("\r\n", "")) is ("NO_COLOR" in variable)


PAGER = from_cases(__file__, "PAGER", str)


def test_it_is_not_drawn_while_a_pager_has_the_terminal(tmp_path: Path) -> None:
    """There, keys are read one by one, as by less; the run starts only once the pager has the terminal."""
    python = slow_python(tmp_path)
    pager = tmp_path / "pager.py"
    pager.write_text(PAGER)
    line = f"{shlex.join([*SMOKE, *SHORT, '--python', python])} | {shlex.join([sys.executable, str(pager)])}"
    with in_terminal(["sh", "-c", line]) as terminal:
        terminal.await_that(lambda t: "PAGER" in t.text)
        (tmp_path / "go").touch()
        terminal.await_that(lambda t: "END" in t.seen)
        _, _, beside = terminal.seen.partition("PAGER")
        between, _, _ = beside.partition("END")
        assert between.strip() == ""
        terminal.await_end()
    assert "2 ranks" in terminal.text


def test_it_is_drawn_beside_a_pipe_that_is_no_pager(tmp_path: Path) -> None:
    python = slow_python(tmp_path)
    line = f"{shlex.join([*SMOKE, *SHORT, '--python', python])} | cat"
    with in_terminal(["sh", "-c", line]) as terminal:
        terminal.await_that(lambda t: "0/1 answered" in t.text)
        (tmp_path / "go").touch()
        terminal.await_end()
    assert "0/1" not in terminal.text


def test_a_log_of_a_short_run_has_no_line_and_loads_no_rich_for_it() -> None:
    code = "\n".join(
        [
            "import sys",
            "from doctor.exam.progress import ProgressLine",
            "from doctor.stage import Stage",
            "import time",
            "line = ProgressLine(True)",
            "line(Stage('hosts', '0/1', 0, 1))",
            "line.show(time.monotonic() + 11)",
            "line.clear()",
            "print(any(name.split('.')[0] == 'rich' for name in sys.modules))",
        ]
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True
    )
    assert ran.stdout == "False\n"
    assert ran.stderr.startswith("doctor: hosts  0/1")
