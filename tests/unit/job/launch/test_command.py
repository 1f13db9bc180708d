"""Command lines of launchers, in every spelling that people use."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.job.launch.command import read_command
from tests.support.cases import cases, from_cases


@cases
def test_a_command_line(line: str, name: str | None, options: dict[str, str], program: str) -> None:
    command = read_command(tuple(shlex.split(line)))
    assert command is not None
    assert (command.launcher and command.launcher.name) == name
    assert {name: command.option(name) for name in options} == options
    assert command.program == program


def test_an_option_that_is_nearly_right_is_shown() -> None:
    command = read_command(("torchrun", "--rdvz_backend=c10d", "--tea=3", "t.py"))
    assert command is not None
    assert command.shown == ("torchrun", "--rdvz_backend=c10d", "t.py")


@pytest.mark.parametrize("line", ["vim torchrun", "cp train.py /x", "accelerate config", "man msrun", ""])
def test_commands_that_start_no_ranks(line: str) -> None:
    assert read_command(tuple(line.split())) is None


@cases
def test_variables_on_the_command_line(line: str, sets: dict[str, str]) -> None:
    command = read_command(tuple(line.split()))
    assert command is not None
    assert command.sets == sets


def test_an_unknown_word_is_not_an_option() -> None:
    command = read_command(("torchrun", "--nnodes=$NNODES", "$ARGS", "train.py"))
    assert command is not None
    assert command.option("nnodes") is None
    assert command.partly
    assert not read_command(("torchrun", "--nnodes=2", "train.py", "$MORE")).partly  # type: ignore[union-attr]
    assert not read_command(("srun", "$HOME/bin/torchrun", "train.py")).partly  # type: ignore[union-attr]
    assert read_command(("srun", "$OPTIONS", "torchrun", "train.py")).partly  # type: ignore[union-attr]


WORDS = from_cases(__file__, "WORDS", tuple[str, ...])


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=8))
def test_any_words(words: list[str]) -> None:
    command = read_command(tuple(words))
    assert command is None or isinstance(command.program, str)
