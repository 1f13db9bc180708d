"""Reports about links in the kernel log, in the messages of many drivers: facts in, problems out."""

from __future__ import annotations

import pytest

from doctor.expect import Expect
from doctor.facts.processes import KernelLine
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Backend, Host, Problem, SourcedValue

(KERNEL_LOG_CHECK,) = (check for check in find_checks().checks if check.id == "kernel-log")
# The messages of the drivers mlx5_core, hns3, hinic and igb.
LINKS = (
    ("mlx5_core 0000:3b:00.0 ens1f0: Link up", "mlx5_core 0000:3b:00.0 ens1f0: Link down"),
    ("hns3 0000:7d:00.0 eth0: link up", "hns3 0000:7d:00.0 eth0: link down"),
    ("hinic 0000:19:00.0 eth2: HINIC_Link is UP", "hinic 0000:19:00.0 eth2: HINIC_Link is DOWN"),
    (
        "igb 0000:01:00.0 eno1: igb: eno1 NIC Link is Up 1000 Mbps",
        "igb 0000:01:00.0 eno1: igb: eno1 NIC Link is Down",
    ),
)
QUIET = ("ata1: SATA link up 6.0 Gbps", "ata3: SATA link down (SStatus 0)", "EDAC MC: Ver: 3.0.0")


XID = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def found(*lines: str, backend: Backend = Backend.GLOO) -> list[Problem]:
    plan = draft([Host("a", "a")], JobWishes(backend=SourcedValue(backend, "test")))
    return list(KERNEL_LOG_CHECK.run(tuple(KernelLine(60.0, line) for line in lines), Expect(), plan))


@pytest.mark.parametrize(("up", "down"), LINKS)
def test_a_link_that_went_down(up: str, down: str) -> None:
    (problem,) = found(*QUIET, up, down)
    assert "link went down" in problem.summary
    assert found(*QUIET, down) == [], "it was never up: a port without a cable"


def test_an_xid_is_reported_once() -> None:
    (problem,) = found(XID)
    assert "a GPU reported a fault" in problem.summary
    assert found(XID, backend=Backend.NCCL) == [], "gpu-xid tells it"
