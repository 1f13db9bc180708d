"""Finds tracebacks that the end of a log cuts off: a rank died, although its exception is missing."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from doctor.logs.model import CUT

BEGINS = "Traceback (most recent call last)"
FRAME = re.compile(
    r'(?:^|\s)\s{0,3}File "(?P<file>[^"]{1,300})", line (?P<line>\d{1,9})(?:, in (?P<where>\S{1,80}))?'
)
STAMP = re.compile(r"\d{1,4}(?:[-:/.,T ]{1,2}\d{1,9}){2,8}")
LEAST = 2
"""The least number of frames at the end of a log that are a traceback without its heading."""
MOST = 5
"""The most tracebacks of one file that are reported."""


class CutTraceback(NamedTuple):
    number: int
    text: str
    """The line with which it begins, with the place of its last frame."""
    prefix: str
    """What its writer puts in front of each line, without times."""


def cut_tracebacks(lines: Sequence[tuple[int, str]]) -> list[CutTraceback]:
    """The tracebacks in the last lines of a file that have no exception, one for each writer. A writer is
    known by what stands in front of its lines; lines of others may stand between them.
    """
    found: dict[str, CutTraceback] = {}
    steady = [STAMP.sub("", text) for _, text in lines]  # times differ between the lines of one writer
    for place, (number, text) in enumerate(lines):
        if BEGINS not in text:
            continue
        before, below = steady[place].partition(BEGINS)[0], range(place + 1, len(lines))
        prefix = before.removesuffix("Original ")
        if prefix != before and re.match(rf"{re.escape(prefix)}\S{{1,99}}: Caught ", steady[place - 1]):
            number, text = lines[place - 1]  # which says what a worker raised
        if not any(steady[each].startswith(prefix) for each in below):
            prefix = ""  # it begins within a record; its frames have no prefix
        own = [each for each in below if steady[each].startswith(prefix)]
        if all(_continues(steady[each][len(prefix) :]) for each in own):
            frames = [frame for each in own if (frame := FRAME.search(lines[each][1]))]
            where = f" ({frames[-1]['file']}:{frames[-1]['line']})" if frames else ""
            found[prefix] = CutTraceback(number, f"{text} {CUT}{where}", prefix)
    return [*found.values()][-MOST:]


def continued_from(owns: Sequence[str]) -> int | None:
    """Where the last lines begin that only continue a message: from the first line on, or from the first
    frame of a stack whose heading is missing. None if the last line continues nothing.
    """
    begin = next((at + 1 for at in reversed(range(len(owns))) if not _continues(owns[at])), 0)
    if not begin:
        return 0
    frames = [at for at, own in enumerate(owns[begin:], begin) if FRAME.match(own)]
    headed = owns[begin - 1].rstrip().endswith(":")  # a stack that a program shows, or the rest of a list
    return frames[0] if len(frames) >= LEAST and not headed else None


def _continues(own: str) -> bool:
    """Whether a line belongs to the traceback; rich draws a frame around it."""
    return not own.strip() or own.startswith((" ", "\t", "│"))
