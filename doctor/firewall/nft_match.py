"""The conditions of an nft `match` on a TCP packet, from its JSON form: fields, operators, sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from doctor.firewall.nft_value import FIELD_BITS, element_matcher, flag_bits
from doctor.firewall.rules import TCP, WORDS, Compare, DoubtfulCondition, Field, Matcher, Step
from doctor.firewall.values import WORD, MaskedSpans, Spans

META = {name: Field[field] for name, field in WORDS["meta"].items()}
PAYLOAD = {tuple(name.split()): Field[field] for name, field in WORDS["payload"].items()}
CT = {"state": Field.STATE, "direction": Field.DIRECTION, "mark": Field.CTMARK}
NEVER = Compare((), ((),), negate=True)
FAMILIES = {"ip": 4, "ip6": 6, "icmp": 4, "igmp": 4, "icmpv6": 6}
OTHER_PROTOCOLS = frozenset(
    {"udp", "udplite", "sctp", "dccp", "ah", "esp", "comp", "icmp", "icmpv6", "igmp", "arp"}
)
REASONS = WORDS["matches of nft"]
VARYING = frozenset({"chance", "the time of day", "the day", "the length of the packet"})
"""Those of REASONS that may hold for one packet and not for the next."""


@dataclass(frozen=True, slots=True)
class NamedSet:
    """The elements of a set or a map; `changing` if packets themselves add to it."""

    name: str
    elements: tuple[Any, ...]
    changing: bool = False


def members(data: Any, sets: Mapping[str, NamedSet]) -> NamedSet | None:
    """The elements that `@name`, or an inline set, stands for."""
    if isinstance(data, str) and data.startswith("@"):
        return sets.get(data[1:])
    if isinstance(data, dict) and isinstance(data.get("set"), list):
        return NamedSet("", tuple(data["set"]))
    if isinstance(data, dict) and isinstance(data.get("set"), str):
        return sets.get(data["set"].removeprefix("@"))
    return None


def match_steps(body: Any, sets: Mapping[str, NamedSet]) -> list[Step]:
    """The conditions of one `match`: first those that its key implies, then the comparison itself."""
    if not isinstance(body, dict):
        return [DoubtfulCondition("a match that was not understood")]
    operator, left, right = body.get("op", "=="), body.get("left"), body.get("right")
    return [*key_guards(left), _special(operator, left, right) or _plain(operator, left, right, sets)]


def _plain(operator: Any, left: Any, right: Any, sets: Mapping[str, NamedSet]) -> Step:
    fields, listed = key_fields(left), members(right, sets)
    if fields is None:
        return _doubt(left)
    if listed is not None:
        return _in_set(fields, listed, operator)
    if isinstance(right, str) and right.startswith("@"):
        return DoubtfulCondition(f"the set {right}, which is not listed")
    return _single(fields, operator, left, right)


def _in_set(fields: tuple[Field, ...], listed: NamedSet, operator: Any) -> Step:
    why = f"the set @{listed.name}, which changes with the traffic"
    if listed.changing:
        return DoubtfulCondition(why, varies=True)
    if operator not in ("==", "!=", "in"):
        return DoubtfulCondition(f"the operator {operator!r} on a set")
    if "*" in [element for element in listed.elements if isinstance(element, str)]:
        return Compare((), ((),), operator == "!=")
    elements = tuple(key_matchers(fields, element) for element in listed.elements)
    return Compare(fields, _merge_spans(elements), operator == "!=", why)


def _merge_spans(elements: tuple[tuple[Matcher, ...], ...]) -> tuple[tuple[Matcher, ...], ...]:
    """One sorted matcher instead of thousands, if each element is an interval of one field."""
    single = [element[0] for element in elements if len(element) == 1 and isinstance(element[0], Spans)]
    if not elements or len(single) != len(elements):
        return elements
    return ((Spans.of(span for one in single for span in zip(one.lows, one.highs, strict=True)),),)


def _single(fields: tuple[Field, ...], operator: Any, left: Any, right: Any) -> Step:
    name = fields[0]
    if name in FIELD_BITS and len(fields) == 1 and operator in ("in", "!"):
        bits = flag_bits(name, right)
        if bits is None:
            return DoubtfulCondition("flags that were not understood")
        return Compare(fields, ((MaskedSpans(bits, Spans.of([(1, WORD)])),),), operator == "!")
    matchers = key_matchers(fields, right)
    if operator in ("<", ">", "<=", ">=") and len(matchers) == 1 and isinstance(matchers[0], Spans):
        if len(matchers[0].lows) != 1 or matchers[0].lows != matchers[0].highs:
            return DoubtfulCondition("a comparison that was not understood")
        at, top = matchers[0].lows[0], 1 << 128
        span = {"<": (0, at - 1), "<=": (0, at), ">": (at + 1, top), ">=": (at, top)}[operator]
        return Compare(fields, ((Spans.of([span]),),))
    if operator not in ("==", "!=", "in"):
        return DoubtfulCondition(f"the comparison {operator!r}")
    return Compare(fields, (matchers,), operator == "!=", _why(left))


def _special(operator: Any, left: Any, right: Any) -> Step | None:
    """Masks, routes and connection status, which are not plain fields."""
    if not isinstance(left, dict) or len(left) != 1:
        return None
    ((name, inside),) = left.items()
    if name == "&" and isinstance(inside, list) and len(inside) == 2:
        fields = key_fields(inside[0])
        if fields is None or len(fields) != 1:
            return _doubt(inside[0])
        mask, value = flag_bits(fields[0], inside[1]), flag_bits(fields[0], right)
        if mask is None or value is None or operator not in ("==", "!="):
            return DoubtfulCondition("a mask that was not understood")
        return Compare(fields, ((MaskedSpans(mask, Spans.of([(value, value)])),),), operator == "!=")
    if name == "exthdr" and isinstance(inside, dict):
        # A plain TCP packet has no extra IPv6 headers, so a condition on their fields never matches.
        exists = "field" in inside or right is True
        return Compare((), ((),), negate=exists == (operator != "!=") or "field" in inside)
    if name == "fib" and isinstance(inside, dict) and str(inside.get("result", "")).startswith("oif"):
        # The check against forged sources: an honest peer's packet arrives on the interface of its route.
        missing = right is False or right in (0, "0")
        if (missing or right is True) and operator in ("==", "!="):
            return Compare((), ((),), negate=missing == (operator == "=="))
        return DoubtfulCondition("the route back to the sender")
    if name == "ct" and isinstance(inside, dict) and inside.get("key") == "status":
        wanted = right if isinstance(right, list) else [right]
        if operator == "in" and all(one in ("dnat", "snat") for one in wanted):
            return NEVER
    return None


def key_fields(key: Any) -> tuple[Field, ...] | None:
    """The fields of a key, several for a concatenation; None if one of them is not supported."""
    if not isinstance(key, dict) or len(key) != 1:
        return None
    ((kind, inside),) = key.items()
    if kind == "concat" and isinstance(inside, list):
        parts = [key_fields(part) for part in inside]
        single = [part[0] for part in parts if part is not None and len(part) == 1]
        return tuple(single) if single and len(single) == len(parts) else None
    if not isinstance(inside, dict):
        return None
    found: Field | None = None
    if kind == "meta":
        found = META.get(str(inside.get("key")))
    elif kind == "payload":
        found = PAYLOAD.get((str(inside.get("protocol")), str(inside.get("field"))))
    elif kind == "ct" and "dir" not in inside:
        found = CT.get(str(inside.get("key")))
    elif kind == "fib" and inside.get("result") == "type":
        flags = inside.get("flags")
        (wanted,) = flags if isinstance(flags, list) and len(flags) == 1 else (flags,)
        found = {"daddr": Field.DEST_TYPE, "saddr": Field.SOURCE_TYPE}.get(str(wanted))
    return None if found is None else (found,)


def key_guards(key: Any) -> list[Step]:
    """The conditions that a key implies: `ip saddr` is only about IPv4, `udp dport` only about UDP."""
    if not isinstance(key, dict):
        return []
    guards: list[Step] = []
    for kind, inside in key.items():
        if kind in ("concat", "&", "|", "^", "<<", ">>") and isinstance(inside, list):
            guards += [guard for part in inside for guard in key_guards(part)]
        elif kind == "payload" and isinstance(inside, dict):
            protocol = str(inside.get("protocol"))
            if protocol in FAMILIES:
                guards.append(Compare((Field.FAMILY,), ((Spans.of([(FAMILIES[protocol],) * 2]),),)))
            if protocol in OTHER_PROTOCOLS:
                guards.append(NEVER)
            elif protocol == "tcp":
                guards.append(Compare((Field.PROTO,), ((Spans.of([(TCP, TCP)]),),)))
    return guards


def key_matchers(fields: tuple[Field, ...], value: Any) -> tuple[Matcher, ...]:
    """One matcher per field for one element; None for a part that was not understood."""
    if isinstance(value, dict) and isinstance(value.get("elem"), dict):
        inner = value["elem"]
        fleeting = "expires" in inner or "timeout" in inner
        return (None,) * len(fields) if fleeting else key_matchers(fields, inner.get("val"))
    if len(fields) == 1:
        return (element_matcher(fields[0], value),)
    parts = value.get("concat") if isinstance(value, dict) else None
    if not isinstance(parts, list) or len(parts) != len(fields):
        return (None,) * len(fields)
    return tuple(element_matcher(name, part) for name, part in zip(fields, parts, strict=True))


def _doubt(key: Any) -> DoubtfulCondition:
    why = _why(key)
    return DoubtfulCondition(why, why in VARYING)


def _why(key: Any) -> str:
    """What a condition on this key depends on, in words."""
    if isinstance(key, dict) and len(key) == 1:
        ((kind, inside),) = key.items()
        name = inside.get("key") or inside.get("field") if isinstance(inside, dict) else None
        reason = REASONS.get(str(name)) or REASONS.get(str(kind))
        return reason or " ".join(str(word) for word in ("the value of", kind, name) if word)
    return "a value that was not understood"
