"""Break devices of one host, examine all hosts, and assert that only these devices are blamed."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tests.lab import Lab
from tests.lab.emulated import Emulated, Fitted
from tests.support.cases import names_of
from tests.support.faults import ALONE, Examiner, Found, Outcome, assert_blamed, fault_table, words

ALL = "node[1-3]"
H = TypeVar("H", bound=Emulated)
F = TypeVar("F")


@dataclass(frozen=True)
class DeviceExaminer(Generic[H]):
    """`doctor check` on hosts with devices; it asserts that the examination changed no setting."""

    hosts: Fitted[H]
    folder: Path

    @property
    def lab(self) -> Lab:
        return self.hosts.lab

    def heal(self) -> None:
        self.lab.reset()
        self.hosts.reset()

    def __call__(
        self, *args: str, hosts: str = ALL, user: str | None = None, timeout: float = 300
    ) -> Outcome:
        outcome = Examiner(self.lab, self.folder)(*args, hosts=hosts, user=user, timeout=timeout)
        assert not self.hosts.setters
        return outcome


@dataclass(frozen=True)
class DeviceFault(Generic[H]):
    """One way to break devices of one host, and the findings that must report it.

    `devices` are exactly the devices that must be named. `says` are patterns that the text of each finding
    must match. `follows` are exactly the checks whose findings are reported as consequences, or None for
    any. `unknown` are exactly the checks that cannot decide.
    """

    check: str
    inject: Callable[[H], object]
    devices: tuple[int, ...] = ()
    status: str = "fail"
    says: tuple[str, ...] = ()
    args: tuple[str, ...] = ALONE
    follows: tuple[str, ...] | None = ()
    unknown: tuple[str, ...] = ()
    on: str = "any"
    user: str | None = None

    @classmethod
    def table(
        cls: type[F], file: str, name: str, *functions: Callable[..., object], **more: object
    ) -> dict[str, F]:
        return fault_table(cls, file, name, names_of(functions) | more)

    def assert_found(self, outcome: Outcome, host: str) -> None:
        seats = [(host, device) for device in self.devices]
        assert_says(assert_blamed(outcome, self.check, [host], self.status, devices=seats), *self.says)
        if self.follows is not None:
            assert {found["check"] for found in outcome.trouble} == {self.check, *self.follows}
        assert set(outcome.unknown) == set(self.unknown), outcome.unknown


def victim(hosts: Fitted[H], seed: str) -> H:
    """The host to break: it differs between tests, but is always the same for one test."""
    return hosts[random.Random(seed).choice(hosts.lab.names)]


def assert_says(found: list[Found], *patterns: str) -> None:
    """Assert that the text of each finding matches each pattern."""
    for each in found:
        for pattern in patterns:
            assert re.search(pattern, words(each)), f"{pattern!r} not in: {words(each)}"
