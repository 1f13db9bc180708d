"""Reduces dumps of PyTorch's flight recorder, pickles or JSON, to the few numbers that matter, as JSON.

A pickle is a program that the job has written, so it is never unpickled. This reader understands only plain
containers, numbers and text, which is all that the recorder writes. Anything else is refused.
"""

import json
import re
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
_GIVEN = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE")
"""Steps of a pickle whose value stands in it."""
_NEW = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: _MARK,
}  # type: dict[str, Any]
_TAKEN = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "APPEND": 1, "SETITEM": 2}
"""How many values a step takes from the stack."""
TOO_LARGE = "it is too large: reading it takes more memory than is allowed here"


class UnreadableDump(ValueError):
    """It is not a readable dump; the text gives the reason."""


def plain(data: bytes) -> Any:
    """The value in a pickle of plain values. Raises UnreadableDump. Nothing that it says is called: the
    standard library only takes it apart.
    """
    import pickletools  # few hosts have a dump in this form

    for text, size in ((pickletools.unicodestring1, 1), (pickletools.unicodestring4, 4)):
        text.reader = _text_reader(size)
    steps = pickletools.genops(data)
    stack, memo = [], {}  # type: list[Any], dict[int, Any]
    try:
        for number, (code, argument, _) in enumerate(steps):
            if number > MOST_STEPS:
                raise UnreadableDump("it is too large")
            if code.name == "STOP":
                return stack.pop()
            _step(code.name, argument, stack, memo)
    except UnreadableDump:
        raise
    except (IndexError, KeyError, TypeError) as error:
        raise UnreadableDump("it is damaged") from error
    except ValueError as error:
        raise UnreadableDump("it is cut off or damaged") from error


def _text_reader(size: int) -> Any:
    """Reads a text behind its length, a number of that size. Names of functions need not be UTF-8."""
    return lambda file: file.read(int.from_bytes(file.read(size), "little")).decode("utf-8", "replace")


def _step(name: str, argument: Any, stack: "list[Any]", memo: "dict[int, Any]") -> None:
    """Carry out one step of a pickle that creates plain values."""
    if name in _GIVEN:
        stack.append(argument)
    elif name in _NEW:
        stack.append(_NEW[name]())
    elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
        memo[len(memo) if argument is None else argument] = stack[-1]
    elif name in ("BINGET", "LONG_BINGET"):
        stack.append(memo[argument])
    elif name in _TAKEN:
        values = stack[-_TAKEN[name] :]
        del stack[-_TAKEN[name] :]
        _put(name, values, stack)
    elif name in ("TUPLE", "APPENDS", "SETITEMS"):
        _put(name, _marked(stack), stack)
    elif name not in ("PROTO", "FRAME"):
        raise UnreadableDump(f"it holds more than plain values (pickle code {name}); none of it was run")


def _put(name: str, values: "list[Any]", stack: "list[Any]") -> None:
    """Make a tuple of these values, or put them into the list or the table that is on top."""
    if name.startswith("TUPLE"):
        stack.append(tuple(values))
    elif name.startswith("APPEND") and type(stack[-1]) is list:
        stack[-1].extend(values)
    elif name.startswith("SET") and type(stack[-1]) is dict and len(values) % 2 == 0:
        if any(type(key) not in (str, int) for key in values[::2]):
            raise UnreadableDump("it is damaged")
        stack[-1].update(zip(values[::2], values[1::2]))  # noqa: B905 (Python 3.6)
    else:
        raise UnreadableDump("it is damaged")


def _marked(stack: "list[Any]") -> "list[Any]":
    """Take what lies above the last mark."""
    at = len(stack) - 1
    while stack[at] is not _MARK:
        at -= 1
    values = stack[at + 1 :]
    del stack[at:]
    return values


def numbers(data: bytes) -> str:
    """The numbers of a dump, as JSON. Raises UnreadableDump."""
    try:
        return json.dumps(_reduced(loaded(data)))
    except MemoryError as error:
        raise UnreadableDump(TOO_LARGE) from error


def loaded(data: bytes) -> "dict[Any, Any]":
    """The whole dump. Raises UnreadableDump."""
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
    return dump


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
