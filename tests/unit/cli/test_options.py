"""Options are defined once: the commands that have them, what they cannot be combined with, and formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from doctor.cli import app, run
from doctor.recording import save
from doctor.report.formats import FORMATS, STDOUT, Format
from doctor.run.request import Request
from doctor.text.option import IN_JOB, REPLAY, Option, options
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM

ALL = {known.name: known for known, _ in options(Request)}
VALUES = {
    "--port": "22",
    "--backend": "gloo",
    "--transport": "ssh",
    "--exam": "host",
    "--only": "shm-*",
    "--skip": "nofile-*",
    "--expect": "nofile=1",
    "--mesh": "ring",
    "--on-busy": "run",
    "--python": "/usr/bin/python3",
    "--inject": "stuck@1:2",
    "--print": "launch",
}
"""Of options that do not take any name, number or path."""
PLUG_IN = """\
from doctor.api import PLAN, check

@check("plug-in", PLAN)
def plug_in(plan):
    yield from ()
"""
PAIRS = [(first, other) for first in (IN_JOB, REPLAY) for other in ALL if other != first]
REFUSED = [(first, other) for first, other in PAIRS if first in ALL[other].not_with]
ALLOWED = [(first, other) for first, other in PAIRS if first not in ALL[other].not_with]


def typed(known: Option, folder: Path) -> list[str]:
    """The option with a valid value that differs from its default."""
    if known.metavar in ("FILE", "DIR"):
        return [known.name, str(folder if known.metavar == "DIR" else folder / f"{known.parameter}.out")]
    value = VALUES.get(known.name, "2")
    return [value] if not known.names else [known.name, value] if known.metavar else [known.name]


@pytest.fixture
def preflight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run preflight; with --in-job as the scheduler of a job, which examines nothing."""
    monkeypatch.setenv("MS_ROLE", "MS_SCHED")
    save(recording(NAMES), tmp_path / "replay.out")
    (tmp_path / "more.py").write_text(PLUG_IN)

    def call(*names: str) -> tuple[int, str, str]:
        code = run(["preflight", *(word for name in names for word in typed(ALL[name], tmp_path))])
        return code, *capsys.readouterr()

    return call


def test_every_option_is_one_of_preflight() -> None:
    preflight = typer.main.get_command(app).commands["preflight"]  # type: ignore[attr-defined]
    shown = [param.opts[-1] if param.opts[-1].startswith("-") else "HOSTS" for param in preflight.params]
    assert shown[: len(ALL)] == list(ALL), "in the order of their definition"
    assert len({known.parameter for known in ALL.values()}) == len(ALL)


def test_options_name_what_can_be_refused() -> None:
    for known in ALL.values():
        assert set(known.not_with) <= {IN_JOB, REPLAY} - {known.name}
    assert all(all(ALL[name].alone) for name in (IN_JOB, REPLAY))


@pytest.mark.parametrize(("first", "other"), REFUSED)
def test_what_cannot_be_combined_is_refused(
    first: str, other: str, preflight: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, err = preflight(first, other)
    assert (code, out) == (2, "")
    assert " cannot be combined with " in err
    assert {first, other} <= {word.strip(":,.") for word in err.split()}


@pytest.mark.parametrize(("first", "other"), ALLOWED)
def test_everything_else_can_be_combined(
    first: str, other: str, preflight: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, err = preflight(first, other)
    assert code == 0, err


def test_all_options_that_cannot_be_combined_are_named_at_once(
    preflight: Callable[..., tuple[int, str, str]],
) -> None:
    _, _, err = preflight("HOSTS", "--user", IN_JOB, REPLAY)
    assert "--in-job cannot be combined with HOSTS, --user, --replay: it examines the hosts of the job" in err


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.option)
def test_each_format_is_written_to_its_file_and_to_stdout_where_allowed(
    form: Format, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(recording(NAMES, heard={"node2": heard(2, NAMES, spaces=SMALL_SHM)}), tmp_path / "x.json")
    replay = ["check", "--replay", str(tmp_path / "x.json"), form.option]
    assert run([*replay, str(tmp_path / "report")]) == 1
    text = capsys.readouterr().out
    written = (tmp_path / "report").read_text()
    assert "node" in written
    code = run([*replay, str(STDOUT)])
    out, err = capsys.readouterr()
    assert (code, out) == ((1, written) if form.stdout else (2, ""))
    assert err == (text if form.stdout else err)
    assert form.stdout or f"Name a file for {form.option}." in err


def test_a_path_that_is_empty_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--local", "--json", ""]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["inf", "-inf", "nan", "1e308", "86401", "0", "-1"])
@pytest.mark.parametrize("option", ["--timeout", "--connect-timeout", "--deadline", "--smoke-timeout"])
def test_a_limit_in_seconds_is_a_number_of_seconds(
    option: str, seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["smoke", "--local", f"{option}={seconds}"]) == 2
    assert option in capsys.readouterr().err
