"""The conditions of iptables' match modules on a TCP packet."""

from __future__ import annotations

from collections.abc import Callable

from doctor.firewall.iptables_tokens import IptablesOption, address_range, masked, network, number, ports
from doctor.firewall.rules import (
    ADDRESS_TYPES,
    DIRECTIONS,
    PACKET_TYPES,
    PROTOCOLS,
    STATES,
    TCP_FLAGS,
    WORDS,
    Compare,
    DoubtfulCondition,
    Field,
    Matcher,
    Step,
)
from doctor.firewall.values import InterfaceNames, MaskedSpans, Spans

EXTRA_HEADERS = ("rt", "frag", "hbh", "dst", "mh")
"""IPv6 headers that a plain TCP packet does not have; without them these modules never match."""
REASONS = WORDS["matches of iptables"]
FIXED = frozenset({"owner", "mac"})
"""Modules of REASONS that treat every packet from one host to another alike."""


def header(given: list[IptablesOption]) -> list[Step]:
    """The matches before any -m: addresses, interfaces, protocol."""
    return [_one(option, HEADER) for option in given]


def match_module(name: str, given: list[IptablesOption]) -> list[Step]:
    """The conditions of one `-m name …`: unknown options make the match a doubt, never a guess."""
    if name == "comment":
        return []
    if name == "set":
        sets = (option.values[0] for option in given if option.name == "--match-set" and option.values)
        return [DoubtfulCondition(f"the ipset {next(sets, '')}, which was not read")]
    if name == "rpfilter":
        return [Compare((), ((),), negate=any(option.name == "--invert" for option in given))]
    if name in EXTRA_HEADERS:
        return [Compare((), ((),), negate=True)]
    known = MODULES.get(name)
    if known is None:
        return [DoubtfulCondition(REASONS.get(name, f"the match `{name}`"), changes_with_traffic(name))]
    steps = [_one(option, known) for option in given]
    return steps or ([] if name in PROTOCOLS else [DoubtfulCondition(f"the match `{name}`")])


def changes_with_traffic(name: str) -> bool:
    """Whether a match module may hold for one packet of a job and not for the next."""
    return name in REASONS and name not in FIXED


Reader = Callable[[IptablesOption], "Step | None"]


def _one(option: IptablesOption, known: dict[str, Reader]) -> Step:
    read = known.get(option.name)
    step = read(option) if read is not None else None
    return step or DoubtfulCondition(f"the option `{option.name} {option.value}`".replace(" `", "`"))


def _compare(field: Field, matcher: Matcher, option: IptablesOption) -> Step | None:
    return None if matcher is None else Compare((field,), ((matcher,),), option.negated)


def _spans(field: Field, read: Callable[[str], Spans | None]) -> Reader:
    return lambda option: _compare(field, read(option.value), option)


def _interface(field: Field) -> Reader:
    return lambda option: _compare(field, InterfaceNames.of(option.value, "+"), option)


def _protocol(option: IptablesOption) -> Step | None:
    name = option.value.lower()
    if name in ("all", "0"):
        return Compare((), ((),), option.negated)
    value = number(name) if name.isdigit() else PROTOCOLS.get(name)
    return None if value is None else _compare(Field.PROTO, Spans.of([(value, value)]), option)


def _one_of(field: Field, numbers: dict[str, int]) -> Reader:
    """A reader for a list of names; the packet must have one of them."""

    def read(option: IptablesOption) -> Step | None:
        wanted = [numbers.get(name.lower()) for name in option.value.split(",")]
        if None in wanted:
            return None
        return _compare(field, Spans.of([(value, value) for value in wanted if value is not None]), option)

    return read


def _either_port(option: IptablesOption) -> Step | None:
    spans = ports(option.value)
    if spans is None:
        return None
    every = Spans.of([(0, 65535)])
    fields = (Field.SPORT, Field.DPORT)
    return Compare(fields, ((spans, every), (every, spans)), option.negated)


def _mark(field: Field) -> Reader:
    def read(option: IptablesOption) -> Step | None:
        pair = masked(option.value)
        if pair is None:
            return None
        return _compare(field, MaskedSpans(pair[1], Spans.of([(pair[0], pair[0])])), option)

    return read


def _flags(option: IptablesOption) -> Step | None:
    bits = [0x17, 0x02] if option.name == "--syn" else [_flag_bits(names) for names in option.values]
    match bits:
        case [int(asked), int(wanted)]:
            return _compare(Field.FLAGS, MaskedSpans(asked, Spans.of([(wanted, wanted)])), option)
    return None


def _flag_bits(names: str) -> int | None:
    if names in ("NONE", "ALL"):
        return 0 if names == "NONE" else 0x3F
    bits = [TCP_FLAGS.get(name.lower()) for name in names.split(",")]
    return None if None in bits else sum({bit for bit in bits if bit is not None})


_PORTS: dict[str, Reader] = {
    "--dport": _spans(Field.DPORT, ports), "--destination-port": _spans(Field.DPORT, ports),
    "--sport": _spans(Field.SPORT, ports), "--source-port": _spans(Field.SPORT, ports),
}  # fmt: skip
HEADER: dict[str, Reader] = {
    "-s": _spans(Field.SOURCE, network), "-d": _spans(Field.DEST, network),
    "-i": _interface(Field.IIF), "-o": _interface(Field.OIF), "-p": _protocol,
    "-f": lambda option: Compare((), ((),), negate=not option.negated),
}  # fmt: skip
MODULES: dict[str, dict[str, Reader]] = {
    "tcp": {**_PORTS, "--syn": _flags, "--tcp-flags": _flags},
    **dict.fromkeys(("udp", "sctp", "dccp", "udplite"), _PORTS),
    "icmp": {}, "icmp6": {}, "icmpv6": {},
    "multiport": {
        "--dports": _spans(Field.DPORT, ports), "--sports": _spans(Field.SPORT, ports),
        "--ports": _either_port,
    },
    "state": {"--state": _one_of(Field.STATE, STATES)},
    "conntrack": {"--ctstate": _one_of(Field.STATE, STATES), "--ctdir": _one_of(Field.DIRECTION, DIRECTIONS)},
    "addrtype": {
        "--src-type": _one_of(Field.SOURCE_TYPE, ADDRESS_TYPES),
        "--dst-type": _one_of(Field.DEST_TYPE, ADDRESS_TYPES),
    },
    "iprange": {
        "--src-range": _spans(Field.SOURCE, address_range), "--dst-range": _spans(Field.DEST, address_range),
    },
    "pkttype": {"--pkt-type": _one_of(Field.PACKET_TYPE, PACKET_TYPES)},
    "mark": {"--mark": _mark(Field.MARK)},
    "connmark": {"--mark": _mark(Field.CTMARK)},
}  # fmt: skip
