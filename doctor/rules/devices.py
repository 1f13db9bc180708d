"""Devices: the NPUs that a job uses, their known values, those that differ from the rest, their problems."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from doctor import api
from doctor.facts.ascend.hccn_tool import PerDevice, SilentDevice, devices, split_known
from doctor.facts.ascend.job_npus import used
from doctor.facts.system import Devices
from doctor.model import SourcedValue

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
HostDevice = tuple[str, int]
"""A host and the number of one of its devices."""

HIDE_ALL = ("", "-1", "NoDevFiles", "none")
"""Values of variables with which no device is visible."""


def of_host(said: PerDevice[T], plan: api.JobPlan, host: str | None = None) -> tuple[dict[int, T], str]:
    """The known values of the job's devices, and why others are unknown. Raises Skip if none can be read."""
    mine = {device: said[device] for device in used(said, plan, host)}
    if not mine:
        raise api.Skip("the job uses no NPU here")
    mute = [value for value in mine.values() if isinstance(value, SilentDevice) and value.unsupported]
    if len(mute) == len(mine):
        raise api.Skip(mute[0].reason)
    return split_known(mine)


def of_cluster(
    said: Mapping[str, PerDevice[T]], plan: api.JobPlan
) -> tuple[dict[HostDevice, T], dict[str, str]]:
    """The known values of the job's devices on all hosts, and host -> why values are unknown there."""
    known: dict[HostDevice, T] = {}
    silent: dict[str, str] = {}
    reason = "there is no NPU"
    for host, own in said.items():
        try:
            values, why = of_host(own, plan, host)
        except api.Skip as skip:
            reason = str(skip)
            continue
        known.update({(host, device): value for device, value in values.items()})
        if why:
            silent[host] = why
    if not known and not silent:
        raise api.Skip(reason)
    return known, silent


def note_unknown(silent: Mapping[str, str]) -> None:
    """Raise Undecided for the hosts with unknown values."""
    hosts = api.grouped((why, host) for host, why in silent.items())
    if hosts:
        reasons = hosts if len(hosts) == 1 else [f"{api.fold(names)}: {why}" for why, names in hosts.items()]
        raise api.Undecided("; ".join(reasons), tuple(silent))


def alike(kinds: Mapping[int, K]) -> Iterable[tuple[K, list[int]]]:
    """Groups of devices of one kind."""
    return api.grouped((kind, device) for device, kind in kinds.items()).items()


def alike_on_host(kinds: Mapping[HostDevice, K]) -> Iterator[tuple[str, K, list[int]]]:
    """Groups of devices of one kind on one host."""
    groups = api.grouped(((host, kind), device) for (host, device), kind in kinds.items())
    for (host, kind), numbers in groups.items():
        yield host, kind, numbers


def named(seats: Iterable[HostDevice]) -> str:
    """ "node[1-2] devices 0-7, node3 device 5" """
    hosts = api.grouped((devices(numbers), host) for host, numbers in api.grouped(seats).items())
    return ", ".join(f"{api.fold(names)} {which}" for which, names in hosts.items())


def problem_of(
    numbers: Sequence[int],
    summary: str,
    *evidence: api.Evidence,
    host: str | None = None,
    what: str = "device",
    **more: Any,
) -> api.Problem:
    """A fault of devices of `host`, or of the host that is being judged; `more` is as in Problem."""
    about = {
        "subject": devices(numbers, what) if numbers else None,
        "values": {"device": tuple(map(str, numbers))},
    }
    return api.Problem(
        summary,
        evidence=evidence,
        hosts=(host,) if host else (),
        where=tuple(api.Place(host=host, device=number) for number in numbers),
        **about | more,
    )


def unless_on_cpus(plan: api.JobPlan) -> str:
    """The advice for a job that does not use devices that nobody named; it follows the expected value."""
    only_wanted = any(host.devices and host.devices.source == plan.backend.source for host in plan.hosts)
    unsaid = (plan.only_plugged_in or only_wanted) and not plan.of_node
    return "; if the job trains on CPUs: --backend gloo" if unsaid else ""


def ranks_said(plan: api.JobPlan, host: str) -> SourcedValue[int] | None:
    """The ranks of a host if somebody said how many they are."""
    ranks = plan.host(host).ranks
    return ranks if ranks and ranks.source not in api.ASSUMED else None


def too_few_named(name: str, plan: api.JobPlan) -> tuple[int, int] | None:
    """How many devices the launch names, if any, and ranks of a host, if these are more."""
    ranks = [each.value for host in plan.names if (each := ranks_said(plan, host))]
    words = map(str.strip, plan.env.get(name, "").split(","))
    named = len({word for word in words if word[:1].isdecimal() or word.startswith(("GPU-", "MIG-"))})
    return (named, min(ranks)) if 0 < named < min(ranks, default=0) else None


def beyond_hosts(
    devices: Mapping[str, Devices], expects: Mapping[str, api.Expect], plan: api.JobPlan
) -> tuple[SourcedValue[int], int] | None:
    """The devices of a host for which the launch asks, and the most that a host has or is to have, if it has
    fewer and seems to be whole. Then the launch is at fault, and no host for that.
    """
    founds = [each.of(plan.vendor) for each in devices.values()] if plan.vendor else []
    known = [max(len(f.numbers), f.on_bus - f.screens - f.unclear) for f in founds if f.numbers]
    most = max([*known, *(each.devices or 0 for each in expects.values())], default=0)
    said = filter(None, (ranks_said(plan, host) for host in plan.names))
    asked = [ranks for ranks in said if ranks.source not in ("rank table", "hostfile or inventory")]
    asked += [
        SourcedValue(max(map(int, text.split(","))) + 1, f"{name}={text}")
        for name in (plan.vendor.visible if plan.vendor else ())
        if re.fullmatch(r"\s*\d{1,4}(?:\s*,\s*\d{1,4})*\s*", text := plan.env.get(name, ""))
    ]
    first = max(asked, key=lambda each: each.value, default=None)
    whole = most.bit_count() == 1 or (first and first.value > 1 << most.bit_length())
    return (first, most) if first and whole and 0 < most < first.value else None


def without_link(links: PerDevice[bool] | None) -> set[int]:
    return {device for device, up in (split_known(links)[0] if links else {}).items() if not up}


def without_address(addresses: PerDevice[T | None] | None) -> set[int]:
    return {device for device, own in (split_known(addresses)[0] if addresses else {}).items() if own is None}


@dataclass(frozen=True, slots=True)
class OddDevices:
    """Devices at fault: those of one host, or every suspect if nothing decides between them."""

    seats: tuple[HostDevice, ...]
    decided: bool = True
    expected: str = ""
    actual: str = ""

    @classmethod
    def of_host(cls, host: str, numbers: Sequence[int], expected: str, actual: str) -> OddDevices:
        return cls(tuple((host, number) for number in numbers), True, expected, actual)

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(host for host, _ in self.seats))

    @property
    def subject(self) -> str:
        return named(self.seats) if len(self.hosts) > 1 else devices([device for _, device in self.seats])

    def as_said_by(self, source: str) -> api.Evidence:
        return api.Evidence(source, f"{self.subject}: {self.actual}")

    def problem(self, summary: str, *evidence: api.Evidence, **more: Any) -> api.Problem:
        """`more` is as in Problem; its confidence is for decided cases, because suspects stay suspects."""
        return api.Problem(
            summary if self.decided else summary + api.UNDECIDED,
            expected=self.expected,
            actual=self.actual,
            evidence=evidence,
            subject=self.subject,
            hosts=self.hosts,
            where=tuple(api.Place(host=host, device=device) for host, device in self.seats),
            values={"device": tuple(str(number) for number in sorted({device for _, device in self.seats}))},
            **more if self.decided else more | {"confidence": api.Confidence.SUSPECT},
        )


def odd_ones(values: Mapping[HostDevice, str]) -> Iterator[OddDevices]:
    """Devices that differ from more than half of all; all devices at once if no value has such a majority."""
    votes = Counter(values.values()).most_common()
    if len(votes) < 2:
        return
    usual, count = votes[0]
    if 2 * count <= len(values):
        sides = (f"{value}: {named(s for s, own in values.items() if own == value)}" for value, _ in votes)
        yield OddDevices(tuple(values), False, "the same on every device", "; ".join(sides))
        return
    expected = f"{usual}, as on {count} other device{'s' if count > 1 else ''}"
    for host, value, numbers in alike_on_host(values):
        if value != usual:
            yield OddDevices.of_host(host, numbers, expected, value)
