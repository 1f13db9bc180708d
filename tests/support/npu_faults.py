"""Break NPUs of one host, examine all hosts, and assert that only these NPUs are blamed."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.lab import Lab
from tests.lab.npus import NpuHost, Rack
from tests.support.faults import ALONE, Examiner, Found, Outcome, assert_blamed, words

ALL = "node[1-3]"
FULL = ("--exam", "full")
FABRIC: tuple[str, ...] = ()
"""The exam that is used by default: it pings from NPU to NPU."""


@dataclass(frozen=True, slots=True)
class NpuExaminer:
    """`doctor check` on the hosts of a rack; it asserts that the examination changed no setting."""

    rack: Rack
    folder: Path

    @property
    def lab(self) -> Lab:
        return self.rack.lab

    @property
    def hosts(self) -> Rack:
        return self.rack

    def heal(self) -> None:
        self.rack.lab.reset()
        self.rack.reset()

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
    on: str = "any"
    user: str | None = None

    def assert_found(self, outcome: Outcome, host: str) -> None:
        seats = [(host, device) for device in self.devices]
        assert_says(assert_blamed(outcome, self.check, [host], self.status, devices=seats), *self.says)
        assert set(outcome.unknown) == set(self.unknown), outcome.unknown


def victim(rack: Rack, seed: str) -> NpuHost:
    """The host to break: it differs between tests, but is always the same for one test."""
    return rack[random.Random(seed).choice(rack.lab.names)]


def assert_says(found: list[Found], *patterns: str) -> None:
    """Assert that the text of each finding matches each pattern."""
    for each in found:
        for pattern in patterns:
            assert re.search(pattern, words(each)), f"{pattern!r} not in: {words(each)}"
