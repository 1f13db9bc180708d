"""Another user of the host attacks a job that calls `doctor … --in-job`: nothing is run for that user."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from doctor.api import Ask
from doctor.exam.in_job.messages import RunVerdict, StartProgram, Welcome
from doctor.exam.in_job.rank_env import read_job_rank
from doctor.transport.question import ProbeQuestion
from tests.support.injob import RANK, TORCHRUN, Ranks, await_true, free_port, make_ranks
from tests.support.injob_attacks import STRANGER, FalseHead, another_user, dribble, frames, relay

__all__ = ["make_ranks"]
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="starts processes of another user")
KEY = "5b1f0cb3b1e94c53a1d8c0cb"


def test_a_relay_between_ranks_with_a_key_gains_nothing(
    make_ranks: Callable[..., Ranks], tmp_path: Path
) -> None:
    """It holds the port that all ranks try first, and passes on their messages."""
    ranks = make_ranks(2, DOCTOR_JOB_KEY=KEY)
    first, second, *_ = read_job_rank(ranks.environment(1)).ports
    ran = tmp_path / "ran"
    start = json.dumps({"do": "start", "number": 1, "command": f"id >{ran}"})
    with another_user(first, relay(second, frames(start))):
        ranks.start(1, 0)
        await_true(lambda: ran.exists() or ranks.started[1].poll() is not None)
        ends = ranks.ends(0, 1)
    assert not ran.exists()
    assert {code for code, _, _ in ends.values()} == {0}, ends
    assert f"port {first}, where ranks look for rank 0, is held by the user with uid {STRANGER}" in _flat(
        ends[0][1]
    )


def test_a_false_head_under_torchrun_is_passed_over(tmp_path: Path) -> None:
    """torchrun gives its ranks no secret: everybody who can list processes knows what rank 0 has to send."""
    port = free_port()
    job = {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    seat = read_job_rank(job)
    head = FalseHead(seat.token, [Welcome("vm", "", 1, 1), _question("id >/dev/null"), RunVerdict(0)])
    check = ["check", "--exam", "host", "--only", "shm-*", "--expect", "shm_mb=99999999", "--in-job"]
    launch = [
        TORCHRUN,
        "--nproc-per-node=2",
        "--master-addr=127.0.0.1",
        f"--master-port={port}",
        "--no-python",
    ]
    with another_user(seat.ports[0], head):
        done = subprocess.run(
            [*launch, "sh", "-c", RANK, "rank", sys.executable, "-m", "doctor", *check],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HOME": str(tmp_path)},
            check=False,
        )
    codes = sorted(line for line in done.stdout.splitlines() if line.startswith("code "))
    assert codes == ["code 0 1", "code 1 1"], done.stdout + done.stderr
    assert f"uid {STRANGER}" in _flat(done.stdout)


def test_whoever_holds_all_ports_is_named(make_ranks: Callable[..., Ranks]) -> None:
    ranks = make_ranks(2)
    seat = read_job_rank(ranks.environment(1))
    head = FalseHead(seat.token, [Welcome("vm", "", 1, 1), RunVerdict(0)])
    with ExitStack() as stack:
        for port in seat.ports:
            stack.enter_context(another_user(port, head))
        ranks.start(0, 1, argv=["check", "--exam", "host", "--connect-timeout", "3"])
        ends = ranks.ends(0, 1)
    assert (ends[0][0], ends[1][0]) == (3, 3), ends
    for _, _, errors in ends.values():
        assert f"user with uid {STRANGER}" in _flat(errors), errors


def test_a_head_that_dribbles_holds_nobody_up(make_ranks: Callable[..., Ranks]) -> None:
    ranks = make_ranks(2)
    first, *_ = read_job_rank(ranks.environment(1)).ports
    with another_user(first, dribble(0.5), os.geteuid()):
        began = time.monotonic()
        ranks.start(1, argv=["check", "--exam", "host", "--connect-timeout", "2"])
        await_true(lambda: ranks.started[1].poll() is not None or time.monotonic() > began + 30)
        assert ranks.started[1].poll() == 3
    assert "rank 0 was not found at localhost within 2 s" in ranks.ends(1)[1][2]


def _question(python: str) -> StartProgram:
    return StartProgram(1, ProbeQuestion("0" * 32, ("python",), Ask("vm", python=python)))


def _flat(text: str) -> str:
    return " ".join(text.split())
