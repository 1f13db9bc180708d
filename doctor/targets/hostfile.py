"""Hostfiles -> hosts, in any of the dialects that launchers read, recognised line by line.

    node1                        plain; also user@node1, 10.0.0.1, fd00::1, [fd00::1]
    node[1-4] slots=8            OpenMPI and DeepSpeed, here with a node set (also max_slots=, user=)
    node1:8                      MPICH and Intel MPI: a number of slots, never a port
    node1, node2                 also several, separated by commas
    node1 ifhn=10.1.0.1          MPICH: the address that ranks connect to
    # a comment                  on a line of its own or after a host

Slots become the ranks of the host; if a host is on several lines, they are added up, as in OpenMPI. Plain
lines do not give slots, unless one of them is repeated: then each line is one slot, as in a PBS node
file. Ports and jump hosts cannot be given here; they go into the inventory.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

from doctor.errors import Mistake, UsageError, suggest
from doctor.model import Host
from doctor.targets.hostsettings import check_ranks
from doctor.targets.inputkind import InputKind, refuse_other
from doctor.text.nodeset import MOST_HOSTS, check_host, check_user, split_number, unfold_users
from doctor.text.textfile import read_text, refuse, said, shown

MOST_NAMES = 3 * MOST_HOSTS
"""The most names in a file: a host may be on as many lines as it has slots."""

_KEYS = {
    **dict.fromkeys(("slots", "cpu", "cpus", "count"), "slots"),
    **dict.fromkeys(("max_slots", "max-slots", "slots_max", "slots-max"), "max_slots"),
    **dict.fromkeys(("user", "username"), "user"),
    "ifhn": "ifhn",
}
_EQUALS = re.compile(r"[ \t]*=[ \t]*")
_COMMA = re.compile(r",[ \t]+")
_BLANKS = re.compile(r"[ \t]+")  # str.split() treats control characters as blanks


@dataclass(frozen=True, slots=True)
class _HostfileLine:
    """The values that one line gives to each of its hosts."""

    number: int
    hosts: tuple[str, ...]
    user: str | None
    slots: int | None
    data: str | None


def read_hostfile(path: Path) -> tuple[Host, ...]:
    """The hosts in the order of the file, each once. Raises InputErrors with every mistake of the file."""
    file = str(path)
    lines: list[_HostfileLine] = []
    mistakes: list[Mistake] = []
    room = MOST_NAMES
    whole = read_text(path)
    for number, raw in enumerate(whole.split("\n"), start=1):
        text = _COMMA.sub(",", raw.partition("#")[0].strip(" \t\r"))
        if not text:
            continue
        try:
            read = _read_line(text, number)
        except UsageError as error:
            mistakes.append(Mistake(file, number, said(error)))
            continue
        lines += read
        room -= sum(len(line.hosts) for line in read)
        if room < 0:
            mistakes.append(Mistake(file, number, f"names more than {MOST_NAMES:,} hosts: is that a typo?"))
            break
    if not lines and not mistakes:
        mistakes.append(Mistake(file, None, "names no host"))
    if mistakes:
        refuse_other(file, whole, InputKind.HOSTFILE)
    hosts, conflicts = _merge(lines, file)
    refuse(mistakes + conflicts)
    return hosts


def _read_line(text: str, number: int) -> list[_HostfileLine]:
    first, *words = _BLANKS.split(_EQUALS.sub("=", text))
    if "=" in first:
        raise UsageError(f"{shown(first)}: a line must begin with a host, and this is not one")
    values = _read_words(words)
    target, after_colon = split_number(first)
    if after_colon is not None:
        if "slots" in values:
            raise UsageError(f"{shown(text)} gives the slots twice")
        values["slots"] = after_colon
    slots = _slots(values["slots"], after_colon is not None) if "slots" in values else None
    most = _slots(values["max_slots"], False) if "max_slots" in values else None
    if most is not None and slots is not None and most < slots:
        raise UsageError(f"{shown(text)}: max_slots is less than slots")
    user = check_user(values["user"]) if "user" in values else None
    data = check_host(values["ifhn"]) if "ifhn" in values else None
    pieces = unfold_users(target)
    if data is not None and sum(len(piece.hosts) for piece in pieces) > 1:
        raise UsageError(f"{shown(text)}: several hosts cannot share one address (ifhn)")
    return [_HostfileLine(number, piece.hosts, piece.user or user, slots, data) for piece in pieces]


def _read_words(words: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        known = _KEYS.get(key.lower())
        if not equals and word.isdigit():
            raise UsageError(f"{shown(word)} has no key", f"for that many ranks write slots={word[:9]}")
        if known is None or not equals:
            hint = suggest(key.lower(), _KEYS) or "a line is: NAME [slots=N]"
            raise UsageError(f"unknown word {shown(word)}", hint)
        if known in values:
            raise UsageError(f"{shown(word)} gives {known} twice")
        values[known] = value
    return values


def _slots(text: str, after_colon: bool) -> int:
    try:
        return check_ranks(text)  # a larger number after ':' is most likely a port
    except UsageError as error:
        hint = "'host:8' means 8 slots; a port goes into the inventory" if after_colon else ""
        raise UsageError(f"slots: {error.message}", hint) from None


def _merge(lines: list[_HostfileLine], file: str) -> tuple[tuple[Host, ...], list[Mistake]]:
    """One host for all the lines that name it, and the lines that contradict each other."""
    # Whether a plain line is one slot: only a repeated plain host shows that the file means this.
    plain = [name for line in lines if line.slots is None for name in line.hosts]
    per_line = len(set(plain)) < len(plain)
    hosts: dict[str, Host] = {}
    mistakes: list[Mistake] = []
    for line in lines:
        slots = line.slots if line.slots is not None or not per_line else 1
        for name in line.hosts:
            old = hosts.get(name)
            if old is None:
                hosts[name] = Host(name, name, user=line.user, data=line.data, ranks=slots)
                continue
            for what, before, now in (("user", old.user, line.user), ("ifhn", old.data, line.data)):
                if before and now and before != now:
                    message = f"{what} of {shown(name)} is {shown(now)} here and {shown(before)} before"
                    mistakes.append(Mistake(file, line.number, message))
            ranks = (old.ranks or 0) + (slots or 0) or None
            hosts[name] = replace(old, user=old.user or line.user, data=old.data or line.data, ranks=ranks)
    return tuple(hosts.values()), mistakes
