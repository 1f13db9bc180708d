"""Foreign text in any output: it draws nothing on a terminal, and hides nothing."""

import ast
import io
import json
import random
import re
import tempfile
import time
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doctor import cli
from doctor.__main__ import main
from doctor.exam.progress import ProgressLine
from doctor.stage import Stage
from doctor.text.printable import escaped
from tests.support.cases import cases
from tests.support.paths import ROOT
from tests.support.tampered import tampered

KINDS = ("all-unreachable", "lab-host-faults", "lab-launch", "lab-smoke-kill", "lab-unreachable", "one-host")
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066\u200b\u2028\r\b\x00\x7f\x85\U000e0041"
OURS = re.compile(r"\x1b\[[0-9;]*m|\r\x1b\[J|\r$|\r(?=\r\x1b\[J)")
"""Colours, and the control characters of the progress line."""
evil_text = st.just(EVIL) | st.text(
    st.sampled_from(EVIL + "\n\t;$") | st.characters(categories=["Cc", "Cf", "Zl"]), min_size=1, max_size=20
)


class Screen(io.StringIO):
    """A terminal that records its input."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def drawn(text: str) -> list[str]:
    """Characters that may move the cursor, change colours or the direction of writing, or hide text."""
    rest = OURS.sub("", text)
    return [c for c in rest if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def said(call: Callable[[], object]) -> str:
    out, err = Screen(), Screen()
    with redirect_stdout(out), redirect_stderr(err):
        call()
    return out.getvalue() + err.getvalue()


def every_way_out(recording: bytes) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "run.json"
        file.write_bytes(recording)
        kinds = ("json", "junit", "markdown", "prometheus", "healthy-hosts", "faulty-hosts", "save")
        options = [f"--{kind}={folder / kind}" for kind in kinds]
        line = [
            "check",
            "--replay",
            str(file),
            "-v",
            *options,
            "--print",
            "launch",
            "--report-dir",
            str(folder),
        ]
        texts = {"terminal": said(lambda: cli.run(line))}
        file.unlink()
        return texts | {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(KINDS),
    evil=evil_text,
    dice=st.randoms(use_true_random=False),
    share=st.sampled_from([0.02, 0.2, 1]),
    free=st.booleans(),
)
def test_a_recording_draws_nothing_on_any_way_out(
    kind: str, evil: str, dice: random.Random, share: float, free: bool
) -> None:
    """Neither the report nor the sentence that refuses the recording does."""
    for way, text in every_way_out(tampered(kind, evil, dice, share, free)).items():
        assert drawn(text) == [], way


def test_hostile_recordings_are_also_judged() -> None:
    ways = every_way_out(tampered("lab-host-faults", EVIL, random.Random(1), 1, free=True))
    assert {"json", "save", "healthy-hosts", "faulty-hosts", "terminal"} <= ways.keys()
    assert json.loads(ways["json"])["findings"]
    assert "Next:" in ways["terminal"]


@pytest.mark.parametrize("line", ["#", "Port #", "Match #", "Host '#", "Include '#", "ProxyJump '#"])
def test_a_configuration_of_ssh(line: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(line.replace("#", EVIL))
    printed = said(lambda: cli.run(["check", "node1", "--ssh-config", str(file), "--deadline", "1"]))
    assert printed
    assert drawn(printed) == []


@cases
def test_what_was_typed(arguments: list[str]) -> None:
    printed = said(lambda: cli.run(arguments))
    assert printed
    assert drawn(printed) == []


@pytest.mark.parametrize("traceback", ["", "1"])
def test_an_error_of_our_own(traceback: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_: object) -> int:
        raise RuntimeError(EVIL)

    monkeypatch.setattr(cli, "run", breaks)
    monkeypatch.setenv("DOCTOR_TRACEBACK", traceback)

    def ended() -> None:
        with pytest.raises(SystemExit):
            main()

    printed = said(ended)
    assert "RuntimeError" in printed
    assert drawn(printed) == []


@given(evil=evil_text)
def test_the_progress(evil: str) -> None:
    def shown() -> None:
        line = ProgressLine(wanted=True)
        line(Stage(evil, evil, 1, 2, waiting=(f"node{evil}", "node2")))
        line.show(time.monotonic())
        line.clear()

    printed = said(shown)
    assert printed
    assert drawn(printed) == []
    assert "\n" not in printed


anything = st.recursive(
    st.text() | evil_text | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


@given(anything)
def test_json_reads_back_as_what_it_was(value: Any) -> None:
    written = escaped(json.dumps(value, ensure_ascii=False))
    assert json.loads(written) == value
    assert drawn(written) == []


ON_HOSTS = ("agents", "facts/look.py", "mesh/agent.py", "smoke/onhost", "smoke/inject.py")
"""Programs of ours that run on hosts: their output is read here."""
PRINTS = re.compile(r"\bprint\b|sys\.std(out|err)\.write|traceback\.print_\w+")


def test_nothing_is_printed_past_the_one_function() -> None:
    """`put` cleans its text; any code that does not use it calls `clean` itself."""
    past = []
    for file in sorted((ROOT / "doctor").rglob("*.py")):
        place = str(file.relative_to(ROOT / "doctor"))
        if place.startswith(ON_HOSTS) or place == "text/terminal.py":
            continue
        text = file.read_text()
        for call in ast.walk(ast.parse(text)) if PRINTS.search(text) else ():
            if isinstance(call, ast.Call) and PRINTS.fullmatch(ast.unparse(call.func)):
                past += [f"{place}:{call.lineno}"] if "clean" not in ast.unparse(call) else []
    assert past == []
