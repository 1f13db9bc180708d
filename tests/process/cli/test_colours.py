"""Colours: whether there are any, on a terminal and in a pipe."""

import re
from pathlib import Path

import pytest

from doctor.recording import save
from tests.lab.warm import WARM
from tests.support.cases import from_cases
from tests.support.commands import doctor, environment, on_terminal
from tests.support.recordings import heard, recording
from tests.support.reports import NAMES, SMALL_SHM

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]m")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
NAMES_OF = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "COLUMNS")
RULES = from_cases(__file__, "RULES", list[tuple[list[str], dict[str, str], bool, bool]])


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[str], str]]:
    """Commands that draw, each with a word of its output."""
    file = tmp_path_factory.mktemp("run") / "x.json"
    save(recording(NAMES, heard={"node2": heard(2, NAMES, spaces=SMALL_SHM)}), file)
    return [
        (["check", "--replay", str(file)], "shm-small"),
        (["explain", "shm-small"], "/dev/shm"),
        (["list"], "shm-small"),
    ]


@pytest.mark.parametrize(("options", "env", "on_a_terminal", "in_a_pipe"), RULES)
def test_colours(
    options: list[str],
    env: dict[str, str],
    on_a_terminal: bool,
    in_a_pipe: bool,
    commands: list[tuple[list[str], str]],
) -> None:
    known = {name: value for name, value in environment().items() if name not in NAMES_OF}
    known |= {"TERM": "xterm-256color", **env}
    for command, word in commands if not options else commands[:1]:
        piped = WARM.run([*command, *options], env=known, cwd=Path.cwd())
        shown_there = on_terminal([*command, *options], known)
        for shown, coloured in ((shown_there, on_a_terminal), (piped.stdout, in_a_pipe)):
            assert word in shown
            assert bool(COLOUR.search(shown)) is coloured
            assert coloured or not CONTROL.search(shown), "not one escape, and no other control character"
        assert piped.stderr == ""


def test_a_file_of_the_report_has_none(commands: list[tuple[list[str], str]], tmp_path: Path) -> None:
    (replay, word), *_ = commands
    doctor(*replay, "--report-dir", str(tmp_path), "--color", "always")
    (written,) = (file.read_text() for file in tmp_path.glob("*.txt"))
    assert word in written
    assert "\x1b" not in written
