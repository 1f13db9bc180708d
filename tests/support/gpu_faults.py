"""Break GPUs of one host, examine all hosts, and assert that only these GPUs are blamed."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.gpus import GpuHost, Gpus
from tests.support.device_faults import ALL, DeviceExaminer, DeviceFault, victim
from tests.support.faults import Outcome

__all__ = [
    "ALL",
    "DeviceFault",
    "GpuExaminer",
    "GpuFault",
    "gpu_examiner",
    "left_out",
    "undecided_on",
    "victim",
]


@dataclass(frozen=True)
class GpuExaminer(DeviceExaminer[GpuHost]):
    """The hosts are healthy at first."""

    def __post_init__(self) -> None:
        self.heal()

    @property
    def gpus(self) -> Gpus:
        return self.hosts


@pytest.fixture
def gpu_examiner(gpus3: Gpus, tmp_path: Path) -> GpuExaminer:
    return GpuExaminer(gpus3, tmp_path)


GpuFault = DeviceFault[GpuHost]


def undecided_on(outcome: Outcome, host: str) -> dict[str, str]:
    """Check -> the reason why it could not decide on this host."""
    found = outcome.report["findings"]
    return {f["check"]: f["summary"] for f in found if f["status"] == "unknown" and host in f["hosts"]}


def left_out(outcome: Outcome, check: str) -> dict[str, str]:
    """Host -> the reason why this check does not apply to it."""
    results = outcome.report["results"]
    skipped = [r for r in results if r["check"] == check and r["status"] == "skip"]
    return {host: result["reason"] for result in skipped for host in result["hosts"]}
