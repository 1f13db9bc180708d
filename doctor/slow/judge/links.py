"""Slow and lossy links, asked for first: who is behind one is late without any fault."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median_low

from doctor.slow.evidence import RankLink
from doctor.slow.judge.judgement import Lag, SlowCulprit
from doctor.slow.judge.series import Sampled
from doctor.slow.judge.words import percent
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold

BIG = 50_000
"""Bytes a second of a connection that carries data of the training."""
TIMES_SLOWER = 20
BUSY, MOSTLY = 0.15, 0.5
"""The share of the time that a slow link has data to send; all of them, if the network may be the limit."""
CARRIES = 0.25
"""A link that is slow by itself carries at least this share of its rate while it has data to send; one whose
other end reads late carries far less.
"""
AGAIN = 10.0
LOSES, SEGMENT = 0.002, 1_448
"""Segments a second that a lossy link sends once more, and their share: crowded hosts do so for 0.05 %."""
TIMES_MORE = 5
MEGA = 1e6 / 8


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction between two hosts: its connections in all rounds."""

    of: str
    to: str
    rate: float
    busy: float
    again: float
    """A second."""
    sent: float

    @property
    def is_limit(self) -> bool:
        """Whether it carries what its rate allows, while it has data to send."""
        return self.sent >= CARRIES * self.rate * self.busy


def slow_link(seen: Sampled) -> SlowCulprit | None:
    flows = [*_between_hosts(seen)]
    return _slow(flows) or _lossy(flows)


def network_words(seen: Sampled) -> str:
    """What the connections between hosts carry, if all of them nearly always have data to send."""
    flows = [flow for flow in _between_hosts(seen) if flow.sent >= BIG and flow.rate]
    if not flows or not all(flow.busy >= MOSTLY and flow.is_limit for flow in flows):
        return ""
    busy, rates = min(flow.busy for flow in flows), sorted(flow.rate / MEGA for flow in flows)
    carry = f"and carry {rates[0]:,.0f} to {rates[-1]:,.0f} Mbit/s"
    return f"the network may be the limit: all connections are busy {percent(busy)} of the time, {carry}"


def _slow(flows: list[Flow]) -> SlowCulprit | None:
    """The host that sends slowly to all others. Of two hosts, one direction is compared with the other."""
    big = grouped((flow.of, flow) for flow in flows if flow.sent >= BIG and flow.rate)
    rates = {host: min(each.rate for each in of) for host, of in big.items()}
    if len(rates) < 2:
        return None
    low = min(rates, key=lambda host: rates[host])
    others = min(rate for host, rate in rates.items() if host != low)
    busiest = max(big[low], key=lambda flow: flow.busy)
    busy = busiest.busy
    if max(each.rate for each in big[low]) * TIMES_SLOWER > others or busy < BUSY or not busiest.is_limit:
        return None
    to = tuple(dict.fromkeys(each.to for each in big[low]))
    own = f"carries {rates[low] / MEGA:,.0f} Mbit/s to {fold(to)} and is busy {percent(busy)} of the time"
    said = f"{own}; the others carry {others / MEGA:,.0f} or more"
    if len(rates) == 2:
        said = f"{own}; the other way it is {others / MEGA:,.0f}"
    if len(to) > 1 or any(each.to == to[0] and each.of != low and each.rate >= others for each in flows):
        return SlowCulprit(Lag.SLOW_LINK, low, (low,), sentence=said, share=busy, peers=to)
    said += ", so either end may be at fault"
    return SlowCulprit(Lag.SLOW_LINK, low, (low, *to), sentence=said, share=busy, peers=to)


def _lossy(flows: list[Flow]) -> SlowCulprit | None:
    """The link at the end that all lossy connections share."""
    top = max((flow.again for flow in flows if flow.again * SEGMENT >= LOSES * flow.sent), default=0.0)
    if top < AGAIN:
        return None
    lossy = [flow for flow in flows if flow.again * TIMES_MORE > top]
    ends = set.intersection(*({flow.of, flow.to} for flow in lossy))
    if not ends:
        return None
    again = sum(flow.again for flow in lossy)
    rest = max((flow.again for flow in flows if flow not in lossy), default=0.0)
    host = sorted(({flow.to for flow in lossy} & ends) or ends)[0]
    peers = tuple(sorted({end for flow in lossy for end in (flow.of, flow.to)} - {host}))
    ends_of = f"loses data between {fold((host,))} and {fold(peers)}"
    said = f"{ends_of}: {again:.0f} segments a second are sent once more; others at most {rest:.0f}"
    return SlowCulprit(Lag.LOSSY_LINK, host, (host,), sentence=said, peers=peers)


def _between_hosts(seen: Sampled) -> Iterator[Flow]:
    rounds = [(host, seen.round(host, number)) for host in seen.hosts for number in seen.rounds]
    links = grouped(
        ((host, link.local, link.peer), (one.seconds, link)) for host, one in rounds for link in one.links
    )
    homes = grouped((_address(local), host) for host, local, _ in links)
    for (host, _, peer), of in links.items():
        there = {*homes.get(_address(peer), ())}
        if len(there) == 1 and host not in there and not peer.startswith(("127.", "[::1]")):
            yield _flow(host, there.pop(), of)


def _flow(host: str, to: str, of: list[tuple[float, RankLink]]) -> Flow:
    seconds = sum(length for length, _ in of) or 1.0
    return Flow(
        host,
        to,
        median_low(link.rate for _, link in of),  # a slow link lets bursts pass
        min(1.0, sum(link.busy for _, link in of) / seconds),
        sum(link.again for _, link in of) / seconds,
        sum(link.sent for _, link in of) / seconds,
    )


def _address(end: str) -> str:
    return end.rpartition(":")[0]
