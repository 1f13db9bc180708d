"""The conditions of iptables' match modules on a TCP packet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from doctor.firewall import rules
from doctor.firewall.iptables_tokens import IptablesOption, address_range, masked, network, number, ports
from doctor.firewall.values import InterfaceNames, MaskedSpans, Spans

EXTRA_HEADERS = ("rt", "frag", "hbh", "dst", "mh")
"""IPv6 headers that a plain TCP packet does not have; without them these modules never match."""
REASONS = rules.WORDS["matches of iptables"]
FIXED = frozenset({"owner", "mac"})
"""Modules of REASONS that treat every packet from one host to another alike."""


def header(given: list[IptablesOption]) -> list[rules.Step]:
    """The matches before any -m: addresses, interfaces, protocol."""
    return [_one(option, HEADER) for option in given]


def match_module(name: str, given: list[IptablesOption]) -> list[rules.Step]:
    """The conditions of one `-m name …`: unknown options make the match a doubt, never a guess."""
    if name == "comment":
        return []
    if name == "set":
        sets = (option.values[0] for option in given if option.name == "--match-set" and option.values)
        return [rules.DoubtfulCondition(f"the ipset {next(sets, '')}, which was not read")]
    if name == "rpfilter":
        return [rules.Compare((), ((),), negate=any(option.name == "--invert" for option in given))]
    if name in EXTRA_HEADERS:
        return [rules.Compare((), ((),), negate=True)]
    known = MODULES.get(name)
    if known is None:
        return [rules.DoubtfulCondition(REASONS.get(name, f"the match `{name}`"), changes_with_traffic(name))]
    steps = [_one(option, known) for option in given]
    return steps or ([] if name in rules.PROTOCOLS else [rules.DoubtfulCondition(f"the match `{name}`")])


def changes_with_traffic(name: str) -> bool:
    """Whether a match module may hold for one packet of a job and not for the next."""
    return name in REASONS and name not in FIXED


Reader = Callable[[IptablesOption], "rules.Step | None"]


def _one(option: IptablesOption, known: dict[str, Reader]) -> rules.Step:
    read = known.get(option.name)
    step = read(option) if read is not None else None
    return step or rules.DoubtfulCondition(f"the option `{option.name} {option.value}`".replace(" `", "`"))


def _compare(field: rules.Field, matcher: rules.Matcher, option: IptablesOption) -> rules.Step | None:
    return None if matcher is None else rules.Compare((field,), ((matcher,),), option.negated)


def _is(field: rules.Field, read: Callable[[str], rules.Matcher]) -> Reader:
    """A reader for a value that one field of the packet is compared with."""
    return lambda option: _compare(field, read(option.value), option)


def _protocol(option: IptablesOption) -> rules.Step | None:
    name = option.value.lower()
    if name in ("all", "0"):
        return rules.Compare((), ((),), option.negated)
    value = number(name) if name.isdigit() else rules.PROTOCOLS.get(name)
    return None if value is None else _compare(rules.Field.PROTO, Spans.of([(value, value)]), option)


def _one_of(numbers: dict[str, int]) -> Callable[[str], Spans | None]:
    """Reads a list of names; the packet must have one of them."""

    def read(text: str) -> Spans | None:
        wanted = [numbers.get(name.lower()) for name in text.split(",")]
        return None if None in wanted else Spans.of([(each, each) for each in wanted if each is not None])

    return read


def _either_port(option: IptablesOption) -> rules.Step | None:
    spans = ports(option.value)
    if spans is None:
        return None
    every = Spans.of([(0, 65535)])
    fields = (rules.Field.SPORT, rules.Field.DPORT)
    return rules.Compare(fields, ((spans, every), (every, spans)), option.negated)


def _mark(text: str) -> MaskedSpans | None:
    pair = masked(text)
    return None if pair is None else MaskedSpans(pair[1], Spans.of([(pair[0], pair[0])]))


def _flags(option: IptablesOption) -> rules.Step | None:
    match [0x17, 0x02] if option.name == "--syn" else [_flag_bits(names) for names in option.values]:
        case [int(asked), int(wanted)]:
            return _compare(rules.Field.FLAGS, MaskedSpans(asked, Spans.of([(wanted, wanted)])), option)
    return None


def _flag_bits(names: str) -> int | None:
    if names in ("NONE", "ALL"):
        return 0 if names == "NONE" else 0x3F
    bits = [rules.TCP_FLAGS.get(name.lower()) for name in names.split(",")]
    return None if None in bits else sum({bit for bit in bits if bit is not None})


_INTERFACE = partial(InterfaceNames.of, wildcard="+")
_PORTS: dict[str, Reader] = {
    "--dport": _is(rules.Field.DPORT, ports), "--destination-port": _is(rules.Field.DPORT, ports),
    "--sport": _is(rules.Field.SPORT, ports), "--source-port": _is(rules.Field.SPORT, ports),
}  # fmt: skip
HEADER: dict[str, Reader] = {
    "-s": _is(rules.Field.SOURCE, network), "-d": _is(rules.Field.DEST, network),
    "-i": _is(rules.Field.IIF, _INTERFACE), "-o": _is(rules.Field.OIF, _INTERFACE), "-p": _protocol,
    "-f": lambda option: rules.Compare((), ((),), negate=not option.negated),
}  # fmt: skip
MODULES: dict[str, dict[str, Reader]] = {
    "tcp": {**_PORTS, "--syn": _flags, "--tcp-flags": _flags},
    **dict.fromkeys(("udp", "sctp", "dccp", "udplite"), _PORTS),
    "icmp": {}, "icmp6": {}, "icmpv6": {},
    "multiport": {
        "--dports": _is(rules.Field.DPORT, ports), "--sports": _is(rules.Field.SPORT, ports),
        "--ports": _either_port,
    },
    "state": {"--state": _is(rules.Field.STATE, _one_of(rules.STATES))},
    "conntrack": {
        "--ctstate": _is(rules.Field.STATE, _one_of(rules.STATES)),
        "--ctdir": _is(rules.Field.DIRECTION, _one_of(rules.DIRECTIONS)),
    },
    "addrtype": {
        "--src-type": _is(rules.Field.SOURCE_TYPE, _one_of(rules.ADDRESS_TYPES)),
        "--dst-type": _is(rules.Field.DEST_TYPE, _one_of(rules.ADDRESS_TYPES)),
    },
    "iprange": {
        "--src-range": _is(rules.Field.SOURCE, address_range),
        "--dst-range": _is(rules.Field.DEST, address_range),
    },
    "pkttype": {"--pkt-type": _is(rules.Field.PACKET_TYPE, _one_of(rules.PACKET_TYPES))},
    "mark": {"--mark": _is(rules.Field.MARK, _mark)},
    "connmark": {"--mark": _is(rules.Field.CTMARK, _mark)},
}  # fmt: skip
