"""Jobs that have launchers and no rank yet: which launchers belong together, and whom each of them calls."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from doctor.job.launch.rank_env import is_loopback_name
from doctor.live.evidence import Connection, HostEvidence, LiveEvidence, Look
from doctor.live.jobs.job import RunningJob
from doctor.live.jobs.owners import HERE
from doctor.live.jobs.starters import Starter, starter_of
from doctor.live.places import frames_of
from doctor.text.grouped import grouped
from doctor.text.nodeset import is_ip

_MEETS = ("/distributed/elastic/rendezvous/", "/distributed/elastic/utils/store.py")
"""Files of launchers that wait for the others there."""


@dataclass(frozen=True, slots=True)
class StartingJob:
    """Launchers of one job, on different hosts."""

    starters: tuple[Starter, ...]
    seen: tuple[HostEvidence, ...]
    """All hosts that answered."""

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(each.host for each in self.starters)

    @property
    def name(self) -> str:
        """The launcher's name."""
        return self.starters[0].name

    @property
    def user(self) -> str:
        return self.starters[0].member.user

    @property
    def nodes(self) -> int:
        return self.starters[0].nodes[0]

    @property
    def age(self) -> float:
        """The age of the youngest."""
        return min(each.member.age for each in self.starters)

    @property
    def head(self) -> Starter | None:
        """The launcher to which the others connect, if a number says which."""
        first = [each for each in self.starters if each.node == 0]
        return first[0] if len(first) == 1 else None

    @property
    def port(self) -> str:
        """The port that most of them call."""
        head = self.head
        return head.master.port if head else most_common([each.master.port for each in self.starters])

    def host(self, name: str) -> HostEvidence:
        return next(each for each in self.seen if each.host == name)


def most_common(values: Sequence[str]) -> str:
    return Counter(values).most_common(1)[0][0]


def starting_jobs(evidence: LiveEvidence, jobs: Sequence[RunningJob] = ()) -> tuple[StartingJob, ...]:
    """The jobs that start, apart from launchers of jobs with ranks elsewhere."""
    running = {rank.master for job in jobs for rank in job.ranks}
    starters = filter(None, (starter_of(member) for host in evidence.hosts for member in host.starters))
    alike = grouped(
        ((each.member.user, each.name, each.program, each.nodes), each)
        for each in starters
        if f"{each.master.address}:{each.master.port}" not in running
    )
    return tuple(StartingJob(tuple(part), evidence.hosts) for of in alike.values() for part in _apart(of))


def _apart(starters: Sequence[Starter]) -> Iterator[list[Starter]]:
    """Separate jobs, if several of these run on one host: by the place where they meet."""
    if len({each.host for each in starters}) == len(starters):
        yield list(starters)
        return
    yield from grouped(((each.master.address, each.master.port), each) for each in starters).values()


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a launcher calls: a host of the job, or an address that none of them has."""

    host: str = ""
    address: str = ""
    itself: bool = False

    def __str__(self) -> str:
        return self.host or self.address


def target_of(job: StartingJob, each: Starter) -> Target | None:
    """None if it is unknown, or if its name cannot be resolved."""
    own, address = each.host, each.master.address.strip("[]")
    if is_loopback_name(address):
        return Target(own, address, itself=True)
    resolved = (one.addresses for one in job.host(own).names if one.name == address)
    found = (address,) if is_ip(address) else next(resolved, ())
    if not found:
        return None
    if any(one.startswith(HERE) for one in found):
        return Target(own, found[0], itself=True)
    if not all(host.addresses for host in job.seen):
        return None
    homes = [host.host for host in job.seen if set(found) & {*host.addresses}]
    return Target(own if own in homes else homes[0] if homes else "", found[0])


def unresolved(job: StartingJob, each: Starter) -> str:
    """Why its host has no address for the name that it calls; empty if it has one, or was not asked."""
    names = job.host(each.host).names
    return next((one.problem for one in names if one.name == each.master.address and not one.addresses), "")


def calls(each: Starter, look: Look | None, state: str) -> Connection | None:
    """Its connection to the port of the rendezvous in this state."""
    for one in look.connections if look else ():
        if one.state == state and one.peer.rpartition(":")[2] == each.master.port:
            return one
    return None


def has_come(each: Starter) -> bool | None:
    """Whether it waits for the others already; None if that is unknown."""
    look = each.member.b or each.member.a
    ports = [one.local.rpartition(":")[2] for one in (look.connections if look else ())]
    if calls(each, look, "ESTAB") or calls(each, look, "SYN-SENT") or each.master.port in ports:
        return True
    frames = frames_of(look)
    return any(part in frame.file for frame in frames for part in _MEETS) if frames else None


def address_of(host: HostEvidence) -> str:
    """An address at which others reach it, or its name."""
    own = [one for one in host.addresses if ":" not in one and not one.startswith("127.")]
    return own[0] if len(own) == 1 or (own and host.host not in own) else host.host
