"""A job that trains over sockets where InfiniBand was asked for is slow: its steps are no proof of health. If
only some ranks do, they cannot reach the others.
"""

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


FABRIC = "".join(f"node1:{pid}:{pid} [{pid % 8}] NCCL INFO Using network {{}}\n" for pid in (200, 201))
NO_LIBRARY = "node2:100:100 [0] misc/ibvsymbols.cc:56 NCCL WARN Failed to open libibverbs.so[.1]\n"


@pytest.mark.parametrize("fabric", ["IB", "AWS Libfabric"])
@pytest.mark.parametrize(
    "others", [*SOCKETS.replace("node1", "node2").splitlines(keepends=True)[::2], NO_LIBRARY]
)
def test_it_is_told_if_only_some_ranks_use_sockets(fabric: str, others: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(FABRIC.format(fabric, fabric) + others)
    found = concluded(path)
    assert (found.outcome, found.charges[0].symptom) == (LogOutcome.NAMED, "nccl-sockets")
    assert "node2" in found.charges[0].says


@pytest.mark.parametrize("network", ["IB", "AWS Libfabric", "Socket"])
def test_ranks_that_agree_are_healthy(network: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(FABRIC.format(network, network))
    assert concluded(path).outcome is LogOutcome.CLEAN


RETRY = "node1:100:100 [0] NCCL INFO {}: connect returned {}, retrying ({}/34)\n"
REASONS = ["Connection timed out", "Connection refused", "No route to host"]


@pytest.mark.parametrize("last", [1, 34])
@pytest.mark.parametrize("why", REASONS)
@pytest.mark.parametrize("function", ["socketStartConnect", "socketPollConnect", "ncclOsSocketPollConnect"])
def test_a_log_that_ends_while_nccl_still_connects(
    function: str, why: str, last: int, tmp_path: Path
) -> None:
    path = tmp_path / "train.log"
    path.write_text(SOCKETS + "".join(RETRY.format(function, why, n) for n in range(1, last + 1)))
    found = concluded(path)
    assert found.charges[0].symptom == "nccl-connect-retrying"
    assert "port-unreachable" in found.charges[0].checks
    path.write_text(path.read_text() + STEPS)
    assert concluded(path).outcome is LogOutcome.CLEAN


@pytest.mark.parametrize(
    ("line", "symptom"),
    [
        (
            "socketPollConnect: connect returned Connection timed out, exceeded error retry count (35)",
            "timeout",
        ),
        ("socketStartConnect: exceeded timeouts (3)", "timeout"),
        ("socketPollConnect: connect returned No route to host, exceeded error retry count (35)", "no-route"),
        (
            "socketPollConnect: connect returned Connection refused, exceeded error retry count (35)",
            "refused",
        ),
        ("socketStartConnect: exceeded retries (20000)", "refused"),
    ],
)
def test_a_connection_that_is_given_up_needs_no_address(line: str, symptom: str, tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(f"{SOCKETS}node1:100:100 [0] misc/socket.cc:544 NCCL WARN {line}\n")
    assert str(concluded(path).charges[0].symptom).endswith(symptom)
