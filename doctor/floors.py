"""What links must carry at least, as a contract says it: a file with the lines

floors:
  - pair >= 92 Gbit/s     # what each host sends to each other one, one way at a time
"""

import re
from dataclasses import dataclass
from pathlib import Path

from doctor.errors import InputErrors, Mistake, UsageError
from doctor.targets.inputkind import refuse_other
from doctor.text.printable import clean_line
from doctor.text.textfile import read_text
from doctor.text.yamlfile import Listing, YamlTable, parse_yaml, plain

UNITS = {"Mbit/s": 125e3, "Gbit/s": 125e6, "MB/s": 1e6, "GB/s": 1e9}
"""In bytes a second."""
MOST = 1e15
FORM = "A line of it is for instance: pair >= 92 Gbit/s"
_LINE = re.compile(r"(\S+) *(>=|<=|=|>|<) *([0-9]{1,9}(?:\.[0-9]{1,9})?) *(\S+)")


@dataclass(frozen=True, slots=True)
class Floor:
    """`value` is in bytes a second, `text` as it was written."""

    value: float
    text: str


def read_floor(path: Path) -> Floor:
    """Raises InputErrors and UsageError."""
    text = read_text(path)
    document = parse_yaml(text, str(path))
    rows = document.root.rows if isinstance(document.root, YamlTable) else ()
    if [key.text for key, _ in rows] != ["floors"] or not isinstance(rows[0][1], Listing):
        refuse_other(str(path), text)
        raise UsageError(f"{path}: is not a file of floors: it has no list 'floors' alone.", FORM)
    told = [(item.line, _floor(str(plain(item)))) for item in rows[0][1].items]
    mistakes = [Mistake(str(path), line, each) for line, each in told if isinstance(each, str)]
    found = [(line, each) for line, each in told if isinstance(each, Floor)]
    for line, each in found[1:]:
        if each.value != found[0][1].value:
            why = f"'{each.text}' contradicts '{found[0][1].text}'"
            mistakes.append(Mistake(str(path), line, why))
    mistakes += document.mistakes
    if mistakes or not found:
        mistakes.sort(key=lambda each: each.line or 0)
        raise InputErrors(mistakes or [Mistake(str(path), rows[0][1].line, "it has no floor")], FORM)
    return found[0][1]


def _floor(text: str) -> Floor | str:
    """What is wrong with it, if it is not a floor."""
    line, shown = _LINE.fullmatch(text.strip()), clean_line(text)[:80]
    if line is None:
        return f"'{shown}' is not a floor"
    what, sign, number, unit = line.groups()
    if what != "pair":
        return f"nothing that is measured is called '{clean_line(what)[:80]}'; there is pair"
    if sign != ">=":
        return f"'{shown}' is not at least: type >="
    if unit not in UNITS:
        return f"'{clean_line(unit)[:80]}' is not one of the units {', '.join(UNITS)}"
    value = float(number) * UNITS[unit]
    return Floor(value, text.strip()) if 0 < value < MOST else f"'{shown}' is out of range"
