"""Gets values of a message out of the lines around it: Open MPI's frames, UCX's second line, call traces."""

import re
from collections.abc import Iterable, Mapping, Sequence

from doctor.logs.forms.block import LineContext
from doctor.logs.forms.line_facts import LineFacts, Parse
from doctor.logs.model import Symptom
from doctor.logs.symptoms.literals import MOST_TAKEN, WINDOW, compiled, stands, values_of
from doctor.text.printable import clean_line
from doctor.text.redact import redact

MOST_ABOVE = 16
"""The most lines above that are searched."""
_FRAME = re.compile(r"-{40,100}$")
"""A message of Open MPI ends with such a line."""
_SEVERAL = "ranks"
"""A group with this name may have a value in each of the lines."""


def values_around(symptom: Symptom, facts: LineFacts, around: LineContext, parse: Parse) -> Mapping[str, str]:
    """The values that `above` and `below` find; the nearest line counts."""
    found: dict[str, str] = {}
    if symptom.below:
        _search(symptom.below, _own(around.below(), facts, parse, symptom), found)
    if symptom.above:
        _search(symptom.above, _own(around.above()[:MOST_ABOVE], facts, parse, symptom), found)
    return found


def _own(lines: Iterable[str], facts: LineFacts, parse: Parse, symptom: Symptom) -> Iterable[str]:
    """The texts of the lines of the same writer, up to the next message of the same kind."""
    for line in lines:
        said = parse(line)
        if _differ(said.rank, facts.rank) or _differ(said.pid, facts.pid):
            continue
        text = line[said.start :][:WINDOW].rstrip()
        if _FRAME.match(text) or stands(text, symptom.patterns) is not None:
            return
        yield redact(clean_line(text))


def _differ(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one != other


def _search(expressions: Sequence[str], texts: Iterable[str], found: dict[str, str]) -> None:
    for text in texts:
        for each in map(compiled, expressions):
            hit = each.search(text)
            for name, value in values_of(hit).items() if hit else ():
                if name == _SEVERAL and name in found:
                    found[name] = f"{found[name]}, {value}"[:MOST_TAKEN]
                else:
                    found.setdefault(name, value)
