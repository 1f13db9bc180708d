"""The words of an iptables-save line: quoting, options with their values, numbers and addresses."""

import ipaddress
import re
from dataclasses import dataclass

from doctor.firewall.values import Interval, Spans

TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(?=\s|$)|([^\s"]\S*)')
ESCAPED = re.compile(r"\\(.)")
OPTION = re.compile(r"-\D")


@dataclass(frozen=True, slots=True)
class IptablesWord:
    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class IptablesOption:
    """`! --name value value`; the values before any option have an empty name."""

    name: str
    values: tuple[str, ...] = ()
    negated: bool = False

    @property
    def value(self) -> str:
        return " ".join(self.values)


def split(line: str) -> list[IptablesWord] | None:
    """The words of a line, or None if its quotes do not close."""
    words: list[IptablesWord] = []
    position = 0
    while position < len(line):
        if line[position].isspace():
            position += 1
            continue
        match = TOKEN.match(line, position)
        if match is None:
            return None
        quoted = match[1] is not None
        words.append(IptablesWord(ESCAPED.sub(r"\1", match[1]), True) if quoted else IptablesWord(match[2]))
        position = match.end()
    return words


def options(words: list[IptablesWord]) -> list[IptablesOption]:
    """The words grouped by the option they belong to."""
    found: list[IptablesOption] = []
    negated = False
    for word in words:
        if word.text == "!" and not word.quoted:
            negated = True
        elif OPTION.match(word.text) and not word.quoted:
            found.append(IptablesOption(word.text, (), negated))
            negated = False
        elif found and found[-1].name:
            last = found[-1]
            found[-1] = IptablesOption(last.name, (*last.values, word.text), last.negated or negated)
            negated = False
        else:
            found.append(IptablesOption("", (word.text,), negated))
            negated = False
    return found


def number(text: str) -> int | None:
    """A decimal or hexadecimal number of at most 32 bits."""
    try:
        value = int(text, 0) if len(text) < 20 else -1
    except ValueError:
        return None
    return value if 0 <= value <= 0xFFFFFFFF else None


def ports(text: str) -> Spans | None:
    """`22`, `1000:2000`, `:1023`, and lists of them."""
    intervals: list[Interval] = []
    for item in text.split(","):
        low, colon, high = item.partition(":")
        first = number(low or ("0" if colon else ""))
        last = number(high or ("65535" if colon else low))
        if first is None or last is None:
            return None
        intervals.append((first, last))
    return Spans.of(intervals)


def network(text: str) -> Spans | None:
    """An address with a prefix length or mask; None if the mask has holes, or if it is not an address."""
    mask = text.partition("/")[2]
    try:
        net = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
    if mask not in ("", str(net.prefixlen), str(net.netmask)):
        return None  # Python also takes the bits that do not count
    return Spans.of([(int(net.network_address), int(net.broadcast_address))])


def address_range(text: str) -> Spans | None:
    """`10.0.0.1-10.0.0.9`, or one address."""
    low, dash, high = text.partition("-")
    try:
        return Spans.of([(int(ipaddress.ip_address(low)), int(ipaddress.ip_address(high if dash else low)))])
    except ValueError:
        return None


def masked(text: str) -> tuple[int, int] | None:
    """`value/mask`; without a mask, all bits count."""
    value, slash, mask = text.partition("/")
    parsed, bits = number(value), number(mask) if slash else 0xFFFFFFFF
    return None if parsed is None or bits is None else (parsed, bits)
