"""--help, `doctor help` and the manual page: from one source, at 80 columns, as plain text."""

import re
import shlex

import pytest
import typer

from doctor import __version__
from doctor.cli import app, run
from doctor.cli.help import USUAL, below
from tests.support.cases import cases, from_cases

ROOT = typer.Context(typer.main.get_command(app), info_name="doctor")
COMMANDS = [context.command_path.split()[1:] for context in below(ROOT)]
GROUPS = from_cases(__file__, "GROUPS", dict[str, list[str]])


@pytest.fixture(autouse=True)
def _columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def shown(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("words", [[], *COMMANDS], ids=" ".join)
def test_help_fits_80_columns_and_is_the_same_in_both_ways(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = shown([*words, "--help"], capsys)
    assert said.startswith(f"Usage: {' '.join(['doctor', *words])} ")
    assert max(map(len, said.splitlines())) <= 80
    assert "\x1b" not in said
    assert "..." not in said.partition("\nCommands:\n")[2].partition("\n\n")[0], "no sentence is cut"
    assert shown(["help", *words], capsys) == said
    brief = shown([*words, "-h"], capsys)
    if " ".join(words) in USUAL:
        assert brief.endswith(f"All options: doctor {' '.join(words)} --help\n")
        assert len(brief.splitlines()) <= 30 < len(said.splitlines())
        assert all(option in brief for option in USUAL[words[0]].split()), "each exists"
    else:
        assert brief == said


@pytest.mark.parametrize("command", GROUPS)
def test_options_stand_in_groups(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    headings = re.findall(r"^(\w[\w ]+):$", shown([command, "--help"], capsys), re.MULTILINE)
    assert [heading for heading in headings if heading != "Examples"] == GROUPS[command]


@cases
def test_help_ends_with_three_examples_that_can_be_typed(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, examples = shown([*words, "--help"], capsys).partition("\nExamples:\n")
    lines = examples.splitlines()
    assert len(lines) == 3
    for line in lines:
        typed = re.split(r" {2,}", line.strip())[0]
        inside = re.search(r"doctor [^)|>]*", typed)
        assert inside
        command, *options = shlex.split(inside[0])[1:]
        context = next(each for each in below(ROOT) if each.command_path == f"doctor {command}")
        known = {name for param in context.command.params for name in param.opts}
        assert {option for option in options if option.startswith("-")} <= known


def test_help_on_what_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "ranktable", "mak"]) == 2
    assert "no command 'ranktable mak'.\n        Did you mean 'ranktable make'?" in capsys.readouterr().err


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(["-V"], capsys) == shown(["--version"], capsys) == f"cluster-doctor {__version__}\n"


def test_the_manual_page_has_every_command_option_and_example(capsys: pytest.CaptureFixture[str]) -> None:
    page = shown(["help", "--man"], capsys)
    plain = re.sub(r"\\f[BIR]|\\&", "", page)
    for escape, sign in ((r"\-", "-"), (r"\(aq", "'"), (r"\(dq", '"'), (r"\(ti", "~"), (r"\e", "\\")):
        plain = plain.replace(escape, sign)
    for context in below(ROOT):
        assert f'.SH "{context.command_path.upper()}"' in plain
        for param in filter(lambda each: not getattr(each, "hidden", False), context.command.params):
            for name in param.opts if param.param_type_name == "option" else []:
                assert re.search(rf"^(.*, )?{name}\b", plain, re.MULTILINE), name
        for line in (context.command.epilog or "").splitlines():
            assert re.split(r" {2,}", line)[0] in plain
    assert not [line for line in page.splitlines() if line.startswith("'")]
