"""Which processes form a job: those with the same name and the same owner.

A process chooses the name itself, so anybody can claim it; the owner comes from the kernel. Therefore, ranks
of several users are several jobs, even under one name. Among the processes of one user, a process that only
inherited a rank's variables does not count if the rank itself is there.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from doctor.live import threads
from doctor.live.collectives import meets
from doctor.live.evidence import JobMember, LiveEvidence
from doctor.live.onhost.launchers import NAMELESS
from doctor.live.wires import SHORT, Key, Wire, key, wires
from doctor.text.grouped import grouped

MOST_OWNERS = 64
"""The most owners of one name that are compared, to find one person under several names."""
HERE = ("127.", "localhost:", "::1", "[::1]")
"""Prefixes of rendezvous addresses that only ranks on the same host can reach."""


@dataclass(frozen=True, slots=True)
class JobPart:
    """Processes with one name and one owner."""

    name: str
    members: tuple[JobMember, ...]
    world: int | None
    bound: frozenset[Key]
    """Its ranks that a launcher started, or that are connected to other ranks of their owner."""
    stray: bool = False
    """Other ranks hold the numbers that these processes claim."""


def parts(evidence: LiveEvidence) -> Iterator[JobPart]:
    """All parts, in the order of the hosts."""
    for name, owned in _by_name(evidence).items():
        for members in _persons(owned):
            yield from _split(name, members)


def _by_name(evidence: LiveEvidence) -> dict[str, list[list[JobMember]]]:
    """The members of each name, one list for each owner. A helper has the owner of its rank."""
    same = {**_same_by_connections(evidence), **_same_by_wires(evidence), **_same_by_numbers(evidence)}
    owners = {key(m): m.user for host in evidence.hosts for m in host.members if m.helps is None}
    found: dict[str, dict[str, list[JobMember]]] = {}
    for host in evidence.hosts:
        for each in host.members:
            owner = owners.get((each.host, each.helps or each.pid), each.user)
            found.setdefault(same.get(each.job, each.job), {}).setdefault(owner, []).append(each)
    return {name: list(owned.values()) for name, owned in found.items()}


def _same_by_numbers(evidence: LiveEvidence) -> dict[str, str]:
    """The name of the whole job for each part of it, if the ranks of one program that wait for their first
    meeting complete each other: they call different places.
    """
    ranks = [each for host in evidence.hosts for each in ranks_of(host.members)]
    met = {each.job for each in ranks if not meets(each)}
    alike = grouped(
        ((each.user, each.world, *each.command.split()[:2]), each) for each in ranks if each.job not in met
    )
    whole = [
        of for of in alike.values() if len(of) == of[0].world and {m.rank for m in of} == {*range(len(of))}
    ]
    names = [Counter(each.job for each in of) for of in whole]
    return {name: of.most_common(1)[0][0] for of in names if len(of) > 1 for name in of}


def _same_by_wires(evidence: LiveEvidence) -> dict[str, str]:
    """The name of the whole job for each job without a name of its own that is connected to other ranks of
    its user, such as actors of Ray on several hosts.
    """
    owned = grouped(
        (each.user, each) for host in evidence.hosts for each in ranks_of(host.members) if not each.hidden
    )
    same: dict[str, str] = {}
    for ranks in owned.values():
        names = {key(each): each.job for each in ranks}
        if len({*names.values()}) < 2 or not any(map(_is_nameless, names.values())):
            continue
        for wire in wires(ranks):
            if min(wire.here.received, wire.there.received) < SHORT:
                continue
            ends = (same.get(names[end], names[end]) for end in (wire.of, wire.to))
            one, other = sorted(ends, key=lambda name: (_is_nameless(name), name))
            if one != other and _is_nameless(other):
                same = {name: one if of == other else of for name, of in same.items()} | {other: one}
    return same


def _same_by_connections(evidence: LiveEvidence) -> dict[str, str]:
    """The same where ranks may not be read: two nameless jobs are one if each is the only one of its user and
    host, and this user's processes there exchange data.
    """
    hidden = [(each, host) for host in evidence.hosts for each in host.members if each.hidden]
    jobs = grouped(((each.user, host.host), each.job) for each, host in hidden if _is_nameless(each.job))
    alone = {where: names[0] for where, names in jobs.items() if len({*names}) == 1}
    same: dict[str, str] = {}
    for user in {user for user, _ in alone}:
        ends = {
            (end.local, end.peer): alone[user, host.host]
            for host in evidence.hosts
            for end in host.loose
            if (user, host.host) in alone and end.user == user and end.received >= SHORT
        }
        for (local, peer), name in ends.items():
            one, two = (same.get(each, each) for each in (name, ends.get((peer, local), name)))
            if one != two:
                same = {each: one if of == two else of for each, of in same.items()} | {two: one}
    return same


def _is_nameless(name: str) -> bool:
    return name.startswith(NAMELESS)


def ranks_of(members: Sequence[JobMember]) -> list[JobMember]:
    return [each for each in members if each.helps is None]


# Several owners that are one person.


def _persons(owned: list[list[JobMember]]) -> list[list[JobMember]]:
    """Owners merged if they are one person: one launcher started their ranks, or a user has different names
    on different hosts.
    """
    if not 1 < len(owned) <= MOST_OWNERS:
        return owned
    owned = _merged(owned, _same_launcher)
    between = wires([rank for members in owned for rank in ranks_of(members)])
    return _merged(owned, lambda one, other: _same_person(ranks_of(one), ranks_of(other), between))


def _merged(
    owned: list[list[JobMember]], same: Callable[[list[JobMember], list[JobMember]], bool]
) -> list[list[JobMember]]:
    merged: list[list[JobMember]] = []
    for members in owned:
        before = next((other for other in merged if same(other, members)), None)
        if before is None:
            merged.append([*members])
        else:
            before += members
    return merged


def _same_launcher(one: list[JobMember], other: list[JobMember]) -> bool:
    """Whether one launcher started ranks of both. Other users' processes cannot be below it."""
    starts = ({(m.host, m.launched) for m in of if m.launched is not None} for of in (one, other))
    return not set.isdisjoint(*starts)


def _same_person(one: list[JobMember], other: list[JobMember], between: Sequence[Wire]) -> bool:
    """Whether they are on different hosts, have different ranks of the same world, and have sent data to each
    other. Anybody can connect to a port of a rank, so a connection alone proves nothing.
    """
    numbers, others = ([m.rank for m in of] for of in (one, other))
    if {*numbers} & {*others} or _hosts(one) & _hosts(other):
        return False
    if len({m.world for m in (*one, *other)}) != 1 or any(
        m.rank is None or m.world is None or m.rank >= m.world for m in (*one, *other)
    ):
        return False
    ends = ({key(m) for m in one}, {key(m) for m in other})
    return any(
        wire.of in ends[0] and wire.to in ends[1] and min(wire.here.received, wire.there.received) >= SHORT
        for wire in between
    )


def _hosts(members: Sequence[JobMember]) -> set[str]:
    return {each.host for each in members}


# Several processes that claim one rank.


def _split(name: str, members: list[JobMember]) -> Iterator[JobPart]:
    """The ranks, and for each host the processes that claim numbers of other ranks."""
    for called, own in _by_loopback(name, members):
        ranks = ranks_of(own)
        if not ranks:
            continue
        connected = _connected(ranks)
        bound = connected | {key(m) for m in ranks if m.launched is not None}
        world = _world(ranks, bound)
        strays = _strays(ranks, connected, world) if bound else frozenset()
        yield from _apart(called, [m for m in own if _rank_key(m) not in strays], world, bound)
        for host in dict.fromkeys(host for host, _ in sorted(strays)):
            left = tuple(m for m in own if m.host == host and _rank_key(m) in strays)
            yield JobPart(f"{called} on {host}", left, _world(ranks_of(left), bound), bound, stray=True)


def _rank_key(member: JobMember) -> Key:
    """The key of the rank that it is or helps."""
    return member.host, member.helps or member.pid


def _by_loopback(name: str, members: list[JobMember]) -> Iterator[tuple[str, list[JobMember]]]:
    """Ranks with a loopback rendezvous form one job on each host."""
    hosts = _of_hosts(members)
    if len(hosts) < 2 or not all(m.master.startswith(HERE) for m in members):
        yield name, members
        return
    yield from ((f"{name} on {host}", own) for host, own in hosts.items())


def _of_hosts(members: Sequence[JobMember]) -> dict[str, list[JobMember]]:
    return grouped((each.host, each) for each in members)


def _connected(ranks: list[JobMember]) -> frozenset[Key]:
    """Ranks with a connection to another rank of the same user; the rendezvous counts as well."""
    owner = {key(m): m.user for m in ranks}
    pairs = (wire for first in (True, False) for wire in wires(ranks, first=first, rendezvous=True))
    return frozenset(wire.of for wire in pairs if owner[wire.of] == owner[wire.to])


def _world(ranks: Sequence[JobMember], bound: frozenset[Key]) -> int | None:
    """The world size that most bound ranks give, or most ranks if none is bound. A tie gives the smallest."""
    said = Counter(m.world for m in ranks if m.world is not None and key(m) in bound)
    said = said or Counter(m.world for m in ranks if m.world is not None)
    return min((world for world, n in said.items() if n == max(said.values())), default=None)


def _strays(ranks: list[JobMember], connected: frozenset[Key], world: int | None) -> frozenset[Key]:
    """Processes whose number is outside the world, or is held by one with more signs of being the rank."""
    claims = grouped((each.rank, each) for each in ranks if each.rank is not None)
    strays: set[Key] = set()
    for number, of in claims.items():
        signs = {key(m): (key(m) in connected, m.launched is not None, joins(m)) for m in of}
        beyond = world is not None and number >= world
        strays |= {
            one
            for one, own in signs.items()
            if (beyond and not any(own[:2])) or any(_more(other, own) for other in {*signs.values()})
        }
    return frozenset(strays)


def _more(one: tuple[bool, ...], other: tuple[bool, ...]) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))


def joins(rank: JobMember) -> bool:
    """Whether it takes part in process groups or could do so."""
    looks = (rank.a, rank.b)
    return rank.joins or any(threads.uses_gloo(look) or threads.uses_device(look) for look in looks)


def _apart(
    name: str, members: list[JobMember], world: int | None, bound: frozenset[Key]
) -> Iterator[JobPart]:
    """One part for each host if a rank number exists twice: then several jobs have the same name, unless all
    of these ranks still wait for each other.
    """
    ranks, hosts = ranks_of(members), _of_hosts(members)
    numbers = Counter(each.rank for each in ranks if each.rank is not None)
    lacking = all(map(meets, ranks)) and world is not None and len(numbers) < world
    if len(hosts) < 2 or max(numbers.values(), default=0) < 2 or lacking:
        yield JobPart(name, tuple(members), world, bound)
        return
    for host, own in hosts.items():
        yield JobPart(f"{name} on {host}", tuple(own), _world(ranks_of(own), bound), bound)
