"""Connections that could not be made or broke, and chains of "A waits for B"."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from doctor.logs.judge.blame import LogBlame
from doctor.logs.judge.case import LogCase
from doctor.logs.judge.event import Event, explains
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.judge.parties import Key, bare, is_name, key
from doctor.logs.judge.words import titled, told, who
from doctor.logs.model import Party
from doctor.model import UNDECIDED, Confidence
from doctor.text.grouped import grouped
from doctor.waits import common_end

Pair = tuple[Key, Key]


def link(case: LogCase, heads: tuple[Party, ...] = (), alone: bool = False) -> LogBlame | None:
    """Blame both ends of a link, or, if there are several links, the end that all of them share. `heads`: the
    other end of lines that do not name one; `alone`: only the head itself came to the rendezvous.
    """
    events = case.of(SuspectKind.LINK)
    if not events:
        return None
    beside = [each for each in case.of(SuspectKind.CONFIRMS) if explains(each, events[0])]
    said = dict.fromkeys(each.sighting.taken.get("host") for each in beside)
    heads = heads or tuple(case.places.settled(Party(host=host), None) for host in said if host)
    at_head = _at_head(events, heads) if alone else None
    parties: dict[Key, Party] = {}
    pairs: list[Pair] = []
    of_end = {
        end: each.peers
        for each in case.of(SuspectKind.WAITS, SuspectKind.LINK)
        if each.peers
        for end in each.keys
    }
    for event in events:
        for one in event.who or (event.by,):
            if one.rank is None and one.host:  # a link joins hosts, whichever process meets its fault
                one = replace(one, pid=None)
            here = key(one, event.line.file)
            parties.setdefault(here, one)
            for peer in event.peers or of_end.get(here, heads):
                there = key(at_head or peer, event.line.file)
                parties.setdefault(there, at_head or peer)
                pairs.append((here, there))
    pairs = list(dict.fromkeys(pairs))
    head = events[0]
    title = titled(events, ends=not pairs)
    known = tuple(dict.fromkeys(told(each.who, each) for each in beside))
    if not pairs:
        named = tuple(each for each in parties.values() if key(each)[0] != "file")
        says = f"{who(named)}: {title}" if named else title
        if not head.sighting.taken.get("host"):
            known = ("the other end, which may be at fault as well, is not named", *known)
        return LogBlame(says, (), events, Confidence.SUSPECT, known)
    shared = common_end({frozenset(pair) for pair in pairs})
    if shared is not None:
        one = parties[shared]
        others = [parties[end] for end in dict.fromkeys(e for pair in pairs for e in pair) if end != shared]
        how = (f"{who(others)} had trouble with it, and with nobody else", *known)
        says = f"{who((one,))}: {_between(who(others), 'it', head)}: {title}"
        return LogBlame(says, (one,), events, Confidence.STRONG, how)
    if blamed := _named_by_most(pairs, parties):
        one, others, why = blamed
        says = f"{who((one,))}: {_between(who(others), 'it', head)}: {title}"
        return LogBlame(says, (one,), events, Confidence.STRONG, (why, *known))
    ones = [parties[here] for here, _ in pairs]
    peers = [parties[there] for _, there in pairs]
    says = f"{_between(who(ones), who(peers), head)}: {title}{UNDECIDED}"
    ends = tuple(dict.fromkeys((*ones, *peers)))
    if any(end[0] == "file" for pair in pairs for end in pair):
        ends = ()  # naming only the known end would accuse it alone
    return LogBlame(says, ends, events, Confidence.SUSPECT, known)


def _named_by_most(
    pairs: Iterable[Pair], parties: Mapping[Key, Party]
) -> tuple[Party, list[Party], str] | None:
    """The only end with which all hosts had trouble, or all but the one whose address it must be: that host
    alone names others.
    """
    reported = [(there, host) for here, there in pairs if (host := parties[here].host)]
    every = {host for _, host in reported}
    by = {there: {*hosts} for there, hosts in grouped(reported).items()}
    ends = [there for there, hosts in by.items() if len(hosts) > 1 and len(every - hosts) < 2]
    if len(ends) != 1:
        return None
    one, others = parties[ends[0]], [Party(host=host) for host in sorted(by[ends[0]])]
    why = f"{who(others)} had trouble with {who((one,))}"
    for host in every - by[ends[0]]:
        why += f", and {host} with others: the address is that of {host}"
        one = Party(host=host, address=bare(one.address)[0] if one.address else None)
    return one, others, why


def _at_head(events: Iterable[Event], heads: Collection[Party]) -> Party | None:
    """The head, with the address that all others tried to reach, if it is certain that this is its own."""
    named = {each.host for each in heads}
    sought = {peer.host for event in events for peer in event.peers}
    if len(named) != 1 or len(sought) != 1 or any(each and is_name(each) for each in sought):
        return None
    return Party(host=next(iter(named)), address=next(iter(sought)))


def _between(one: str, other: str, head: Event) -> str:
    tried = any(each in head.line.text for each in ("onnect", "route", "unreachable"))
    return f"{one} could not reach {other}" if tried else f"{one} had trouble with {other}"


def edges_of(events: Iterable[Event]) -> dict[Pair, Event]:
    found: dict[Pair, Event] = {}
    for event in events:
        for one in event.who:
            for peer in event.peers:
                found.setdefault((key(one, event.line.file), key(peer, event.line.file)), event)
    return found
