"""Takes from the other lines of a message of CANN's what the line of its symptom lacks.

One fault fills several lines: its code stands in one, the device or port in the next.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from doctor.logs.forms.block import LineContext
from doctor.logs.forms.line_facts import LineFacts, Parse
from doctor.logs.model import Form, Symptom
from doctor.text.hostprogram import table
from doctor.text.printable import clean_line
from doctor.text.redact import redact

FAMILIES = frozenset({"acl", "cann", "hccl", "megatron", "mindspore", "torch_npu"})
"""The families of symptoms whose messages name devices."""
FAR = 12
"""The most lines before and after a line that can belong to its message."""
LONGEST = 600
"""The most characters of such a line that are examined."""
_OURS = frozenset({Form.CANN, Form.TORCH_NPU})
_DEVICE = re.compile("|".join(table(__file__, "message.txt")[0]))


def completed(
    symptom: Symptom, taken: Mapping[str, str], text: str, rest: Sequence[str]
) -> Mapping[str, str]:
    """The values of a symptom with those from the rest of its message, and its device as `card`."""
    if symptom.family not in FAMILIES:
        return taken
    if symptom.take and not taken:
        found = (re.search(symptom.take, line) for line in rest)
        values = next((each.groupdict() for each in found if each), {})
        taken = {name: value for name, value in values.items() if value}
    card = next(filter(None, map(_card, chain([text], rest))), None)
    return {**taken, "card": card} if card else taken


def _card(text: str) -> str | None:
    found = _DEVICE.search(text)
    return found[found.lastindex or 0] if found else None


def rest_of(text: str, facts: LineFacts, around: LineContext, parse: Parse) -> list[str]:
    """The other lines of a message: those above up to its header, the nearest first, then those below."""
    prefix = text[: facts.prefix]
    above: list[str] = []
    if not facts.headed:
        for line, said in _of_writer(around.above(), prefix, parse):
            if not _belongs(line, said) and not (said.headed and said.form in _OURS):
                break
            above.append(line)
            if said.headed:
                break
    below: list[str] = []
    for line, said in _of_writer(around.below(), prefix, parse):
        if said.headed or not _belongs(line, said):
            break
        below.append(line)
    return [redact(clean_line(line[:LONGEST])) for line in above + below]


def _of_writer(lines: Sequence[str], prefix: str, parse: Parse) -> Iterator[tuple[str, LineFacts]]:
    """The next lines with the same launcher's prefix."""
    for line in islice((line for line in lines if line.startswith(prefix)), FAR):
        yield line, parse(line)


def _belongs(line: str, said: LineFacts) -> bool:
    own = line[said.start :]
    return said.form in _OURS or own[:1] in (" ", "\t") or not own.strip()
