"""Break NPUs of one host, examine all hosts, and assert that only these NPUs are blamed."""

from dataclasses import dataclass

from tests.lab.npus import NpuHost, Rack
from tests.support.device_faults import ALL, DeviceExaminer, DeviceFault, assert_says, victim

__all__ = ["ALL", "FABRIC", "FULL", "NpuExaminer", "NpuFault", "assert_says", "victim"]
FULL = ("--exam", "full")
FABRIC: tuple[str, ...] = ()
"""The exam that is used by default: it pings from NPU to NPU."""


@dataclass(frozen=True)
class NpuExaminer(DeviceExaminer[NpuHost]):
    hosts: Rack

    @property
    def rack(self) -> Rack:
        return self.hosts


@dataclass(frozen=True)
class NpuFault(DeviceFault[NpuHost]):
    follows: tuple[str, ...] | None = None
