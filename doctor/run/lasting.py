"""Which lines show that a bad loss lasts. The data that a job prints may quote the losses of others.

A job prints its own losses in lines of one kind, again and again. A job is ended for its losses only if each
kind of line that still prints some shows that they are bad.
"""

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from doctor.logs.loss.collect import LossCollector
from doctor.logs.loss.judge import NAN, judge_curves
from doctor.logs.loss.lines import read_line, read_without_loss
from doctor.logs.read import read
from doctor.logs.sentence import sentence
from doctor.logs.symptoms.match import matcher_of
from doctor.model import Confidence
from doctor.run.folder import both_ends
from doctor.run.output import Output

SERIES = 3
"""Lines of one kind that print losses; fewer may be part of a text."""
MOST = 64
"""The kinds that are read, the most frequent first; if there are more, nothing is sure."""
_LINE_END = re.compile(rb"[\r\n]+")
_CHANGING = re.compile(rb"(?i)\bm?lm loss: [^|]{0,40}\||\b(?:nan|inf(?:inity)?)\b|[\x80-\xff]+")
"""What differs between lines of one kind: Megatron leaves out a loss that is NaN, and progress bars grow."""


def kinds_of(output: Output, since: Mapping[str, int]) -> list[list[bytes]]:
    """All lines with losses of each kind of which one came since these places."""
    found: dict[tuple[str, bytes], list[bytes]] = {}
    live = set()
    for name, stream in output.streams.items():
        for line in _with_loss(both_ends(stream)):
            found.setdefault((name, _kind(line)), []).append(line)
        live |= {(name, _kind(line)) for line in _with_loss(stream.since(since.get(name, 0))[1])}
    kinds = [lines for kind, lines in found.items() if kind in live and len(lines) >= SERIES]
    return kinds if len(kinds) <= MOST else []


def shows_bad_losses(lines: Sequence[bytes], file: Path) -> bool:
    """Whether these lines alone show that losses are bad and did not become sound again."""
    file.write_bytes(b"\n".join(lines))
    curves = read([file], matcher_of((), ()), loss=LossCollector).curves
    sure = [each for each in judge_curves(curves) if each.confidence is not Confidence.SUSPECT]
    no_numbers = any(not isfinite(curve.losses[-1]) for curve in curves if curve.losses)
    return any(each.symptom != NAN or no_numbers for each in sure)


def _with_loss(text: bytes) -> list[bytes]:
    known: dict[bytes, bool] = {}
    found = []
    for line in _LINE_END.split(text):
        kind = _kind(line)
        if kind not in known:
            said = line.decode(errors="replace")
            known[kind] = read_line(said) is not None or read_without_loss(said) is not None
        if known[kind]:
            found.append(line)
    return found


def _kind(line: bytes) -> bytes:
    return sentence(_CHANGING.sub(b"", line))
