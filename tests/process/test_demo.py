"""`doctor demo` as a person sees it, and `make demo` with and without torch."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.commands import DOCTOR, doctor
from tests.support.paths import ROOT
from tests.support.screen import in_terminal

CURVE = set("▁▂▃▄▅▆▇█")


def test_a_pipe_gets_the_report_alone() -> None:
    ran = doctor("demo", "hang")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("A bundled recording: ")
    assert "smoke-hang" in ran.stdout


def test_a_terminal_sees_it_run() -> None:
    with in_terminal([*DOCTOR, "demo", "hang"]) as terminal:
        terminal.await_that(lambda t: "/4 answered" in t.text)
        terminal.await_that(lambda t: "loss" in t.text.splitlines()[-1])
        assert terminal.text.startswith("A bundled recording: ")
        assert terminal.await_end() == 0
    assert "/4 answered" not in terminal.text
    assert "smoke-hang" in terminal.text


def test_a_terminal_sees_the_transcript_as_it_was() -> None:
    with in_terminal([*DOCTOR, "demo", "run"]) as terminal:
        terminal.await_that(lambda t: "0/1 answered" in t.text)
        terminal.await_that(lambda t: "ranks on node1" in t.text)
        assert "doctor: go" not in terminal.text, "it is played, not shown at once"


def test_json_takes_stdout_alone() -> None:
    ran = doctor("demo", "npus", "--json", "-")
    assert ran.returncode == 0
    assert ran.stdout.startswith("{")
    assert ran.stderr.startswith("A bundled recording of emulated devices")


def environment_with(folder: Path, python: str) -> Path:
    """A virtual environment as `make demo` makes it, for the interpreter that runs the tests."""
    programs = folder / "venv" / "bin"
    programs.mkdir(parents=True)
    for name, text in (("python", python), ("doctor", f'exec {sys.executable} -m doctor "$@"')):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    return programs.parent


def demonstrated(venv: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    ran = subprocess.run(
        [ROOT / "scripts" / "demo", str(venv)], capture_output=True, text=True, timeout=120, env=env
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "$ doctor demo\nA bundled recording of emulated devices" in ran.stdout
    return ran.stdout


@pytest.mark.skipif(find_spec("torch") is None, reason="trains, which takes torch")
def test_the_demo_trains_and_then_shows_sick_hosts(tmp_path: Path) -> None:
    text = demonstrated(environment_with(tmp_path, f'exec {sys.executable} "$@"'))
    mine, _, _ = text.partition("$ doctor demo")
    assert "$ doctor preflight --local --ranks-per-host 2" in mine
    assert "Smoke  2 ranks (one host)" in mine
    assert CURVE & set(mine)


def test_the_demo_without_torch_says_what_it_left_out(tmp_path: Path) -> None:
    """There is no torch, and pip finds none."""
    no_torch = f'case "$*" in *torch*) exit 1 ;; esac; exec {sys.executable} "$@"'
    text = demonstrated(environment_with(tmp_path, no_torch))
    assert "$ doctor check --local" in text
    assert "Left out: the training" in text
    assert "preflight --local" not in text
