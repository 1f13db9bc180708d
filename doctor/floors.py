"""What links and collectives must carry at least, as a contract says it: a file with the lines

floors:
  - pair >= 92 Gbit/s                       # what each host sends to each other one, one way at a time
  - inter all_reduce 256MB >= 180 GB/s      # the bus bandwidth of a collective of this size
  - host matmul >= 100 GFLOP/s              # what each host does alone; of a folder: host write /scratch
"""

import re
from dataclasses import dataclass
from pathlib import Path

from doctor.errors import InputErrors, Mistake, UsageError
from doctor.smoke.onhost.sweepplan import SCOPES, SIZES, TIMED, size_text
from doctor.targets.inputkind import refuse_other
from doctor.text.printable import clean_line
from doctor.text.textfile import read_text
from doctor.text.yamlfile import Listing, YamlTable, parse_yaml, plain

UNITS = {"Mbit/s": 125e3, "Gbit/s": 125e6, "MB/s": 1e6, "GB/s": 1e9}
"""In bytes a second."""
_BYTES = {"MB/s": 1e6, "GB/s": 1e9}
ALONE = {
    "matmul": {"GFLOP/s": 1e9, "TFLOP/s": 1e12},
    "fsync": {"/s": 1.0},
    "copy": _BYTES,
    "to_device": _BYTES,
    "from_device": _BYTES,
    "write": _BYTES,
    "read": _BYTES,
}
"""What a host does alone, and in what units."""
OF_FOLDER = ("write", "read", "fsync")
MOST = 1e18
FORM = "A line of it is for instance: pair >= 92 Gbit/s"
PAIR, HOST = "pair", "host"
NAMED = ((PAIR, HOST, *SCOPES), TIMED, tuple(map(size_text, SIZES)))
_LINE = re.compile(r"(\S+(?: +\S+){0,2}?) *(>=|<=|=|>|<) *([0-9]{1,9}(?:\.[0-9]{1,9})?) *(\S+)")


@dataclass(frozen=True, slots=True)
class CollectiveFloor:
    """`name` is such as "inter all_reduce 256MB"; `value` is in bytes a second, `text` as it was written."""

    name: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Floor:
    """That of pairs, in bytes a second; 0 if pairs have none. And as it was written."""

    value: float
    text: str
    collectives: tuple[CollectiveFloor, ...] = ()
    hosts: tuple[CollectiveFloor, ...] = ()
    """Such as "host write /scratch"."""

    @property
    def all(self) -> tuple[CollectiveFloor, ...]:
        return (*self.collectives, *self.hosts)


def read_floor(path: Path) -> Floor:
    """Raises InputErrors and UsageError."""
    text = read_text(path)
    document = parse_yaml(text, str(path))
    rows = document.root.rows if isinstance(document.root, YamlTable) else ()
    if [key.text for key, _ in rows] != ["floors"] or not isinstance(rows[0][1], Listing):
        refuse_other(str(path), text)
        raise UsageError(f"{path}: is not a file of floors: it has no list 'floors' alone.", FORM)
    told = [(item, _floor(str(plain(item)))) for item in rows[0][1].items]
    mistakes: list[Mistake] = []
    found: dict[str, CollectiveFloor] = {}
    for item, each in told:
        why = each if isinstance(each, str) else ""
        if isinstance(each, CollectiveFloor) and found.setdefault(each.name, each).value != each.value:
            why = f"'{each.text}' contradicts '{found[each.name].text}'"
        mistakes += [Mistake(str(path), item.line, why, item.column)] if why else []
    mistakes += document.mistakes
    if mistakes or not found:
        mistakes.sort(key=lambda each: each.line or 0)
        raise InputErrors(mistakes or [Mistake(str(path), rows[0][1].line, "it has no floor")], FORM)
    pair = found.pop(PAIR, CollectiveFloor(PAIR, 0.0, ""))
    hosts = tuple(each for each in found.values() if each.name.startswith(HOST))
    return Floor(pair.value, pair.text, tuple(each for each in found.values() if each not in hosts), hosts)


def _floor(text: str) -> CollectiveFloor | str:
    """What is wrong with it, if it is not a floor."""
    line, shown = _LINE.fullmatch(text.strip()), clean_line(text)[:80]
    if line is None:
        return f"'{shown}' is not a floor"
    what, sign, number, unit = line.groups()
    words = what.split()
    alone = words[0] == HOST
    for word, known in zip(words, (NAMED[0], tuple(ALONE)) if alone else NAMED, strict=False):
        if word not in known:
            shown = clean_line(word)[:80]
            return f"nothing that is measured is called '{shown}'; there is {', '.join(known)}"
    in_folder = words[1:2] and words[1] in OF_FOLDER
    if len(words) != (1 if words[0] == PAIR else 2 if alone and not in_folder else 3) or (
        in_folder and not words[2].startswith("/")
    ):
        such = "host matmul, and host write /scratch" if alone else "pair, and inter all_reduce 64MB"
        return f"'{clean_line(what)[:80]}' is no measurement; such are {such}"
    units = ALONE[words[1]] if alone else UNITS
    if sign != ">=":
        return f"'{shown}' is not at least: type >="
    if unit not in units:
        return f"'{clean_line(unit)[:80]}' is not one of the units {', '.join(units)}"
    value = float(number) * units[unit]
    if not 0 < value < MOST:
        return f"'{shown}' is out of range"
    return CollectiveFloor(" ".join(words), value, text.strip())
