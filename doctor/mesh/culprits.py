"""Failing pairs -> the smallest set of hosts that explains them. Pure.

An *arm* is one direction of one host for one kind of port. An arm is *strong* if more than one attempt was
made through it and more than half of them failed. A failing link is explained by its source's outbound arm or
its target's inbound arm, and only strong arms may be blamed: one failed pair among many good ones makes no
host guilty.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from doctor.mesh.cover import Arm, FailingLink, Side, explain, lowest_first
from doctor.mesh.result import Kind, Link
from doctor.text.grouped import grouped

Direction = Literal["inbound", "outbound", "both", "pair", "split"]
NEARLY_ALL = 0.9
MOST_SUSPECTS = 8


@dataclass(frozen=True, slots=True)
class MeshBlame:
    """One explanation of some failing links.

    `pair`: any of these hosts (nearly always two), or the network between them. `split`: these hosts reach
    one another but not the rest. `decided` is False if another explanation fits equally well; then `hosts`
    names every suspect. `common`: (nearly) everything failed alike, so the cause is in none of the hosts, and
    `hosts` is empty.
    """

    hosts: tuple[str, ...]
    direction: Direction
    kinds: tuple[Kind, ...]
    links: tuple[Link, ...]
    decided: bool
    common: bool = False


def culprits(links: Iterable[Link]) -> tuple[MeshBlame, ...]:
    """Explain the failing links: first what is common, then the hosts that explain the most."""
    tested = [link for link in links if link.tested]
    left = [link for link in tested if link.failed]
    blames: list[MeshBlame] = []
    common = _common_kinds(tested)
    if common:
        alike = [link for link in left if link.kind in common]
        blames.append(_blame((), "both", alike, decided=True, common=True))
        left = [link for link in left if link.kind not in common]
        tested = [link for link in tested if link.kind not in common]
    splits = _splits(tested)
    explained = {link for blame in splits for link in blame.links}
    blames += splits + _guilty_hosts(tested, [link for link in left if link not in explained])
    return tuple(sorted(blames, key=lambda b: (not b.common, not b.decided, -len(b.links), b.hosts)))


def widen(hosts: Sequence[str], links: Iterable[Link]) -> tuple[tuple[str, str], ...]:
    """The untried pairs around the suspects; of at most `MOST_SUSPECTS` hosts all, the most failing first."""
    seen = list(links)
    tried = {(link.source, link.target) for link in seen if link.kind != "master"}
    failing: Counter[str] = Counter()
    for blame in (*culprits(seen), *culprits([way for link in seen for way in link.ways])):
        if not blame.decided:
            for host in blame.hosts:
                failing[host] += sum(host in (link.source, link.target) for link in blame.links)
    pairs = (
        pair
        for suspect, _ in failing.most_common(MOST_SUSPECTS)
        for other in hosts
        for pair in ((suspect, other), (other, suspect))
    )
    return tuple(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1] and pair not in tried))


def _common_kinds(tested: Sequence[Link]) -> set[Kind]:
    """The kinds of ports on which (nearly) all links failed, though no host is part of all failures."""
    common: set[Kind] = set()
    for kind in ("ephemeral", "hccl", "mccl"):
        links = [link for link in tested if link.kind == kind]
        failed = [link for link in links if link.failed]
        hosts = {h for link in links for h in (link.source, link.target)}
        everywhere = any(all(h in (link.source, link.target) for link in failed) for h in hosts)
        if len(hosts) >= 3 and not everywhere and len(failed) >= NEARLY_ALL * len(links):
            common.add(kind)
    master = [link for link in tested if link.kind == "master"]
    if "ephemeral" in common and master and sum(link.failed for link in master) >= NEARLY_ALL * len(master):
        common.add("master")
    return common


def _splits(tested: Sequence[Link]) -> list[MeshBlame]:
    """Groups of at least two hosts that reach one another, but no other such group."""
    groups = [g for g in _components(tested) if len(g) >= 2]
    groups.sort(key=len, reverse=True)
    number = {host: n for n, group in enumerate(groups) for host in group}
    across: dict[int, list[Link]] = defaultdict(list)
    cut_from: dict[str, set[str]] = defaultdict(set)
    for link in tested:
        here, there = number.get(link.source), number.get(link.target)
        if here is not None and there is not None and here != there:
            across[here].append(link)
            across[there].append(link)
            cut_from[link.source].add(link.target)
            cut_from[link.target].add(link.source)
    blames: list[MeshBlame] = []
    for n, group in enumerate(groups[1:], 1):
        if all(cut_from[h] for h in group):
            decided = len(group) < len(groups[0]) and all(len(cut_from[h]) >= 2 for h in group)
            named = group if len(group) < len(groups[0]) else group | groups[0]
            blames.append(_blame(sorted(named), "split", across[n], decided=decided))
    return blames


def _components(tested: Sequence[Link]) -> list[set[str]]:
    """Groups of hosts connected by working links, in either direction."""
    group: dict[str, set[str]] = {h: {h} for link in tested for h in (link.source, link.target)}
    for link in tested:
        small, large = sorted((group[link.source], group[link.target]), key=len)
        if not link.failed and small is not large:
            large |= small
            group |= dict.fromkeys(small, large)
    return list({id(g): g for g in group.values()}.values())


def _guilty_hosts(tested: Sequence[Link], left: Sequence[Link]) -> list[MeshBlame]:
    strong = _strong_arms(tested)
    faults = [FailingLink(link, {arm: strong[arm] for arm in _arms(link) if arm in strong}) for link in left]
    weak = [fault.link for fault in faults if not fault.arms]
    blames: list[MeshBlame] = []
    for hosts, arms_used, links, decided in explain([fault for fault in faults if fault.arms]):
        ways = {way for host, way, _ in arms_used if host in hosts}
        blames.append(_blame(hosts, _direction(ways) if decided else "pair", links, decided=decided))
    return blames + _suspicions(weak)


def _suspicions(weak: Sequence[Link]) -> list[MeshBlame]:
    """Explain weak failures: by a host that several have in common, otherwise by the pair."""
    blames: list[MeshBlame] = []
    of_host = grouped((host, link) for link in weak for host in {link.source, link.target})
    explained: set[int] = set()

    def left(host: str) -> list[Link]:
        return [link for link in of_host[host] if id(link) not in explained]

    def rank(host: str) -> int:
        return -len({end for link in left(host) for end in (link.source, link.target)} - {host})

    for host in takewhile(lambda host: rank(host) < -1, lowest_first(of_host, rank)):
        mine = left(host)
        ways: set[Side] = {"outbound" if link.source == host else "inbound" for link in mine}
        blames.append(_blame((host,), _direction(ways), mine, decided=False))
        explained |= set(map(id, mine))
    rest = (link for link in weak if id(link) not in explained)
    pairs = grouped((tuple(sorted((link.source, link.target))), link) for link in rest)
    return blames + [_blame(pair, "pair", links, decided=False) for pair, links in pairs.items()]


def _strong_arms(tested: Sequence[Link]) -> dict[Arm, float]:
    """Strong arms, each with the share of its links that work: 0 is a perfect culprit.

    A host tries the head's master port once: its other kinds of ports show what that one link proves.
    """
    tried = Counter(arm for link in tested for arm in _arms(link))
    good = Counter(arm for link in tested if not link.failed for arm in _arms(link))
    sides = Counter((host, way) for link in tested for host, way, _ in _arms(link))
    failed = Counter((host, way) for link in tested if link.failed for host, way, _ in _arms(link))

    def strong(arm: Arm, doubt: float) -> bool:
        side = arm[:2]
        return doubt < 0.5 and (tried[arm] > 1 or 2 * failed[side] > sides[side] > 1)

    doubts = {arm: good[arm] / count for arm, count in tried.items()}
    return {arm: doubt for arm, doubt in doubts.items() if strong(arm, doubt)}


def _arms(link: Link) -> tuple[Arm, Arm]:
    return (link.source, "outbound", link.kind), (link.target, "inbound", link.kind)


def _direction(ways: set[Side]) -> Direction:
    return "both" if len(ways) == 2 else next(iter(ways))


def _blame(
    hosts: Iterable[str], direction: Direction, links: Sequence[Link], *, decided: bool, common: bool = False
) -> MeshBlame:
    order: tuple[Kind, ...] = ("master", "hccl", "mccl", "ephemeral")
    kinds = tuple(kind for kind in order if any(link.kind == kind for link in links))
    return MeshBlame(tuple(hosts), direction, kinds, tuple(links), decided, common)
