"""Break GPUs of one host, examine all hosts, and assert that only these GPUs are blamed."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import pytest

from tests.lab import Lab, missing
from tests.lab.gpus import GpuHost, Gpus, fit_gpus
from tests.support.faults import ALONE, Examiner, Outcome, assert_blamed
from tests.support.npu_faults import assert_says

ALL = "node[1-3]"
H = TypeVar("H")


@contextmanager
def three_hosts() -> Iterator[Gpus]:
    """Three hosts with eight GPUs each, node1 to node3."""
    if reason := missing():
        pytest.skip(reason)
    with Lab(3) as lab:
        yield fit_gpus(lab)


@dataclass(frozen=True, slots=True)
class GpuExaminer:
    """`doctor check` on hosts with GPUs, healthy at first; it asserts that the examination changed no
    setting.
    """

    gpus: Gpus
    folder: Path

    def __post_init__(self) -> None:
        self.heal()

    @property
    def lab(self) -> Lab:
        return self.gpus.lab

    @property
    def hosts(self) -> Gpus:
        return self.gpus

    def heal(self) -> None:
        self.gpus.lab.reset()
        self.gpus.reset()

    def __call__(
        self, *args: str, hosts: str = ALL, user: str | None = None, timeout: float = 120
    ) -> Outcome:
        examine = Examiner(self.gpus.lab, self.folder)
        outcome = examine(*args, hosts=hosts, user=user, timeout=timeout)
        assert not self.gpus.setters
        return outcome


@dataclass(frozen=True)
class DeviceFault(Generic[H]):
    """One way to break GPUs of one host, and the findings that must report it.

    `devices` are exactly the devices that must be named. `says` are patterns that the text of each finding
    must match. `follows` are exactly the checks whose findings are reported as consequences. `unknown` are
    exactly the checks that cannot decide.
    """

    check: str
    inject: Callable[[H], object]
    devices: tuple[int, ...] = ()
    status: str = "fail"
    says: tuple[str, ...] = ()
    args: tuple[str, ...] = ALONE
    follows: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    on: str = "any"
    user: str | None = None

    def assert_found(self, outcome: Outcome, host: str) -> None:
        seats = [(host, device) for device in self.devices]
        assert_says(assert_blamed(outcome, self.check, [host], self.status, devices=seats), *self.says)
        assert {found["check"] for found in outcome.trouble} == {self.check, *self.follows}
        assert set(outcome.unknown) == set(self.unknown), outcome.unknown


GpuFault = DeviceFault[GpuHost]


def victim(gpus: Gpus, seed: str) -> GpuHost:
    """The host to break: it differs between tests, but is always the same for one test."""
    return gpus[random.Random(seed).choice(gpus.lab.names)]


def undecided_on(outcome: Outcome, host: str) -> dict[str, str]:
    """Check -> the reason why it could not decide on this host."""
    found = outcome.report["findings"]
    return {f["check"]: f["summary"] for f in found if f["status"] == "unknown" and host in f["hosts"]}


def left_out(outcome: Outcome, check: str) -> dict[str, str]:
    """Host -> the reason why this check does not apply to it."""
    results = outcome.report["results"]
    skipped = [r for r in results if r["check"] == check and r["status"] == "skip"]
    return {host: result["reason"] for result in skipped for host in result["hosts"]}
