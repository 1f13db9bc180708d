"""Break NPUs of one host, examine all hosts, and assert that only these NPUs are blamed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.lab.npus import NpuHost, Rack
from tests.support.faults import ALONE, Examiner, Found, Outcome, assert_only, words

ALL = "node[1-3]"
FULL = ("--exam", "full")
FABRIC: tuple[str, ...] = ()
"""The exam that is made unless another is asked for: it pings from NPU to NPU."""


@dataclass(frozen=True, slots=True)
class NpuExaminer:
    """`doctor check` on the hosts of a rack; it asserts that the examination changed no setting."""

    rack: Rack
    folder: Path

    def __call__(
        self, *args: str, hosts: str = ALL, user: str | None = None, timeout: float = 120
    ) -> Outcome:
        examine = Examiner(self.rack.lab, self.folder)
        outcome = examine(*args, hosts=hosts, user=user, timeout=timeout)
        assert not self.rack.setters
        return outcome


@dataclass(frozen=True, slots=True)
class NpuFault:
    """One way to break NPUs of one host, and the findings that must report it.

    `devices` are exactly the devices that must be named. `says` are patterns that the text of each finding
    must match. `unknown` are exactly the checks that cannot decide.
    """

    check: str
    inject: Callable[[NpuHost], object]
    devices: tuple[int, ...]
    status: str = "fail"
    says: tuple[str, ...] = ()
    args: tuple[str, ...] = ALONE
    unknown: tuple[str, ...] = ()


def victim(rack: Rack, seed: str) -> NpuHost:
    """The host to break: it differs between tests, but is always the same for one test."""
    return rack[random.Random(seed).choice(rack.lab.names)]


def prove(fault: NpuFault, name: str, examine: NpuExaminer) -> Outcome:
    """Break one host, examine all, and assert that only this fault is found."""
    host = victim(examine.rack, name)
    fault.inject(host)
    outcome = examine(*fault.args)
    seats = [(host.host.name, device) for device in fault.devices]
    found = assert_only(outcome, fault.check, [host.host.name], fault.status, devices=seats)
    assert_says(found, *fault.says)
    assert set(outcome.unknown) == set(fault.unknown), outcome.unknown
    assert not examine.rack.refused
    return outcome


def assert_says(found: list[Found], *patterns: str) -> None:
    """Assert that the text of each finding matches each pattern."""
    for each in found:
        for pattern in patterns:
            assert re.search(pattern, words(each)), f"{pattern!r} not in: {words(each)}"
