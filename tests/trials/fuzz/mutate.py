"""How an honest input is spoilt: in its bytes, its lines, or its JSON tree."""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

MOST = 2_000_000
"""The most bytes of a case."""
EVIL = (
    *json.loads(Path(__file__).with_name("given").joinpath("evil.json").read_text()),
    *("9" * 400, "[" * 50, "(" * 2000, "{" * 5000, "a" * 70_000, "a " * 9000),
)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**64, -(2**63), 10**30, 0.5, -0.5, 1e-300, 1e300),
    *([], {}, [[]], [None], {"": ""}, "", [0] * 2000, {str(n): n for n in range(300)}),
)
Change = Callable[[Random, bytearray, Sequence[bytes]], bytes]


def spoilt(dice: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A few changes of bytes and lines; `others` are honest inputs of the same kind."""
    for _ in range(dice.choice((1, 1, 1, 2, 3, 6))):
        data = dice.choice(_CHANGES)(dice, bytearray(data), others)[:MOST]
    return data


def _span(dice: Random, data: bytearray) -> tuple[int, int]:
    start = dice.randrange(len(data) + 1)
    return start, min(len(data), start + int(dice.expovariate(1 / 20)))


def _noise(dice: Random, data: bytearray, __: Sequence[bytes]) -> bytes:
    for _ in range(dice.choice((1, 1, 4, 30)) if data else 0):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data)


def _cut(dice: Random, data: bytearray, _: Sequence[bytes]) -> bytes:
    start, end = _span(dice, data)
    return bytes(data[:start]) if dice.random() < 0.3 else bytes(data[:start] + data[end:])


def _again(dice: Random, data: bytearray, _: Sequence[bytes]) -> bytes:
    start, end = _span(dice, data)
    times = dice.choice((1, 2, 20, 2000))
    return bytes(data[:end] + data[start:end] * times + data[end:])


def _evil(dice: Random, data: bytearray, _: Sequence[bytes]) -> bytes:
    start, end = _span(dice, data)
    end = start if dice.random() < 0.5 else end
    word = dice.choice(EVIL).encode("utf-8", "surrogatepass") * dice.choice((1, 1, 1, 3))
    return bytes(data[:start] + word + data[end:])


def _joined(dice: Random, data: bytearray, others: Sequence[bytes]) -> bytes:
    other = dice.choice(others) if others else b""
    start, _ = _span(dice, data)
    first, last = sorted((dice.randrange(len(other) + 1), dice.randrange(len(other) + 1)))
    return bytes(data[:start]) + other[first:last] + bytes(data[start:])


def _lines(dice: Random, data: bytearray, _: Sequence[bytes]) -> bytes:
    lines = bytes(data).split(b"\n")
    at, to = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(4):
        case 0:
            lines[at], lines[to] = lines[to], lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines[at : at + dice.choice((1, 5))] = []
        case _:
            lines[at:at] = [lines[to]] * dice.choice((2, 300))
    return b"\n".join(lines)


def _number(dice: Random, data: bytearray, _: Sequence[bytes]) -> bytes:
    digits = [n for n, byte in enumerate(data) if 48 <= byte < 58]
    if not digits:
        return bytes(data)
    at = dice.choice(digits)
    end = next((n for n in range(at, len(data)) if not 48 <= data[n] < 58), len(data))
    return bytes(data[:at] + dice.choice((b"0", b"-1", b"99999", b"1e9", b"9" * 30, b"4.5")) + data[end:])


_CHANGES: tuple[Change, ...] = (_noise, _cut, _again, _evil, _evil, _joined, _lines, _lines, _number)


def spoilt_tree(dice: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A few changes of values, types and sizes; now and then, of bytes instead."""
    if dice.random() < 0.1:
        return spoilt(dice, data, others)
    try:
        tree = [json.loads(data)]
    except (ValueError, RecursionError):
        return spoilt(dice, data, others)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        _change(dice, tree)
    return json.dumps(tree[0]).encode("utf-8", "surrogatepass")[:MOST]


def _change(dice: Random, tree: list[Any]) -> None:
    """Walk down at random, and change the value there."""
    holder: Any = tree
    place: Any = 0
    while isinstance(value := holder[place], (dict, list)) and value and dice.random() < 0.93:
        holder, place = (
            value,
            dice.choice(list(value)) if isinstance(value, dict) else dice.randrange(len(value)),
        )
    match dice.randrange(6):
        case 0 if holder is not tree:
            del holder[place]
        case 1:
            holder[place] = deepcopy(dice.choice(ODD))
        case 2 if isinstance(holder, list):
            holder[place:place] = [deepcopy(value) for _ in range(dice.choice((1, 2, 40)))]
        case 2:
            holder[dice.choice(EVIL)[:50]] = deepcopy(value)
        case 3:
            holder[place] = deepcopy(dice.choice(_below(tree[0])))
        case _:
            holder[place] = _other(dice, value)


def _other(dice: Random, value: Any) -> Any:
    """A value of the same type, most of the time."""
    if isinstance(value, bool) or value is None or dice.random() < 0.05:
        return deepcopy(dice.choice(ODD))
    if isinstance(value, str):
        return spoilt(dice, value.encode("utf-8", "surrogatepass"), [])[:100_000].decode("utf-8", "replace")
    if isinstance(value, int):
        return dice.choice((0, 1, -1, value + 1, value - 1, value * 1000, 2**31, 2**53, 10**25))
    if isinstance(value, float):
        return dice.choice((0.0, -value, value * 1e6, value / 1e6, 1e300, value + 1))
    return deepcopy(dice.choice(ODD))


def _below(value: Any) -> list[Any]:
    """The values in the first few levels: any of them may replace any other."""
    found = [value]
    for each in found:
        if len(found) > 2000:
            break
        found += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
    return found[1:] or found
