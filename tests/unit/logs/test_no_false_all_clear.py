"""A line that says in words of its own that something failed: what nobody knows is no all-clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from tests.support.fault_logs import concluded

UNKNOWN = (
    "2020-10-22 02:48:58 10.128.0.33 [3]   (1) Resource exhausted: Attempting to allocate 180.59M.",
    "Original error: DEADLINE_EXCEEDED: Barrier timed out.",
    "[2022-05-27T11:37:57.377] _job_complete: JobId=127441 WTERMSIG 9",
    "third_party/gloo/gloo/transport/tcp/socket.cc:142] rv != -1. -1 vs -1. connect: Network is unreachable.",
    "[1,13]<stdout>:192.168.0.138: Test CUDA failure common.cu:732 'invalid device ordinal'",
)
HEALTHY = (
    "restart policy: on failure",
    "connect: Connection refused, retrying in 1 s",
    "No space left on device is what you see if the volume is too small",
    "[2022-05-27T11:37:57.377] _job_complete: JobId=127441 WEXITSTATUS 0",
    "INFO: UNAVAILABLE is answered while the server starts",
)


@pytest.mark.parametrize("line", UNKNOWN)
def test_it_is_shown_and_no_all_clear(line: str, tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(f"it begins\n{line}\n")
    assert concluded(tmp_path / "out.log").outcome is not LogOutcome.CLEAN


@pytest.mark.parametrize("line", HEALTHY)
def test_what_only_reads_like_it_is_not_a_complaint(line: str, tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(f"it begins\n{line}\nit ends\n")
    assert concluded(tmp_path / "out.log").outcome is LogOutcome.CLEAN
