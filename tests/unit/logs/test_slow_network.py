"""A job that trains over sockets where InfiniBand was asked for is slow: its steps are no proof of health."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from doctor.model import Confidence
from tests.support.fault_logs import concluded

WANTED = "node1:100:100 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0\n"
SOCKETS = (
    "node1:100:100 [0] NCCL INFO NET/IB : No device found.\n"
    "node1:100:100 [0] NCCL INFO NET/Socket : Using [0]eth0:192.0.2.1<0>\n"
    "node1:100:100 [0] NCCL INFO Using network Socket\n"
)
STEPS = "".join(f"step {step} loss {3 - step / 1000:.4f}\n" for step in range(300))


@pytest.mark.parametrize("steps", [STEPS, ""], ids=["trains", "starts"])
def test_it_is_told_if_infiniband_was_wanted(steps: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(WANTED + SOCKETS + steps)
    found = concluded(path)
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "nccl-sockets")
    assert found.charges[0].confidence is Confidence.SUSPECT
    path.write_text(SOCKETS + steps)
    assert concluded(path).outcome is LogOutcome.CLEAN
