"""Reduces dumps of PyTorch's flight recorder, pickles or JSON, to the few numbers that matter, as JSON.

A pickle is a program that the job has written, so it is never unpickled. This reader understands only plain
containers, numbers and text, which is all that the recorder writes. Anything else is refused.
"""

import json
import re
import struct
from typing import Any

MOST = 32 << 20
"""The most bytes of a dump."""
MOST_STEPS = 2000000
MOST_ENTRIES = 2000
EACH = 8
"""How many of the last entries of each kind are kept for each group."""
LONGEST = 256
LONGEST_RANKS = 60000
_KEPT = (
    "pg_id",
    "process_group",
    "collective_seq_id",
    "is_p2p",
    "profiling_name",
    "retired",
    "state",
    "time_created_ns",
)
_MARK = object()


TOO_LARGE = "it is too large: reading it takes more memory than is allowed here"


class UnreadableDump(ValueError):
    """It is not a readable dump; the text gives the reason."""


class _Machine:
    """Runs the part of pickle that creates plain values."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.stack = []  # type: list[Any]
        self.memo = {}  # type: dict[int, Any]

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) < count:
            raise UnreadableDump("it is cut off")
        self.at += count
        return piece

    def number(self, form: str) -> int:
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def text(self, length: int) -> str:
        return self.take(length).decode("utf-8", "replace")

    def marked(self) -> "list[Any]":
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                values = self.stack[place + 1 :]
                del self.stack[place:]
                return values
        raise UnreadableDump("it is damaged")

    def top(self, kind: type) -> Any:
        if not self.stack or type(self.stack[-1]) is not kind:
            raise UnreadableDump("it is damaged")
        return self.stack[-1]

    def fill(self, pairs: "list[Any]") -> None:
        into = self.top(dict)
        if len(pairs) % 2 or any(type(key) not in (str, int) for key in pairs[::2]):
            raise UnreadableDump("it is damaged")
        into.update(zip(pairs[::2], pairs[1::2]))  # noqa: B905 (Python 3.6)

    def run(self) -> Any:
        for _ in range(MOST_STEPS):
            code = self.take(1)
            if code == b".":
                return self.stack.pop()
            self.step(code)
        raise UnreadableDump("it is too large")

    def step(self, code: bytes) -> None:
        push, stack = self.stack.append, self.stack
        if code in b"qr\x94":
            place = len(self.memo) if code == b"\x94" else self.number("<B" if code == b"q" else "<I")
            self.memo[place] = stack[-1]
        elif code in b"hj":
            push(self.memo[self.number("<B" if code == b"h" else "<I")])
        elif code in b"X\x8c":
            push(self.text(self.number("<I" if code == b"X" else "<B")))
        elif code in b"KMJ":
            push(self.number({b"K": "<B", b"M": "<H", b"J": "<i"}[code]))
        elif code == b"\x8a":
            push(int.from_bytes(self.take(self.number("<B")), "little", signed=True))
        elif code == b"G":
            push(struct.unpack(">d", self.take(8))[0])
        elif code in b"N\x88\x89":
            push({b"N": None, b"\x88": True, b"\x89": False}[code])
        elif code in b"}])":
            push({b"}": dict, b"]": list, b")": tuple}[code]())
        elif code == b"(":
            push(_MARK)
        elif code in b"ut":
            values = self.marked()
            if code == b"u":
                self.fill(values)
            else:
                push(tuple(values))
        elif code == b"e":
            values = self.marked()
            self.top(list).extend(values)
        elif code == b"a":
            value = stack.pop()
            self.top(list).append(value)
        elif code == b"s":
            value, key = stack.pop(), stack.pop()
            self.fill([key, value])
        elif code in b"\x85\x86\x87":
            count = ord(code) - 0x84
            values = stack[-count:]
            del stack[-count:]
            push(tuple(values))
        elif code == b"\x80":
            self.take(1)
        elif code == b"\x95":
            self.take(8)
        else:
            raise UnreadableDump(
                f"it holds more than plain values (pickle code {code!r}); none of it was run"
            )


def plain(data: bytes) -> Any:
    """The value in a pickle of plain values. Raises UnreadableDump."""
    try:
        return _Machine(data).run()
    except (IndexError, KeyError, TypeError) as error:
        raise UnreadableDump("it is damaged") from error


def numbers(data: bytes) -> str:
    """The numbers of a dump, as JSON. Raises UnreadableDump."""
    try:
        return _numbers(data)
    except MemoryError as error:
        raise UnreadableDump(TOO_LARGE) from error


def _numbers(data: bytes) -> str:
    if len(data) > MOST:
        raise UnreadableDump(f"it is larger than {MOST >> 20} MiB")
    if data.lstrip()[:1] == b"{":
        try:
            dump = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise UnreadableDump("its JSON is cut off or damaged") from error
    else:
        dump = plain(data)
    if not isinstance(dump, dict) or "pg_status" not in dump:
        raise UnreadableDump("it is not a dump of the flight recorder")
    return json.dumps(_reduced(dump))


def _reduced(dump: "dict[Any, Any]") -> "dict[str, Any]":
    found = {"pg_status": {}, "pg_config": {}, "entries": []}  # type: dict[str, Any]
    for name, status in _rows(dump["pg_status"]):
        numbers = {str(key)[:LONGEST]: _number(value) for key, value in list(status.items())[:8]}
        found["pg_status"][name] = {
            k: v for k, v in numbers.items() if k.startswith("last_") and v is not None
        }
    room = LONGEST_RANKS
    for name, config in _rows(dump.get("pg_config")):
        ranks = config.get("ranks")
        if isinstance(ranks, (list, tuple)):
            ranks = str([rank for rank in ranks[:10000] if isinstance(rank, int) and -1 < rank < 10**7])
        if isinstance(ranks, str) and len(ranks) <= room:
            room -= len(ranks)
            found["pg_config"][name] = {"ranks": ranks}
    entries = dump.get("entries")
    kept = {}  # type: dict[tuple[Any, bool], int]
    for entry in reversed(entries if isinstance(entries, (list, tuple)) else []):
        if len(found["entries"]) >= MOST_ENTRIES:
            break
        if isinstance(entry, dict) and isinstance(entry.get("pg_id"), int):
            kind = (entry["pg_id"], bool(entry.get("is_p2p")))
            kept[kind] = kept.get(kind, 0) + 1
            over = entry.get("retired") or entry.get("state") == "completed"
            if kept[kind] <= EACH or (not over and kept[kind] <= 4 * EACH):
                found["entries"].append({key: _short(entry[key]) for key in _KEPT if _has(entry, key)})
    found["entries"].reverse()
    return found


def _rows(table: Any) -> "list[tuple[str, dict[Any, Any]]]":
    rows = list(table.items())[:1000] if isinstance(table, dict) else []
    return [(str(name)[:LONGEST], row) for name, row in rows if isinstance(row, dict)]


def _number(value: Any) -> "int | None":
    """The number, or None if it is not a valid one. Older recorders write numbers as text."""
    if isinstance(value, str) and re.match(r"-?[0-9]{1,18}\Z", value):
        value = int(value)
    return value if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return type(value) is int and -1 <= value <= 2**62


def _has(entry: "dict[Any, Any]", key: str) -> bool:
    value = entry.get(key)
    return isinstance(value, (str, bool, list, tuple)) or _is_number(value)


def _short(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [each[:LONGEST] for each in value[:2] if isinstance(each, str)]
    return value[:LONGEST] if isinstance(value, str) else value
