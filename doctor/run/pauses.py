"""Reads what passes, and learns how long this job's own pauses are."""

import re
from collections.abc import Iterator

from doctor.logs.sentence import sentence
from doctor.logs.steps import counted, says_step
from doctor.run.output import Output

FACTOR = 2.0
"""A pause is odd if it is so many times as long as the longest one so far."""
LEAST = 120.0
"""Seconds: no shorter pause is odd, unless the user says so."""
TICK = 64 << 10
"""The most bytes of a stream that are read at once; of more, the end says how far the job is."""
LINES = 400
KNOWN = 3
"""After so many steps, only steps and new sentences show that the job moves."""
_ODD = re.compile(rb"[Ll]oss.{0,12}?\b(?:nan|NaN|inf|Infinity)\b")
_NUMBER = re.compile(rb"[Ll]oss[\w/]{0,12}['\"]?\s{0,4}(?:is|[:=|])?\s{0,8}(?:tensor\()?[-+]?\.?\d")
_COMPLAINT = re.compile(rb"^\W{0,8}[WE]\d{4} \d\d:|\b(?:WARN|WARNING|ERROR)\b")
"""A warning or an error, as glog and the logging module of Python mark them."""
MOST = 4096
"""The most counters and sentences that are remembered."""


class Passing:
    """What the streams of a command say. `moved` is to be called again and again."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._places: dict[str, int] = {}
        self._reached: dict[str, tuple[float, int]] = {}
        self._sentences: dict[bytes, None] = {}
        self._steps = 0
        self.losses = 0
        """How many lines with a loss have passed."""
        self.odd_losses = 0
        """In how many of them it is not a finite number."""
        self.numbers = 0
        """In how many of them it is one."""

    def moved(self) -> bool:
        """Whether the job has printed something new since the last call."""
        other = new = advanced = False
        for line in self._lines():
            if b"loss" in line or b"Loss" in line:
                self.losses += 1
                odd = _ODD.search(line) is not None
                self.odd_losses += odd
                self.numbers += not odd and _NUMBER.search(line) is not None
            said = sentence(line)
            if said not in self._sentences:
                self._remember(said)
                new = True
            elif not _COMPLAINT.search(line):  # what only complains again and again does not move
                other = True
            text = line.decode(errors="replace")
            advanced = (says_step(text) and self._advances(text)) or advanced
        self._steps += advanced
        return advanced or new or (other and self._steps < KNOWN)

    def _advances(self, text: str) -> bool:
        label, value = counted(text)
        before = self._reached.get(label)
        if len(self._reached) >= MOST:
            self._reached.clear()
        self._reached[label] = value
        return before != value

    def _remember(self, said: bytes) -> None:
        if len(self._sentences) >= MOST:
            self._sentences.clear()
        self._sentences[said] = None

    def _lines(self) -> Iterator[bytes]:
        for name, stream in self._output.streams.items():
            before = self._places.get(name, 0)
            if stream.total <= before:
                continue
            begin, text = stream.since(before, TICK)
            self._places[name] = begin + len(text)
            yield from [line for line in text.replace(b"\r", b"\n").split(b"\n") if line.strip()][-LINES:]


class OutputPauses:
    """When a silence is odd. Times are those of a clock that only goes on."""

    def __init__(self, now: float, least: float | None) -> None:
        self._least = LEAST if least is None else least
        self._moved_at = now
        self._began = False
        self.longest = 0.0
        """The longest pause after which the job went on."""

    @property
    def limit(self) -> float:
        return max(self._least, FACTOR * self.longest)

    def silent(self, now: float) -> float:
        return now - self._moved_at

    def moved(self, now: float) -> None:
        if self._began:  # how long it took to start says nothing about later
            self.longest = max(self.longest, now - self._moved_at)
        self._began, self._moved_at = True, now

    def forget(self, now: float) -> None:
        """Doctor was stopped: nothing is known about the time meanwhile."""
        self._moved_at = now
