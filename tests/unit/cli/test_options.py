"""Options are defined once: the commands that have them, their conflicts, and their formats."""

import json
import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from doctor.cli import app, run
from doctor.cli.help import below
from doctor.exam.request import Request
from doctor.hang.options import HangWishes
from doctor.judge.playbook import MeshMode
from doctor.logs.options import ExplainWishes, FetchWishes
from doctor.model import Backend
from doctor.recording import save
from doctor.report.out.formats import FORMATS, STDOUT, Format
from doctor.text.option import IN_JOB, KEY, NO_SMOKE, REPLAY, Option, options
from tests.support.cases import cases, from_cases
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM

ALL = {known.name: known for known, _ in options(Request)}
VALUES = from_cases(__file__, "VALUES", dict[str, str])
"""Values for options that do not accept any name, number or path."""
PLUG_IN = from_cases(__file__, "PLUG_IN", str)
PAIRS = [(first, other) for first in (IN_JOB, REPLAY) for other in ALL if other != first]
OF_PODS = {"--namespace", "--container", "--context"}
"""Without --pods they are refused beside anything."""
REFUSED = [
    (first, other)
    for first in (IN_JOB, REPLAY, NO_SMOKE)
    for other in ALL
    if first in ALL[other].not_with and other not in OF_PODS
]
ALLOWED = [(first, other) for first, other in PAIRS if first not in ALL[other].not_with]


BASELINE = (
    "{doctor: baseline, schema: 1, made: 2026-11-12T05:40:00Z, tool: '1', runs: [], "
    "kinds: {cpu: {hosts: 1}}, hosts: {node1: {kind: cpu}}, backend: '', load: 0.1}"
)


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
    (tmp_path / "waivers.out").write_text("waivers: []\n")
    (tmp_path / "baseline.out").write_text(BASELINE)

    def call(*names: str) -> tuple[int, str, str]:
        code = run(["preflight", *(word for name in names for word in typed(ALL[name], tmp_path))])
        return code, *capsys.readouterr()

    return call


def test_every_option_is_one_of_preflight() -> None:
    preflight = typer.main.get_command(app).commands["preflight"]  # type: ignore[attr-defined]
    shown = [param.opts[-1] if param.opts[-1].startswith("-") else "HOSTS" for param in preflight.params]
    panels = {name: param.rich_help_panel for name, param in zip(shown, preflight.params, strict=True)}
    order = list(dict.fromkeys(panels[name] for name in ALL))
    assert shown[: len(ALL)] == sorted(ALL, key=lambda name: order.index(panels[name])), "as they are defined"
    assert len({known.parameter for known in ALL.values()}) == len(ALL)


def every_command() -> list[Any]:
    root = typer.Context(typer.main.get_command(app), info_name="doctor")
    return [context.command for context in below(root)]


def test_groups_of_options_stand_alike_in_the_help_of_every_command() -> None:
    order = ["The logs", "Hosts", "The job", "Reaching the hosts", "What to examine", "Training", "Output"]
    for command in every_command():
        panels = [param.rich_help_panel for param in command.params if param.rich_help_panel]
        assert panels == sorted(panels, key=order.index), command.name


ALIASES = [
    (command, known, alias)
    for command, group in (("explain", ExplainWishes), ("logs", FetchWishes), ("hang", HangWishes))
    for known, _ in options(group)
    for alias in known.aliases
]


def test_the_older_names() -> None:
    assert [(command, known.name, alias) for command, known, alias in ALIASES] == [
        ("explain", "--check", "--run"),
        ("logs", "--max-mb", "--limit"),
    ]


def test_an_older_name_means_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[FetchWishes] = []

    def fetch_and_explain(_: Request, wishes: FetchWishes) -> int:
        seen.append(wishes)
        return 0

    monkeypatch.setattr("doctor.logs.fetch.run.fetch_and_explain", fetch_and_explain)
    for name in ("--max-mb", "--limit"):
        assert run(["logs", "--local", name, "2.5"]) == 0
    assert [wishes.max_mb for wishes in seen] == [2.5, 2.5]


@pytest.mark.parametrize(("command", "known", "alias"), ALIASES)
def test_an_older_name_is_understood_and_not_shown(
    command: str, known: Option, alias: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused value shows that the option was read, and an unknown name shows which option is suggested."""
    bad = {"--check": ["EI0006", "node1"], "--max-mb": ["2000"]}[known.name]
    said = {}
    for name in (known.name, alias):
        assert run([command, *bad[:-1], f"{name}={bad[-1]}"]) == 2
        said[name] = capsys.readouterr().err.replace(alias, known.name)
    assert said[known.name] == said[alias]
    assert run([command, "--help"]) == 0
    assert not re.search(rf"{alias}\b", capsys.readouterr().out)
    assert run(["check", alias, "1"]) == 2
    assert f"doctor {command}" not in capsys.readouterr().err


def test_options_name_what_can_be_refused() -> None:
    for known in ALL.values():
        assert set(known.not_with) <= {IN_JOB, REPLAY, NO_SMOKE} - {known.name}
    assert all(all(ALL[name].alone) for name in (IN_JOB, REPLAY, NO_SMOKE))


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


PATHS = [known for known in ALL.values() if known.takes_path]


def test_options_that_take_a_file_or_a_folder() -> None:
    """The options that say so in --help, whatever the type of their value."""
    assert {"--identity", "--exam", "--python", "--report-dir", "--json"} <= {known.name for known in PATHS}
    groups: list[Any] = [Request]
    groups += [each.default_factory for each in fields(Request) if each.default_factory is not MISSING]
    typed_as_paths = [each for group in groups for each in fields(group) if "Path" in str(each.type)]
    assert len(typed_as_paths) > 8
    assert all(each.metadata[KEY].takes_path for each in typed_as_paths)
    assert not {"--print", "--enter", "HOSTS"} & {known.name for known in PATHS}


@pytest.mark.parametrize("known", PATHS, ids=lambda known: known.name)
@pytest.mark.parametrize("behind", ["-q", "--no-smoke", "--", "-x/y"])
def test_a_file_option_does_not_take_the_option_behind_it(
    known: Option,
    behind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in known.names:
        glued = f"{name}={behind}" if name.startswith("--") else f"{name}{behind}"
        for words in ([name, behind], [glued]):
            assert run(["preflight", "node1", *words]) == 2
            out, err = capsys.readouterr()
            assert (out, list(tmp_path.iterdir())) == ("", [])
            assert known.name in err
            assert f"{behind} is an option, not a file; a file of that name is ./{behind}" in " ".join(
                err.split()
            )


@cases
def test_nor_do_those_of_other_commands(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    assert words[-2] in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_name_begins_like_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(recording(NAMES), tmp_path / "-r")
    assert run(["check", "--replay", "./-r", "--json", "./-q", "-q"]) == 0
    assert json.loads((tmp_path / "-q").read_text())["verdict"] == "healthy"


def test_a_list_of_an_earlier_run_does_not_outlive_a_missing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("old", "-q"):
        (tmp_path / name).write_text("node1\n")
    assert run(["preflight", "node1", "--healthy-hosts", "old", "--json", "-q"]) == 2
    assert (tmp_path / "old").read_text() == ""
    assert run(["preflight", "node1", "--healthy-hosts", "-q"]) == 2
    assert (tmp_path / "-q").read_text() == "node1\n", "nobody named it"


@pytest.mark.parametrize("seconds", ["inf", "-inf", "nan", "1e308", "86401", "0", "-1"])
@pytest.mark.parametrize("option", ["--timeout", "--connect-timeout", "--deadline", "--smoke-timeout"])
def test_a_limit_in_seconds_is_a_number_of_seconds(
    option: str, seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["smoke", "--local", f"{option}={seconds}"]) == 2
    assert option in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--only", "--skip"])
def test_a_part_of_names_is_taken_for_all_of_them_and_the_report_says_so(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(recording(NAMES, heard={"node2": heard(2, NAMES, spaces=SMALL_SHM)}), tmp_path / "x.json")
    assert run(["check", "--replay", str(tmp_path / "x.json"), option, "shm"]) == (option == "--only")
    assert f"{option} shm stands for shm-small, shm-full" in " ".join(capsys.readouterr().out.split())


def test_a_word_that_is_one_of_few_is_one_that_is_known() -> None:
    assert ALL["--backend"].values == ("auto", *(backend.value for backend in Backend))
    assert ALL["--mesh"].values == get_args(MeshMode)
    assert {name for name, known in ALL.items() if known.values} >= {"--transport", "--on-busy", "--color"}
