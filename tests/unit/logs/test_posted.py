"""Excerpts as people post them: which ranks are named, and which are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from doctor.model import UNDECIDED, Confidence
from tests.support.fault_logs import concluded

STUCK = (
    "[rank{0}]:[E1120 10:15:4{0}.123 ProcessGroupNCCL.cpp:1316] [PG 0 Rank {0}] Heartbeat monitor timed out! "
    "Process will be terminated after dumping debug info. workMetaList_.size()=1"
)
STUCK_LATER = (
    "[rank{0}]:[E1120 10:15:4{0}.123 ProcessGroupNCCL.cpp:1743] [PG ID 0 PG GUID 0(default_pg) Rank {0}] "
    "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued "
    "collectives."
)
TIMED_OUT = (
    "[rank{0}]:[E1120 10:07:44.123 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600029 milliseconds before timing out."
)
DEEPSPEED = (
    "[2026-11-20 07:22:26,148] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 4242",
    "[2026-11-20 07:22:27,220] [ERROR] [launch.py:324:sigkill_handler] ['/usr/bin/python3', '-u', "
    "'train.py', '--local_rank=1'] exits with return code = {0}",
)
NOT_REACHED = (
    "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to "
    "(10.0.0.1, 29500).",
    "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store "
    "has failed. See inner exception for details.",
)
OFF_THE_BUS = (
    "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0",
    "               NVRM: (PCI ID: 10de:26b5) installed in this system has",
    "               NVRM: fallen off the bus and is not responding to commands.",
    "[ 1843.439662] NVRM: The NVIDIA probe routine failed for 1 device(s).",
)
MPICH = (
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "=   PID 5318 RUNNING AT node7",
    "=   EXIT CODE: 9",
    "=   CLEANING UP REMAINING PROCESSES",
    "=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES",
)
BROKEN_AT_ITS_END = (
    "node1:100:200 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer node2<4>",
    "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:825, internal error, NCCL version 2.14.3",
    "free(): invalid pointer",
)


@pytest.mark.parametrize(
    ("lines", "symptom"),
    [
        ([each.format(-9) for each in DEEPSPEED], "torchrun-killed"),
        ([each.format(-7) for each in DEEPSPEED], "torch-bus-error"),
        ([each.format(-11) for each in DEEPSPEED], "torchrun-segfault"),
        (NOT_REACHED, "torch-connect-timeout"),
        (OFF_THE_BUS, "gpu-xid-79"),
        (
            ["kernel: NVRM: Xid (PCI:0000:cb:00): 109, pid=1797, name=pt_main_thread, Ch 00000008"],
            "gpu-xid-reset",
        ),
    ],
)
def test_what_it_says_is_named(lines: list[str], symptom: str, tmp_path: Path) -> None:
    said = concluded(written(tmp_path, lines))
    assert said.outcome is LogOutcome.NAMED
    assert said.charges[0].symptom == symptom


@pytest.mark.parametrize("stuck", [STUCK, STUCK_LATER], ids=["2.2", "2.6"])
def test_a_watchdog_that_is_stuck_accuses_nobody(stuck: str, tmp_path: Path) -> None:
    """All ranks print it if one of them is late."""
    for name, lines in {
        "all": [stuck.format(rank) for rank in range(4)],
        "after": [TIMED_OUT.format(2), *(stuck.format(rank) for rank in (1, 3))],
    }.items():
        said = concluded(written(tmp_path, lines, name))
        assert said.outcome is not LogOutcome.CLEAN
        assert all(each.confidence is not Confidence.CERTAIN for each in said.charges)


def test_a_process_that_mpich_tells_of_is_not_nothing(tmp_path: Path) -> None:
    assert concluded(written(tmp_path, MPICH)).outcome is not LogOutcome.CLEAN


def test_a_heap_that_breaks_at_the_end_is_no_reason(tmp_path: Path) -> None:
    said = concluded(written(tmp_path, BROKEN_AT_ITS_END))
    assert "python-heap-broken" not in {each.symptom for each in said.charges if each.because is None}


def test_a_rendezvous_that_was_not_reached_accuses_neither_end(tmp_path: Path) -> None:
    said = concluded(written(tmp_path, NOT_REACHED))
    assert UNDECIDED in said.charges[0].says or said.charges[0].confidence is not Confidence.CERTAIN


def written(folder: Path, lines: list[str] | tuple[str, ...], name: str = "train") -> Path:
    path = folder / f"{name}.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
