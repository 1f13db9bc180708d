"""Values in nft's JSON (numbers, names, prefixes, ranges and flags) as matchers of one field."""

import ipaddress
from typing import Any

from doctor.firewall import rules
from doctor.firewall.values import WORD, InterfaceNames, Interval, MaskedSpans, Spans

FIELD_BITS = {
    rules.Field.STATE: rules.STATES,
    rules.Field.FLAGS: rules.TCP_FLAGS,
    rules.Field.MARK: {},
    rules.Field.CTMARK: {},
}
WORDS: dict[rules.Field, dict[str, int]] = {
    rules.Field.STATE: rules.STATES,
    rules.Field.DIRECTION: rules.DIRECTIONS,
    rules.Field.PACKET_TYPE: rules.PACKET_TYPES,
    rules.Field.FLAGS: rules.TCP_FLAGS,
    rules.Field.FAMILY: {"ipv4": 4, "ipv6": 6, "ip": 4, "ip6": 6, "arp": 0, "vlan": 0, "bridge": 0},
    rules.Field.SOURCE_TYPE: rules.ADDRESS_TYPES,
    rules.Field.DEST_TYPE: rules.ADDRESS_TYPES,
    rules.Field.PROTO: {**rules.PROTOCOLS, "comp": 108, "pim": 103, "hopopt": 0, "l2tp": 115},
}  # fmt: skip


def element_matcher(field: rules.Field, value: Any) -> rules.Matcher:
    """What one value stands for, or None if it was not understood."""
    if field in (rules.Field.IIF, rules.Field.OIF):
        return _names(value)
    if isinstance(value, list) or (isinstance(value, dict) and "|" in value):
        bits = flag_bits(field, value)
        return None if bits is None else Spans.of([(bits, bits)])
    interval = _interval(field, value)
    if interval is None:
        return None
    spans = Spans.of([interval])
    return MaskedSpans(WORD, spans) if field in FIELD_BITS and field is not rules.Field.STATE else spans


def _names(value: Any) -> rules.Matcher:
    """An interface's name. A bare number is the index of a removed interface; its new owner is unknown."""
    if not isinstance(value, str) or not value or value.isdigit():
        return None
    return InterfaceNames.of(value, "*")


def _interval(field: rules.Field, value: Any) -> Interval | None:
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inside),) = value.items()
        if kind == "range" and isinstance(inside, list) and len(inside) == 2:
            low, high = _interval(field, inside[0]), _interval(field, inside[1])
            return None if low is None or high is None else (low[0], high[1])
        if kind == "prefix" and isinstance(inside, dict) and field in rules.ADDRESSES:
            return _prefix(inside.get("addr"), inside.get("len"))
        return None
    if field in rules.ADDRESSES:
        return _prefix(value, None)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return (value, value) if 0 <= value <= WORD and field is not rules.Field.FAMILY else None
    number = WORDS.get(field, {}).get(value) if isinstance(value, str) else None
    return None if number is None else (number, number)


def _prefix(address: Any, length: Any) -> Interval | None:
    if not isinstance(address, str) or "/" in address or not (length is None or type(length) is int):
        return None
    try:
        net = ipaddress.ip_network(address if length is None else f"{address}/{length}", strict=False)
    except ValueError:
        return None
    return int(net.network_address), int(net.broadcast_address)


def flag_bits(field: rules.Field, value: Any) -> int | None:
    """The bits of one flag, of a list of flags, of flags joined by `|`, or of a number."""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("|"), list):
        value = value["|"]
    total = 0
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, bool):
            return None
        if isinstance(one, dict):
            bits = flag_bits(field, one) if "|" in one else None
        elif isinstance(one, int):
            bits = one if 0 <= one <= WORD else None
        else:
            bits = FIELD_BITS.get(field, {}).get(one) if isinstance(one, str) else None
        if bits is None:
            return None
        total |= bits
    return total
