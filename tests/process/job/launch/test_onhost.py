"""The awk programs that read the processes of jobs, run by the awks of this machine."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.job.launch.command import kept_words
from doctor.job.launch.launchers import COMMANDS, MODULES
from doctor.job.launch.onhost import awk_words
from tests.support.launches import LINES

AWKS = [
    words
    for words in (("mawk",), ("gawk",), ("original-awk",), ("busybox", "awk"))
    if shutil.which(words[0]) is not None
] or [("awk",)]
each_awk = pytest.mark.parametrize("awk", AWKS, ids=" ".join)


def on_the_host(words: tuple[str, ...], awk: tuple[str, ...], *variables: str) -> tuple[str, ...]:
    """The processes as the script's awk prints them, after the filter for variables."""
    rows = "".join(f"7/cmdline:{word}\n" for word in words)
    rows += "".join(f"7/environ:{variable}\n" for variable in variables)
    ran = subprocess.run(
        (*awk, *awk_words()),
        input=f"7/stat:7 (x) S 1 7 7\n{rows}",
        capture_output=True,
        text=True,
        check=True,
    )
    said = [row for row in ran.stdout.split("\n") if row.startswith("a\t")]
    passed = [row[2:] for row in ran.stdout.split("\n") if row.startswith("e ")]
    return (*passed, *(said[0][2:].split("\t") if said else ()))


@each_awk
@pytest.mark.parametrize("line", LINES)
def test_a_host_prints_what_is_kept_and_no_secret(line: str, awk: tuple[str, ...]) -> None:
    words = tuple(shlex.split(line))
    kept = kept_words(words)
    assert "k3y" not in " ".join(kept) or kept == ("torchrun", "k3y")
    assert on_the_host(words, awk) == kept
    assert kept_words(kept) == kept


WORDS = st.sampled_from(
    (
        *(*COMMANDS, *MODULES, "python3", "-m", "-c", "-u", "-x", "--", "-", "env", "launch", "t.py", "2"),
        *("--nnodes", "--nnodes=2", "--log_dir", "-n2", "-np", "--new", "--new=1", "--export", "-mca", "run"),
    )
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from((*COMMANDS, "python3")), st.lists(WORDS, max_size=8))
def test_any_command_line(first: str, more: list[str]) -> None:
    words = (first, *more)
    assert kept_words(on_the_host(words, AWKS[0])) == kept_words(words)


@each_awk
def test_variables_that_a_host_lets_pass(awk: tuple[str, ...]) -> None:
    """Whatever grep matched as the start of a variable."""
    variables = ("RANK=1", "MY_RANK=2", "NCCL_TOKEN=3", "x", "MS_ROLE=a=b", "MS_ROLE_ARN=4")
    assert on_the_host(("python", "t.py"), awk, *variables) == ("RANK=1", "MS_ROLE=a=b", "python", "t.py")
