"""Break NPUs of one host, examine all hosts, and assert that only these NPUs are blamed."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.npus import NpuHost, Rack
from tests.support.device_faults import ALL, DeviceExaminer, DeviceFault, assert_says, victim

__all__ = ["ALL", "FABRIC", "FULL", "NpuExaminer", "NpuFault", "assert_says", "npu_examiner", "victim"]
FULL = ("--exam", "full")
FABRIC: tuple[str, ...] = ()
"""The exam that is used by default: it pings from NPU to NPU."""


@dataclass(frozen=True)
class NpuExaminer(DeviceExaminer[NpuHost]):
    hosts: Rack

    @property
    def rack(self) -> Rack:
        return self.hosts


@pytest.fixture
def npu_examiner(rack: Rack, tmp_path: Path) -> NpuExaminer:
    return NpuExaminer(rack, tmp_path)


@dataclass(frozen=True)
class NpuFault(DeviceFault[NpuHost]):
    follows: tuple[str, ...] | None = None
