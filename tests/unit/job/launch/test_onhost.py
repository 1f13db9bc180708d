"""A host's output about the processes of jobs: no more than is needed, and nothing that may be a secret."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from doctor.job.launch.command import kept_words, read_command
from doctor.job.launch.launcher import NOT_SHOWN
from doctor.job.launch.onhost import awk_words
from doctor.job.launch.variables import is_kept, must_agree
from tests.support.cases import cases
from tests.support.launches import LINES


@pytest.mark.parametrize("line", LINES)
def test_kept_words_describe_the_same_ranks(line: str) -> None:
    whole, kept = (read_command(words) for words in (tuple(shlex.split(line)), kept_words(shlex.split(line))))
    if whole is None or "'" in line:
        return
    assert kept is not None
    assert (kept.launcher, kept.program) == (whole.launcher, whole.program)
    assert kept.options == {name: value for name, value in whole.options.items() if name not in NOT_SHOWN}


@pytest.mark.parametrize(
    "name",
    [
        *("MS_ROLE", "MS_SCHED_HOST", "MS_NODE_ID", "MS_RETRY_INTERVAL_LOWER", "MS_ENABLE_LCCL", "RANK"),
        *("HCCL_BUFFSIZE", "NCCL_ALGO", "GLOO_SOCKET_IFNAME", "TORCH_NCCL_BLOCKING_WAIT"),
    ],
)
def test_variables_that_are_read(name: str) -> None:
    assert is_kept(name)


@cases
def test_variables_that_are_not_read(name: str) -> None:
    assert not is_kept(name)


@cases
def test_where_a_library_lies_may_differ(name: str, same: bool) -> None:
    assert is_kept(name)
    assert must_agree(name) is same


def test_the_script_contains_no_quote() -> None:
    """It is put between single quotes."""
    assert all("'" not in word for word in awk_words())
    assert Path("/proc").is_dir()
