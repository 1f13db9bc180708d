"""Names of hosts: node sets unfolded and folded, and which texts are valid hosts, users and jump hosts.

A name that is accepted here is safe as an argument of ssh: no leading '-', no blanks, no control characters.
Ranges are those of ClusterShell. `node1..4` also means `node[1-4]`: shells take the brackets for a pattern.
The text of a node set keeps its order (`node[3,1]` is node3, then node1, as in Slurm), because the order of
hosts is the order of ranks; set operators (`!`, `&`, `^`) are left to --exclude.
"""

import ipaddress
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ClusterShell.RangeSet import RangeSet

from doctor.errors import UsageError, suggest
from doctor.text.textfile import shown

MOST_HOSTS = 100_000

_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?")
_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@+\\-]{0,63}\$?")
_NUMBER = re.compile(r"[0-9]{1,9}")
_PIECE = re.compile(r"(?:[^ \t\r\n,\[\]]|\[[^\[\]]*\])+|[\[\]]")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,200})(?:-([0-9]{1,200})(?:/([0-9]{1,200}))?)?")
_DOTS = re.compile(r"\[[^\[\]]*\]|(?<![0-9])([0-9]{1,200})\.\.([0-9]{1,200})(?![0-9])")
"""A bracket, which stays as it is, or a range without brackets."""
_NETWORK = re.compile(r"[0-9.]+/[0-9]+")
_DIGITS = re.compile(r"([0-9]+)")

Groups = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class UserHosts:
    """Hosts named together, with the user in front of them (`root@node[1-4]`), if there is one."""

    user: str | None
    hosts: tuple[str, ...]


def unfold(text: str, groups: Groups | None = None) -> list[str]:
    """The names of a node set, in the order written, each once. Raises UsageError with the offending text."""
    names: list[str] = []
    for named in unfold_users(text, groups):
        if named.user is not None:
            raise UsageError(f"{shown(text)}: a user has no place in front of a host here")
        names += named.hosts
    return list(dict.fromkeys(names))


def unfold_users(text: str, groups: Groups | None = None) -> list[UserHosts]:
    """Like `unfold`, piece by piece; a piece may begin with `user@`. `@name` is a group of `groups`."""
    found: list[UserHosts] = []
    total = 0
    for piece in pieces(text):
        user, at, rest = piece.rpartition("@")
        if at and not rest:
            raise UsageError(f"{shown(piece)} names a user, but no host")
        if at and user:
            named = UserHosts(check_user(user), tuple(_unfold_piece(rest)))
        else:
            named = UserHosts(None, tuple(_groups(piece, groups) if at else _unfold_piece(piece)))
        total += len(named.hosts)
        if total > MOST_HOSTS:
            raise UsageError(_too_many(text))
        found.append(named)
    if not found:
        raise UsageError(f"{shown(text)} names no host")
    return found


def pieces(text: str) -> list[str]:
    """The parts of a node set between commas and blanks outside of brackets. Raises UsageError."""
    found = _PIECE.findall(text)
    if "[" in found or "]" in found:
        raise UsageError(f"{shown(text)} is not a node set: a bracket has no partner")
    return found


def is_host(text: str) -> bool:
    try:
        return bool(check_host(text))
    except UsageError:
        return False


def check_host(name: str) -> str:
    """The name, if it can be a host name or an IP address (IPv6 with or without its brackets)."""
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") and ":" in name else name
    if ":" in bare:
        if not is_ip(bare):
            raise UsageError(f"{shown(name)} is not an IPv6 address, and other names have no ':'")
        return bare
    if not _NAME.fullmatch(bare):
        raise UsageError(f"{shown(name)} is not a host name{_why_no_name(bare)}")
    if "." in bare and bare.replace(".", "").isdigit() and not is_ip(bare):
        raise UsageError(f"{shown(name)} is not an IPv4 address")
    return bare


def is_ip(text: str) -> bool:
    """Whether the text is an IPv4 or IPv6 address; an IPv6 one may have a zone: fe80::1%eth0."""
    try:
        address, percent, zone = text.partition("%")
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return not percent or (":" in address and _NAME.fullmatch(zone) is not None)


def check_user(name: str) -> str:
    """The name, if it can be a user (also `name@domain` and `DOMAIN\\name`)."""
    if not _USER.fullmatch(name):
        raise UsageError(f"{shown(name)} is not a user name")
    return name


def check_jump(text: str) -> str:
    """The text, if it is one `[user@]host[:port]` or several separated by commas, as for `ssh -J`."""
    for hop in text.split(","):
        user, at, host = hop.rpartition("@")
        if at:
            check_user(user)
        host, port = split_number(host)
        if "//" in hop or not host or port == "":
            raise UsageError(f"{shown(hop)} is not a jump host, such as root@gate or gate:2222")
        check_host(host)
        if port is not None:
            check_number(port, 1, 65535)
    return text


def check_number(text: str, low: int, high: int) -> int:
    """The number, if it is between `low` and `high`."""
    if not _NUMBER.fullmatch(text) or not low <= int(text) <= high:
        raise UsageError(f"{shown(text)} is not a number from {low} to {high}")
    return int(text)


def split_number(text: str) -> tuple[str, str | None]:
    """`host:8` and `[fd00::1]:8` split into two; a bare IPv6 address is not split."""
    head, colon, tail = text.rpartition(":")
    if not colon or (":" in head and not head.endswith("]")) or ("[" in tail or "]" in tail):
        return text, None
    return head, tail


def fold(names: Iterable[str]) -> str:
    """The names as one sorted node set: `gpu7,node[1-3,7]`. Takes any strings.

    Names with several numbers fold over each number in turn, which stays linear: ClusterShell's own folding
    takes half a minute for 3,000 random `ip-10-a-b-c`. IPv4 addresses fold (`10.0.0.[1-8]`); IPv6 addresses
    do not, because their digits are not decimal. A name that is not a host name stays as it is.
    """
    shapes: defaultdict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    literal: set[str] = set()
    for name in names:
        parts = _DIGITS.split(name)
        if len(parts) > 1 and _NAME.fullmatch(name):
            shapes[tuple(parts[::2])].add(tuple(parts[1::2]))
        else:
            literal.add(name)
    keyed = [
        ((shape, row), "".join(text + number for text, number in zip(shape, (*row, ""), strict=True)))
        for shape, rows in shapes.items()
        for row in _fold_rows(rows)
    ]
    keyed += [(((name,), ()), name) for name in literal]
    return ",".join(text for _, text in sorted(keyed, key=lambda item: (":" in item[1], _natural(item[1]))))


def cut(folded: str, room: int) -> str:
    """The node set cut to `room` characters, but never inside a range: `node[7,42,…]`."""
    if len(folded) <= room:
        return folded
    kept = folded[: max(map(folded[: max(room - 2, 0)].rfind, ",[")) + 1 or max(room - 1, 0)]
    return f"{kept}…{']' if kept.count('[') > kept.count(']') else ''}"


def quoted(names: Iterable[str]) -> str:
    """The names as one node set, quoted for a shell, which takes plain brackets for a file name pattern."""
    return shlex.quote(fold(names))


def _fold_rows(rows: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    for column in reversed(range(len(next(iter(rows))))):
        groups: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for row in rows:
            groups[row[:column] + row[column + 1 :]].add(row[column])
        folded = {
            rest: f"[{RangeSet.fromlist(sorted(numbers))}]" if len(numbers) > 1 else min(numbers)
            for rest, numbers in groups.items()
        }
        rows = {(*rest[:column], numbers, *rest[column:]) for rest, numbers in folded.items()}
    return rows


def _natural(text: str) -> tuple[list[tuple[int, int, str]], str]:
    """A sort key: node2 before node10; the text itself decides between node1 and node01."""
    return [(1, int(p), "") if i % 2 else (0, 0, p) for i, p in enumerate(_DIGITS.split(text[:300]))], text


def _unfold_piece(piece: str) -> list[str]:
    if (piece.startswith("[") and ":" in piece) or not ("[" in piece or ".." in piece):
        return [check_host(piece)]
    # re.split with one group alternates: text, content of a bracket, text, …
    parts = _BRACKET.split(
        _DOTS.sub(lambda found: f"[{found[1]}-{found[2]}]" if found[1] else found[0], piece)
    )
    choices: list[list[str]] = []
    size = 1
    for index, part in enumerate(parts):
        if index % 2:
            elements = [_element(e.strip(" \t"), piece) for e in part.split(",")]
            size *= sum(count for _, count in elements)
            if size > MOST_HOSTS:
                raise UsageError(_too_many(piece))
            choices.append([number for text, _ in elements for number in RangeSet(text).striter()])
        else:
            choices.append([part])
    return [check_host("".join(name)) for name in product(*choices)]


def _element(text: str, piece: str) -> tuple[str, int]:
    """One of the comma-separated elements of a bracket, and the number of its names, which are not built."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise UsageError(f"{shown(piece)} is not a node set: {shown(text)} is not a range such as 1-4")
    first, last, step = match[1], match[2] or match[1], int(match[3] or 1)
    if int(last) < int(first):
        raise UsageError(f"{shown(piece)} is not a node set: {shown(text)} counts backwards")
    if step == 0:
        raise UsageError(f"{shown(piece)} is not a node set: {shown(text)} has a step of 0")
    if len(first) != len(last) and (_padded(first) or _padded(last)):
        raise UsageError(f"{shown(piece)} is not a node set: the ends of {shown(text)} differ in width")
    return text, (int(last) - int(first)) // step + 1


def _padded(number: str) -> bool:
    return len(number) > 1 and number.startswith("0")


def _groups(piece: str, groups: Groups | None) -> list[str]:
    """`@rack1`, and `@rack[1-2]` for several groups at once."""
    if groups is None:
        raise UsageError(f"{shown(piece)} is a group, and no inventory is given", "name one with --inventory")
    names: list[str] = []
    for group in _unfold_piece(piece[1:]):
        if group not in groups:
            near = suggest(group, groups) or f"the groups are: {shown(', '.join(groups) or 'none')}"
            raise UsageError(f"the inventory has no group {shown(group)}", near)
        names += groups[group]
    return names


def _why_no_name(name: str) -> str:
    reasons = {
        ": it starts with '-', as an option does": name.startswith("-"),
        ": it ends with a dot": name.endswith(".") and len(name) > 1,
        f": it has {len(name)} characters, and 253 is the most": len(name) > 253,
        ": it has control characters in it": not name.isprintable(),
        ": only ASCII letters are allowed": not name.isascii(),
        ": a range of hosts is written node1..4": ".." in name or re.search(r"\{[0-9]", name) is not None,
        ": the hosts of a network are named one by one, or as 10.0.0.[1-8]": bool(_NETWORK.fullmatch(name)),
        ": hosts are separated by commas": bool(set(name) & set("/;|+")),
        ": patterns are not matched; a range of hosts is written node1..4": bool(set(name) & set("*?")),
        ": to leave hosts out, use --exclude": bool(set(name) & set("!&^")),
    }
    return next((words for words, true in reasons.items() if true), "")


def _too_many(text: str) -> str:
    return f"{shown(text)} names more than {MOST_HOSTS:,} hosts: is that a typo?"
