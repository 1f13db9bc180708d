"""A minimum vertex cover of the failing links, exact up to `EXACT` hosts; evidence breaks ties."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any, Literal

from doctor.mesh.result import Kind, Link
from doctor.text.grouped import grouped

Side = Literal["inbound", "outbound"]
Arm = tuple[str, Side, Kind]
EXACT = 16


@dataclass(frozen=True)
class FailingLink:
    """A failing link and the arms that may be blamed for it, each with the share of its links that work."""

    link: Link
    arms: Mapping[Arm, float]

    @cached_property
    def hosts(self) -> frozenset[str]:
        return frozenset(arm[0] for arm in self.arms)


Explanation = tuple[tuple[str, ...], set[Arm], list[Link], bool]


def explain(faults: Sequence[FailingLink]) -> Iterator[Explanation]:
    """(hosts, arms used, links, decided) for each culprit, or for suspects that explain the links equally."""
    for group in _groups(faults):
        covers = _best(group)
        sure = frozenset.intersection(*covers)
        used = _needed_arms(group, covers[0])
        of_host = _by_host(group)
        for host in sorted(sure):
            arms = {arm for fault in of_host[host] for arm in fault.arms if arm[0] == host} & used
            yield (host,), arms, [f.link for f in of_host[host] if arms & f.arms.keys()], True
        torn = frozenset.union(*covers) - sure
        if torn:
            sure_arms = {arm for arm in used if arm[0] in sure}
            yield tuple(sorted(torn)), set(), [f.link for f in group if not sure_arms & f.arms.keys()], False


def _by_host(group: Iterable[FailingLink]) -> Mapping[str, Sequence[FailingLink]]:
    return grouped((host, fault) for fault in group for host in fault.hosts)


def _groups(faults: Sequence[FailingLink]) -> list[list[FailingLink]]:
    """Faults grouped so that those that share a suspect, directly or through others, are together."""
    leader: dict[str, str] = {}

    def find(host: str) -> str:
        while leader.setdefault(host, host) != host:
            leader[host] = leader[leader[host]]  # a shorter path for the next lookup
            host = leader[host]
        return host

    for fault in faults:
        first, *rest = sorted(fault.hosts)
        for host in rest:
            leader[find(host)] = find(first)
    return list(grouped((find(min(fault.hosts)), fault) for fault in faults).values())


def _best(group: Sequence[FailingLink]) -> list[frozenset[str]]:
    """The smallest covers, and among these the ones that working links contradict least."""
    edges = {fault.hosts for fault in group}
    if len(frozenset.union(*edges)) > EXACT:
        return [_greedy(group)]
    size = 1
    while not (covers := set(_covers(sorted(edges, key=len), size, frozenset()))):
        size += 1
    cost = {cover: round(sum(_least_doubt(f, cover) for f in group), 9) for cover in covers}
    least = min(cost.values())
    return sorted((c for c in covers if cost[c] == least), key=sorted)


def _covers(edges: Sequence[frozenset[str]], size: int, chosen: frozenset[str]) -> Iterator[frozenset[str]]:
    """Every cover of at most `size` hosts: one end of the first uncovered edge must be in it."""
    bare = next((edge for edge in edges if not edge & chosen), None)
    if bare is None:
        yield chosen
    elif len(chosen) < size:
        for host in bare:
            yield from _covers(edges, size, chosen | {host})


def _greedy(group: Sequence[FailingLink]) -> frozenset[str]:
    """Repeatedly choose the host that explains most of what is left, with the least doubt."""
    of_host = _by_host(group)
    chosen = {next(iter(f.hosts)) for f in group if len(f.hosts) == 1}
    left = dict(of_host)

    def rank(host: str) -> tuple[int, float]:
        doubt = 0.0
        left[host] = [fault for fault in left[host] if not fault.hosts & chosen]
        for fault in left[host]:
            for arm, share in fault.arms.items():
                doubt += share if arm[0] == host else 0.0
        return -len(left[host]), doubt

    for host in lowest_first(of_host, rank):
        if left[host]:
            chosen.add(host)
    for host in sorted(chosen):
        if all(len(fault.hosts & chosen) > 1 for fault in of_host[host]):
            chosen.discard(host)
    return frozenset(chosen)


def lowest_first(hosts: Iterable[str], rank: Callable[[str], Any]) -> Iterator[str]:
    """The best suspects first: those of the lowest rank. Ranks only get worse while their hosts are taken."""
    queue = [(rank(host), host) for host in hosts]
    heapify(queue)
    while queue:
        known, host = heappop(queue)
        if (now := rank(host)) == known:
            yield host
        else:  # it is outdated
            heappush(queue, (now, host))


def _least_doubt(fault: FailingLink, cover: Iterable[str]) -> float:
    return min((share for arm, share in fault.arms.items() if arm[0] in cover), default=1.0)


def _needed_arms(group: Sequence[FailingLink], cover: frozenset[str]) -> set[Arm]:
    """The arms of the cover that are really to blame.

    A direction is blamed only if some link has no better or equal explanation in another host: a host that
    cannot be reached is not also guilty of failing to reach another host that cannot be reached.
    """
    best_arms: list[set[Arm]] = [
        {arm for arm, share in fault.arms.items() if arm[0] in cover and share == _least_doubt(fault, cover)}
        for fault in group
    ]
    alone = {arm[:2] for arms in best_arms if len(arms) == 1 for arm in arms}
    used = {arm for arms in best_arms for arm in arms if arm[:2] in alone}
    return used.union(*(arms for arms in best_arms if not arms & used))
