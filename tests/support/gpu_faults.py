"""Break GPUs of one host, examine all hosts, and assert that only these GPUs are blamed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import Lab, missing
from tests.lab.gpus import GpuHost, Gpus, fit_gpus
from tests.support.faults import ALONE, Examiner, Outcome, assert_only
from tests.support.npu_faults import assert_says

ALL = "node[1-3]"


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
        self.gpus.lab.reset()
        self.gpus.reset()

    def __call__(
        self, *args: str, hosts: str = ALL, user: str | None = None, timeout: float = 120
    ) -> Outcome:
        examine = Examiner(self.gpus.lab, self.folder)
        outcome = examine(*args, hosts=hosts, user=user, timeout=timeout)
        assert not self.gpus.setters
        return outcome


@dataclass(frozen=True, slots=True)
class GpuFault:
    """One way to break GPUs of one host, and the findings that must report it.

    `devices` are exactly the devices that must be named. `says` are patterns that the text of each finding
    must match. `follows` are exactly the checks whose findings are reported as consequences. `unknown` are
    exactly the checks that cannot decide.
    """

    check: str
    inject: Callable[[GpuHost], object]
    devices: tuple[int, ...] = ()
    status: str = "fail"
    says: tuple[str, ...] = ()
    args: tuple[str, ...] = ALONE
    follows: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    user: str | None = None


def victim(gpus: Gpus, seed: str) -> GpuHost:
    """The host to break: it differs between tests, but is always the same for one test."""
    return gpus[random.Random(seed).choice(gpus.lab.names)]


def prove(fault: GpuFault, name: str, examine: GpuExaminer) -> Outcome:
    """Break one host, examine all, and assert that only this fault is found."""
    host = victim(examine.gpus, name)
    fault.inject(host)
    outcome = examine(*fault.args, user=fault.user)
    seats = [(host.host.name, device) for device in fault.devices]
    found = assert_only(outcome, fault.check, [host.host.name], fault.status, devices=seats)
    assert_says(found, *fault.says)
    assert {each["check"] for each in outcome.trouble} == {fault.check, *fault.follows}
    assert set(outcome.unknown) == set(fault.unknown), outcome.unknown
    return outcome


def undecided_on(outcome: Outcome, host: str) -> dict[str, str]:
    """Check -> the reason why it could not decide on this host."""
    found = outcome.report["findings"]
    return {f["check"]: f["summary"] for f in found if f["status"] == "unknown" and host in f["hosts"]}


def left_out(outcome: Outcome, check: str) -> dict[str, str]:
    """Host -> the reason why this check does not apply to it."""
    results = outcome.report["results"]
    skipped = [r for r in results if r["check"] == check and r["status"] == "skip"]
    return {host: result["reason"] for result in skipped for host in result["hosts"]}
