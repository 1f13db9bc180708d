"""Break GPUs of one host, examine all hosts, and assert that only these GPUs are blamed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.lab import Lab, missing
from tests.lab.gpus import GpuHost, Gpus, fit_gpus
from tests.support.device_faults import ALL, DeviceExaminer, DeviceFault, victim
from tests.support.faults import Outcome

__all__ = [
    "ALL",
    "DeviceFault",
    "GpuExaminer",
    "GpuFault",
    "left_out",
    "three_hosts",
    "undecided_on",
    "victim",
]


@contextmanager
def three_hosts() -> Iterator[Gpus]:
    """Three hosts with eight GPUs each, node1 to node3."""
    if reason := missing():
        pytest.skip(reason)
    with Lab(3) as lab:
        yield fit_gpus(lab)


@dataclass(frozen=True)
class GpuExaminer(DeviceExaminer[GpuHost]):
    """The hosts are healthy at first."""

    def __post_init__(self) -> None:
        self.heal()

    @property
    def gpus(self) -> Gpus:
        return self.hosts


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
