"""How a job ran by its own words is told beside every verdict, and accuses nobody."""

from pathlib import Path

import pytest

from doctor.logs.model import Conclusion, LogOutcome
from tests.support.fault_logs import concluded

SOCKETS = "NCCL sends over sockets (TCP)"
GPUDIRECT = "NCCL sends over RDMA, straight from the memory of the GPUs (GPUDirect)"
BY_HOST = "NCCL sends over RDMA, through the memory of the hosts (without GPUDirect)"
CHANNEL = "{0}:10:20 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/{1}\n"


def told(folder: Path, *lines: str) -> Conclusion:
    path = folder / "job.log"
    path.write_text("".join(lines))
    return concluded(path)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (CHANNEL.format("node1", "IB/0/GDRDMA"), GPUDIRECT),
        (CHANNEL.format("node1", "IB/0/GDRDMA/Shared"), GPUDIRECT),
        (CHANNEL.format("node1", "AWS Libfabric/1/GDRDMA(PCI)"), GPUDIRECT),
        (CHANNEL.format("node1", "IB/3"), BY_HOST),
        (CHANNEL.format("node1", "IBext_v8/3/Shared"), BY_HOST),
        (CHANNEL.format("node1", "IB/3 comm 0x95cdeb0 nRanks 08"), BY_HOST),
        (CHANNEL.format("node1", "Socket/1 comm 0x95cdeb0 nRanks 08"), SOCKETS),
        ("node1:10:20 [0] NCCL INFO Using network Socket\n", SOCKETS),
    ],
)
def test_the_network_is_told_and_nobody_is_accused(tmp_path: Path, line: str, says: str) -> None:
    found = told(tmp_path, line)
    assert found.outcome is LogOutcome.CLEAN
    assert found.ways == (f"{says} on node1",)


def test_hosts_that_go_another_way_are_told_apart(tmp_path: Path) -> None:
    lines = [CHANNEL.format(host, "IB/0/GDRDMA") for host in ("node1", "node2")]
    found = told(tmp_path, *lines, CHANNEL.format("node3", "IB/0"))
    assert set(found.ways) == {f"{GPUDIRECT} on node[1-2]", f"{BY_HOST} on node3"}


def test_a_log_that_says_nothing_of_the_network_has_no_way(tmp_path: Path) -> None:
    assert told(tmp_path, "node1:10:20 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.\n").ways == ()
