"""A finding in a few words: its culprit, what kind it is, and its title."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from doctor.model import Finding, Status, Waiver
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.ranks import ranges, ranks_text

WORDS = {
    Status.FAIL: "FAIL",
    Status.WARN: "WARN",
    Status.CRASH: "BROKEN",
    Status.UNKNOWN: "UNKNOWN",
    Status.WAIVED: "WAIVED",
}
LONGEST = 60
"""A summary of at most this many characters is used as the headline unchanged."""
NOBODY = "no single host"
MANY = 16
"""If there are at least this many hosts, they are counted, and listed in one place only."""
FEW, LONG = 4, 32
"""More than FEW hosts are also counted if their names fold into more than LONG characters."""
_IT = re.compile(r"^(?:its?|kernel log:) ", re.IGNORECASE)
ASIDE = re.compile(r" \([^()]*\)")
CLAUSE = re.compile(r"[:;,] ")
_NEVER_ENTERED = re.compile(
    r"^it never entered (?P<group>\w+) (?P<op>\w+) \d+ \([^()]*\) of (?:training (?P<step>step \d+)|the "
    r"(?P<phase>\w+ phase)), and (?P<ranks>.+) waits? for it$"
)
_TITLES = {
    "device-link-down": "network link is down",
    "device-ip-missing": "has no address in the device network",
}
"""Titles of checks whose summary cannot be read without its context."""
_WHAT = {"plan": "the plan", "launch": "the launch"}
"""What is wrong if no host is, by the first word of the check."""
Called = Mapping[str, str]
"""The own names of hosts that were named by their addresses (`Report.called`)."""
_AS_NAMED: Called = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class GuiltyHosts:
    """Hosts with the same fault, and the part of them that is faulty."""

    hosts: tuple[str, ...]
    devices: str = ""
    """ "NPU 3" """
    ranks: str = ""
    """ "rank 3" """
    called: Called = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        names = named_or_counted(self.hosts, self.called)
        if self.ranks:
            return f"{self.ranks} on {names}"
        between = ", " if are_counted(self.hosts) else " "
        return f"{names}{between}{self.devices}" if self.devices else names


def are_counted(hosts: Sequence[str]) -> bool:
    """Whether the hosts are counted because their names would be too long."""
    return len(hosts) >= MANY or (len(hosts) > FEW and len(fold(hosts)) > LONG)


def named_or_counted(hosts: Sequence[str], called: Called = _AS_NAMED) -> str:
    return f"{len(hosts)} hosts" if are_counted(hosts) else named(hosts, called)


def named(hosts: Sequence[str], called: Called = _AS_NAMED) -> str:
    """ "node[1-4]"; "node2 (198.18.0.3)" if the host was named by its address and reported its own name."""
    own = [called[host] for host in hosts if host in called]
    return f"{fold(own)} ({fold(hosts)})" if own and len(own) == len(hosts) else fold(hosts)


def culprits(finding: Finding, called: Called = _AS_NAMED) -> tuple[GuiltyHosts, ...]:
    """One culprit for all hosts with the same faulty devices or ranks."""
    ranks: dict[str, set[int]] = {host: set() for host in finding.hosts}
    devices: dict[str, set[int]] = {host: set() for host in finding.hosts}
    for place in finding.where:
        if place.host in ranks and place.rank is not None and finding.check.startswith("smoke-"):
            ranks[place.host].add(place.rank)
        elif place.host in devices and place.device is not None:
            devices[place.host].add(place.device)
    if all(ranks.values()) and ranks:
        return (GuiltyHosts(finding.hosts, ranks=ranks_text(set().union(*ranks.values())), called=called),)
    noun = "NPU" if finding.check.startswith(("device-", "rank-table-")) else "GPU"
    alike: dict[str, list[str]] = {}
    for host, numbers in devices.items():
        plural = "s" if len(numbers) > 1 else ""
        part = f"{noun}{plural} {','.join(ranges(numbers))}" if numbers else ""
        alike.setdefault(part, []).append(host)
    return tuple(GuiltyHosts(tuple(hosts), devices=part, called=called) for part, hosts in alike.items())


def culprit(finding: Finding, called: Called = _AS_NAMED) -> str:
    """ "node2 NPU 3", "rank 3 on node2", "node[1-4,6]"; else what is wrong, if that is not a host."""
    guilty = ", ".join(map(str, culprits(finding, called)))
    in_a_file = not any(place.host for place in finding.where)
    said = finding.subject if in_a_file or finding.check == "names-disagree" else ""
    return guilty or said or _WHAT.get(finding.check.partition("-")[0], NOBODY)


def word(finding: Finding) -> str:
    hangs = finding.check == "smoke-hang" and finding.status is Status.FAIL
    return "HANG" if hangs else WORDS[finding.status]


def bare(text: str) -> str:
    """The text without a leading "it", "its" or "kernel log:", since the culprit is named before it."""
    return _IT.sub("", text)


def title(finding: Finding) -> str:
    """The fault in a few words: the summary, or its first clause if it is long."""
    if finding.status is Status.CRASH:
        return "the check itself broke"
    if found := _NEVER_ENTERED.match(finding.summary):
        at = found["step"] or found["phase"]
        waits = "wait for it" if found["ranks"].startswith("ranks") else "waits for it"
        return f"stopped in {at} before a {found['group']} {found['op']}; {found['ranks']} {waits}"
    text = _TITLES.get(finding.check) or bare(finding.summary).rstrip(".")
    return text if len(text) <= LONGEST else CLAUSE.split(ASIDE.sub("", text))[0]


def waiver_words(waiver: Waiver | None, status: Status) -> str:
    """Who accepts a finding until when, or accepted it; empty if nobody does."""
    if waiver is None:
        return ""
    expired = "" if status is Status.WAIVED else "expired: "
    return clean_line(f"{expired}accepted until {waiver.until} by {waiver.owner}: {waiver.reason}")
