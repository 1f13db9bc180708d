"""Examine the lab's hosts, and compare the report with the one fault that was injected.

Every report is made a second time, from its recording: it must be the same, and with `--strict` a warning
must count as a fault. So each fault also proves the replay and the strict exit code.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import pytest

from doctor import cli
from tests.lab import Host, Lab
from tests.support.cases import from_cases, make, names_of
from tests.support.verified import assert_red, assert_typed

HOSTS = "node[1-4]"
HEAD = "node1"
ALONE = ("--exam", "host")
"""Arguments for faults that show on the host itself: no connections between hosts are made."""
HCCL = ("--backend", "hccl", "--skip", "device-missing")
"""For hosts without NPUs."""

Found = dict[str, Any]
Seat = tuple[str, int]
"""A host and the number of one of its devices."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one examination."""

    code: int
    report: dict[str, Any]
    text: str
    errors: str
    recording: Path
    skipped: tuple[str, ...] = ()
    """Its --skip options, which no recording keeps."""
    lab: Lab | None = None
    """Where its `verify` lines can be typed."""

    @property
    def trouble(self) -> list[Found]:
        """Findings that report a fault, as opposed to something that was not examined."""
        return [found for found in self.report["findings"] if found["status"] != "unknown"]

    @property
    def unknown(self) -> dict[str, str]:
        """Check -> the reason why it could not decide."""
        found = self.report["findings"]
        return {each["check"]: each["summary"] for each in found if each["status"] == "unknown"}

    def hosts(self, status: str) -> set[str]:
        return {host["name"] for host in self.report["hosts"] if host["status"] == status}


@dataclass(frozen=True, slots=True)
class Examiner:
    """`doctor check` on the controller of a lab, its report read back."""

    lab: Lab
    folder: Path
    prepare: Callable[[Lab], object] | None = None
    """What turns a lab that has just booted into a healthy one."""
    names: str = HOSTS

    @property
    def hosts(self) -> Lab:
        return self.lab

    def heal(self) -> None:
        self.lab.reset()
        if self.prepare:
            self.prepare(self.lab)

    def __call__(
        self, *args: str, hosts: str | None = None, user: str | None = None, timeout: float = 300
    ) -> Outcome:
        report, recording = self.folder / "report.json", self.folder / "recording.json"
        files = ("--json", str(report), "--save", str(recording))
        done = self.lab.doctor(
            "check",
            *(self.names if hosts is None else hosts).split(),
            *args,
            *files,
            user=user,
            timeout=timeout,
        )
        assert report.exists(), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        found = json.loads(report.read_bytes())
        skipped = tuple(word for pair in pairwise(args) if pair[0] == "--skip" for word in pair)
        return Outcome(done.returncode, found, done.stdout, done.stderr, recording, skipped, self.lab)


def replay(outcome: Outcome, *args: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the report of the same recording."""
    return judged_again(outcome.recording, *outcome.skipped, *args)


def judged_again(recording: Path, *args: str) -> tuple[int, dict[str, Any]]:
    report = recording.with_name("replayed.json")
    with contextlib.redirect_stdout(io.StringIO()):
        code = cli.run(["check", "--replay", str(recording), "--json", str(report), *args])
    return code, json.loads(report.read_bytes())


@pytest.fixture
def examine(lab: Lab, tmp_path: Path) -> Examiner:
    return Examiner(lab, tmp_path)


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to break a host, and the finding that must report it.

    `says` are patterns that the text of the finding must match. `also` are other checks that may warn about
    the same host because they see an effect of the fault. `on` is the host to break, "any", or "peer": any
    host except the head. `user` is who logs in.
    """

    check: str
    inject: Callable[[Host], object]
    status: str = "fail"
    says: tuple[str, ...] = ()
    args: tuple[str, ...] = ALONE
    also: tuple[str, ...] = ()
    on: str = "any"
    user: str | None = None
    leaves: bool = True
    """Whether a reboot leaves something that the check can look at: otherwise nothing can pass."""

    @classmethod
    def table(
        cls, file: str, name: str, *functions: Callable[..., object], **more: object
    ) -> dict[str, Fault]:
        return fault_table(cls, file, name, names_of(functions) | more)

    def assert_found(self, outcome: Outcome, host: str) -> None:
        for found in assert_blamed(outcome, self.check, [host], self.status, self.also):
            for pattern in self.says:
                assert re.search(pattern, words(found)), f"{pattern!r} not in: {words(found)}"


AnyFault = TypeVar("AnyFault")


def fault_table(
    kind: type[AnyFault], file: str, name: str, functions: Mapping[str, Any]
) -> dict[str, AnyFault]:
    """The faults of the file of cases."""
    rows = from_cases(file, name, dict[str, dict[str, Any]], **functions)
    for row in rows.values():
        row["inject"] = injection(row["inject"], functions)
    return {fault: make(kind, row) for fault, row in rows.items()}


def injection(given: Any, functions: Mapping[str, Any] = MappingProxyType({})) -> Callable[[Any], object]:
    """Calls what is given, with its arguments: methods of the host, those of its device 3 in `3: {lost: []}`,
    and functions of the test, which get the host first.
    """

    def inject(host: Any) -> None:
        for name, arguments in given.items():
            if isinstance(name, int):
                injection(arguments, functions)(host[name])
            elif name in functions:
                make(partial(functions[name], host), arguments)
            else:
                make(getattr(host, name), arguments)

    return given if callable(given) else inject


Broken = TypeVar("Broken")
Broken_contra = TypeVar("Broken_contra", contravariant=True)
Broken_co = TypeVar("Broken_co", covariant=True)


class Breaks(Protocol[Broken_contra]):
    """A fault of any kind of host."""

    @property
    def check(self) -> str: ...
    @property
    def inject(self) -> Callable[[Broken_contra], object]: ...
    @property
    def status(self) -> str: ...
    @property
    def args(self) -> tuple[str, ...]: ...
    @property
    def on(self) -> str: ...
    @property
    def user(self) -> str | None: ...
    def assert_found(self, outcome: Outcome, host: str) -> None: ...


class Hosts(Protocol[Broken_co]):
    def __getitem__(self, name: str) -> Broken_co: ...


class Bench(Protocol[Broken_co]):
    """Hosts of any kind, and `doctor check` on them."""

    @property
    def lab(self) -> Lab: ...
    @property
    def hosts(self) -> Hosts[Broken_co]: ...
    def heal(self) -> None: ...
    def __call__(self, *args: str, user: str | None = None) -> Outcome: ...


def one_of_each(faults: Mapping[str, Breaks[Any]]) -> list[Any]:
    """Names for parametrize: one fault of each check and status; further variants are marked long."""
    return some_of(faults, *kinds(faults))


def kinds(faults: Mapping[str, Breaks[Any]]) -> list[str]:
    """The first fault of each check and status."""
    first: dict[tuple[str, str], str] = {}
    for name, fault in faults.items():
        first.setdefault((fault.check, fault.status), name)
    return [*first.values()]


def some_of(every: Iterable[Any], *sample: Any, main: Collection[Any] = ()) -> list[Any]:
    """All names for parametrize; those outside the sample are marked long, those of `main` main."""

    def marked(each: Any) -> Any:
        marks = pytest.mark.main if each in main else () if each in sample else pytest.mark.long
        return pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=marks)

    return [marked(each) for each in every]


def victim(lab: Lab, on: str, seed: str, spared: Collection[str] = ()) -> Host:
    """The host to break: it differs between tests, but is always the same for one test."""
    choice = {"any": lab.names, "peer": lab.names[1:]}.get(on, (on,))
    return lab[random.Random(seed).choice([name for name in choice if name not in spared])]


def prove(fault: Breaks[Broken], name: str, bench: Bench[Broken]) -> Outcome:
    """Break one host, examine all, and assert that only this fault is found."""
    host = victim(bench.lab, fault.on, name).name
    fault.inject(bench.hosts[host])
    outcome = bench(*fault.args, user=fault.user)
    fault.assert_found(outcome, host)
    assert_judged(outcome, [host] if fault.status == "fail" else None)
    return outcome


def assert_only(
    outcome: Outcome,
    check: str,
    hosts: Collection[str],
    status: str = "fail",
    also: Collection[str] = (),
    devices: Collection[Seat] | None = None,
) -> list[Found]:
    """Assert that `check` blames exactly `hosts`, and that the report as a whole agrees; its findings."""
    mine = assert_blamed(outcome, check, hosts, status, also, devices)
    assert_judged(outcome, hosts if status == "fail" else None)
    return mine


def assert_blamed(
    outcome: Outcome,
    check: str,
    hosts: Collection[str],
    status: str = "fail",
    also: Collection[str] = (),
    devices: Collection[Seat] | None = None,
) -> list[Found]:
    """Assert that `check` blames exactly `hosts`, and that all other findings follow from it.

    Returns its findings. With `devices`, exactly these are named, and findings that follow name no other
    devices of these hosts.
    """
    mine = [found for found in outcome.trouble if found["check"] == check]
    assert mine, f"no {check}; found: {_shown(outcome.trouble)}\n{outcome.text}{outcome.errors}"
    assert {found["status"] for found in mine} == {status}, _shown(mine)
    assert {host for found in mine for host in found["hosts"]} == set(hosts), _shown(mine)
    assert devices is None or _seats(mine) == set(devices), _shown(mine)
    known = {found["id"] for found in mine}
    for other in (found for found in outcome.trouble if found["check"] != check):
        follows = other["because"] in known or (other["check"] in also and other["status"] == "warn")
        assert follows, f"beside {check}: {_shown([other])}"
        assert set(other["hosts"]) <= set(hosts), _shown([other])
        assert devices is None or _seats([other]) <= set(devices), _shown([other])
    return mine


def assert_judged(outcome: Outcome, faulty: Collection[str] | None) -> None:
    """Assert that exactly these hosts do not count as healthy; `None` if there are warnings only."""
    assert_consistent(outcome)
    healthy = {host["name"] for host in outcome.report["hosts"]} - {*(faulty or ())}
    assert outcome.hosts("healthy") == healthy
    assert outcome.report["verdict"] == ("healthy" if faulty is None else "faulty")
    assert outcome.code == (0 if faulty is None else 1)
    assert replay(outcome, "--strict")[0] == 1
    if outcome.lab:
        assert_typed(outcome.lab, outcome.report)
        assert_red(outcome.lab, outcome.report, outcome.text)


def _seats(found: Iterable[Found]) -> set[Seat]:
    places = [place for each in found for place in each["where"]]
    return {(place["host"], place["device"]) for place in places if place["device"] is not None}


def apply_remedy(lab: Lab, found: Found) -> None:
    """Run the commands of the finding on the hosts that it names."""
    for host in found["hosts"]:
        for command in found["remedy"]["commands"]:
            lab[host].do(command)


def assert_healthy(outcome: Outcome, unknown: Iterable[str] = ()) -> None:
    """Assert that no fault is found and that exactly the checks in `unknown` could not decide."""
    assert not outcome.trouble, _shown(outcome.trouble)
    assert set(outcome.unknown) == set(unknown), outcome.unknown
    assert_consistent(outcome)
    assert outcome.report["verdict"] == "healthy"
    assert outcome.hosts("healthy") == {host["name"] for host in outcome.report["hosts"]}
    assert (outcome.code, replay(outcome, "--strict")[0]) == (0, 0)


def assert_unexamined(outcome: Outcome, hosts: Iterable[str], unknown: Iterable[str], reason: str) -> None:
    """Assert that these hosts alone do not count as examined, for this reason, and nobody is blamed."""
    told = [found for found in outcome.trouble if found["check"] == "probe-incomplete"]
    assert told == outcome.trouble, _shown(outcome.trouble)
    assert {host for found in told for host in found["hosts"]} == set(hosts)
    assert all(reason in found["summary"] for found in told)
    assert set(outcome.unknown) == {"probe-incomplete", *unknown}, outcome.unknown
    assert outcome.hosts("unexamined") == set(hosts)
    assert outcome.code == 3
    assert_consistent(outcome)


def assert_consistent(outcome: Outcome) -> None:
    """Assert that no check crashed, that terminal and file agree, and that the recording gives the same
    report.
    """
    assert not [found for found in outcome.trouble if found["status"] == "crash"], outcome.text
    assert "Traceback" not in outcome.text + outcome.errors
    for found in outcome.trouble:
        assert found["check"] in outcome.text
        assert found["summary"]
        assert found["actual"] or found["evidence"], found
    code, again = replay(outcome)
    assert code == outcome.code
    assert {**again, "run": None} == {**outcome.report, "run": None}


def words(found: Found) -> str:
    """The whole text of a finding."""
    seen = " ".join(f"{each['source']}: {each['text']}" for each in found["evidence"])
    commands = " ; ".join((found["remedy"] or {"commands": ()})["commands"])
    parts = [found[key] or "" for key in ("summary", "subject", "expected", "actual")]
    return " | ".join([*parts, seen, commands])


def _shown(found: Iterable[Found]) -> str:
    return "; ".join(f"{f['status']} {f['check']} {f['nodeset']}: {words(f)}" for f in found) or "nothing"
