"""Finds the rank that a library means. Libraries name processes by address and PID, or by device."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from doctor.live.evidence import HostEvidence, JobMember, LibraryText, LiveEvidence
from doctor.live.libraries.opinions import Source, Subject
from doctor.text.printable import clean_line

LOOPBACK = ("127.", "::1", "localhost")
INNER = "process-numbers"
"""The source of a text with the PIDs that processes have in their containers."""


@dataclass(frozen=True, slots=True)
class HostText:
    """A text and the host that it came from."""

    host: str
    about: LibraryText


@dataclass(slots=True)
class RankFinder:
    """Finds the ranks of one job by the names that libraries use for them."""

    evidence: LiveEvidence
    ranks: tuple[JobMember, ...]
    hosts: dict[str, HostEvidence] = field(init=False)
    _by_process: dict[tuple[str, int], JobMember] = field(init=False)
    _by_rank: dict[int, JobMember] = field(init=False)
    _by_address: dict[str, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        named = {member.host for member in self.ranks}
        self.hosts = {host.host: host for host in self.evidence.hosts if host.host in named}
        self._by_process = {(member.host, member.pid): member for member in self.ranks}
        for host in self.hosts.values():
            for outer, inner in _inner(host):
                if (host.host, outer) in self._by_process:
                    self._by_process.setdefault((host.host, inner), self._by_process[host.host, outer])
        self._by_rank = {member.rank: member for member in self.ranks if member.rank is not None}
        self._by_address = {}
        for host in self.hosts.values():
            for address in host.addresses:
                if not address.startswith(LOOPBACK):
                    self._by_address.setdefault(address, set()).add(host.host)

    @property
    def world(self) -> int:
        """The world size that most ranks give; 0 if none does."""
        said = Counter(member.world for member in self.ranks if member.world is not None)
        return next((world for world, _ in said.most_common(1)), 0)

    def said(self, source: Source) -> Iterator[HostText]:
        """Texts of this source from the job's hosts, except those of processes that are not its ranks."""
        for name, host in self.hosts.items():
            for about in host.libraries:
                if about.source == source.value and (
                    about.pid is None or (name, about.pid) in self._by_process
                ):
                    yield HostText(name, about)

    def host_of(self, address: str, teller: str) -> str:
        """The host that has this address; the address itself if no host or several hosts have it."""
        if address.startswith(LOOPBACK):
            return teller
        names = self._by_address.get(address, {address} & set(self.hosts))
        return next(iter(names)) if len(names) == 1 else address

    def process(self, host: str, pid: int) -> Subject:
        member = self._by_process.get((host, pid))
        if member is not None:
            return Subject(rank=member.rank, host=host, pid=member.pid)
        return Subject(host=clean_line(host)[:256], pid=pid if 0 < pid <= 2**22 else None)

    def rank(self, rank: int) -> Subject:
        member = self._by_rank.get(rank)
        return Subject(rank=rank, host=member.host, pid=member.pid) if member else Subject(rank=rank)

    def of_text(self, said: HostText) -> Subject:
        """The rank to which a text belongs."""
        return self.process(said.host, said.about.pid or 0)

    def is_ours(self, host: str, pid: int) -> bool:
        return (host, pid) in self._by_process


def _inner(host: HostEvidence) -> Iterator[tuple[int, int]]:
    """PIDs on the host, each with the PID in its container."""
    for about in host.libraries:
        if about.source == INNER:
            for line in about.text.splitlines():
                outer, _, inner = line.partition(" ")
                if outer.isdecimal() and inner.isdecimal() and len(line) < 32:
                    yield int(outer), int(inner)


def pairs(said: Iterable[HostText]) -> Iterator[tuple[HostText, HostText]]:
    """The first and the second answer of each place that answered twice."""
    first: dict[tuple[str, str], HostText] = {}
    for each in said:
        place = (each.host, each.about.name)
        if each.about.which == "a":
            first[place] = each
        elif place in first:
            yield first[place], each
