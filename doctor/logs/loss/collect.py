"""The losses of one file, as its lines come by, in bounded memory.

    collector = LossCollector("rank3.log")
    if collector.wants(raw):
        collector.offer(text, number, who, at)
    curves = collector.curves()

One rank may stand in a file more than once: each start of the job is a curve of its own, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from doctor.logs.loss.lines import LONGEST, Said, read_pace, read_spans, wants
from doctor.logs.loss.points import MOST_POINTS, At, Points
from doctor.logs.loss.rows import Rows, Shape
from doctor.logs.loss.shapes import NO_FRONT, Front, Shapes
from doctor.logs.loss.tables import Header, may_be_row, read_header
from doctor.logs.loss.track import Track
from doctor.logs.model import Curve, LossForm, Party

MOST_PARTIES = 1024
MOST_NAMES = 6
MOST_PARTS = 32
"""Of a line that a progress bar overwrites: its last states."""
MOST_ALL = 400_000
"""Points of all files together."""
NOBODY = Party()


def points_each(files: int) -> int:
    """How many points each of so many files may keep of a curve."""
    return max(250, min(MOST_POINTS, MOST_ALL // max(files, 1)))


class LossCollector:
    """Of one file. `most` is how many points it keeps of a curve, see `points_each`."""

    def __init__(self, file: str, most: int = MOST_POINTS) -> None:
        self._file = file
        self._most = most
        self._tracks: dict[Party, dict[tuple[str, str], Track]] = {}
        self._header: Header | None = None
        self.headers = 0
        """Lines that named columns."""
        self._latest: Track | None = None
        self._added: Track | None = None
        self._shapes = Shapes()
        self._track_of: dict[tuple[Shape, bytes], Track] = {}
        """By what a launcher wrote in front of a row."""
        self._held: dict[int, tuple[Shape, bytes, Rows]] = {}
        """Rows of a writer of whom nothing was read yet, by the place of the first, which is offered."""
        self._waiting: dict[Track, None] = {}
        self._first = 0
        self._at: At = lambda _: None

    def wants(self, raw: bytes) -> bool:
        """Whether the line is worth offering; cheap."""
        return wants(raw) or (self._header is not None and may_be_row(raw))

    def offer(
        self, text: str, number: int, who: Party = NOBODY, at: float | None = None, front: Front = NO_FRONT
    ) -> bool:
        """True if it is a line of a loss."""
        parts = text.split("\r") if "\r" in text else [text]
        taken = False
        for part in parts[-MOST_PARTS:]:
            taken = self._offer(part[:LONGEST], number, who, at, front if len(parts) == 1 else None) or taken
        held = self._held.pop(number - self._first, None)
        if held and self._added:
            shape, before, rows = held
            if len(self._track_of) < MOST_PARTIES:
                self._track_of[shape, before] = self._added
            self._wait(self._added, rows)
        return taken

    def begin(self, first: int, at: At) -> None:
        """Lines of another window: the number of its first, and when that at a place was written."""
        self._first, self._at = first, at

    def shapes(self, words: bytes) -> int:
        """How many shapes lines of that sentence are known to have."""
        return len(self._shapes.of(words))

    def take(self, words: bytes, lines: Sequence[bytes], places: Sequence[int]) -> list[int]:
        """The places of those of the lines, which are of one sentence, that need not be offered. `settle`
        must follow, when all others were.
        """
        taken: list[int] = []
        for before, rows in self._shapes.rows(words, lines, places):
            shape = rows.shapes[0]
            track = self._track_of.get((shape, before))
            if track is not None:
                taken += rows.places
                self._wait(track, rows)
            else:  # the first one tells whose they are
                taken += rows.places[1:]
                self._held[rows.places[0]] = shape, before, rows.part(1, len(rows))
        return taken

    def take_back(self, place: int) -> list[int]:
        """Rows of a table below a place, where another begins: they are to be offered."""
        gone = [each for track in self._waiting for each in track.take_back(place, LossForm.CSV)]
        for first, (shape, _, rows) in list(self._held.items()):
            if shape.like.form is LossForm.CSV:
                gone += rows.places
                del self._held[first]
        return gone

    def settle(self, before: int | None = None) -> None:
        """Add what waits, up to a place."""
        for track in list(self._waiting):
            self._settle(track, before)
        if before is None:
            self._held.clear()

    def _wait(self, track: Track, rows: Rows) -> None:
        """A curve is faster with many points at once."""
        if rows:
            self._waiting[track] = None
            track.wait(rows)

    def _settle(self, track: Track, before: int | None) -> None:
        if track.settle(self._first, self._at, before):
            self._waiting.pop(track, None)
        if self._latest is None or track.line > self._latest.line:
            self._latest = track

    def curves(self) -> tuple[Curve, ...]:
        """Of each party the loss that it printed most often; each start of the job is one."""
        found: list[Curve] = []
        for who, tracks in self._tracks.items():
            track = max(tracks.values(), key=lambda each: each.total)
            if track.back:
                track.start_again()
            found += [self._curve(who, track, points) for points in track.runs]
        return tuple(found)

    def _curve(self, who: Party, track: Track, points: Points) -> Curve:
        return replace(points.curve(), file=self._file, who=who, form=track.form, counted=track.counted)

    def _offer(self, text: str, number: int, who: Party, at: float | None, front: Front | None) -> bool:
        """`front` is None for a state of a line that has several: it tells nothing of other lines."""
        self._added = None
        if self._header and (said := self._header.read(text)):
            if front is not None:
                self._shapes.learn(text, said, None, front)
            return self._add(said, number, who, at)
        said, spans = read_spans(text)
        if said:
            if front is not None:
                self._shapes.learn(text, said, spans, front)
            return self._add(said, number, who, at)
        if "oss" in text.lower() and (header := read_header(text)):
            self._header = header
            self.headers += 1
            self._shapes.forget_rows()
        elif "step time" in text and (took := read_pace(text)):
            self.settle(number - self._first)
            if self._latest:
                self._latest.took_last(took)
        return False

    def _add(self, said: Said, number: int, who: Party, at: float | None) -> bool:
        party = Party(rank=said.rank) if who.rank is None and said.rank is not None else _known(who)
        tracks = self._tracks.get(party)
        if tracks is None:
            if len(self._tracks) == MOST_PARTIES:
                return True
            tracks = self._tracks[party] = {}
        which = "step" if said.step is not None else "epoch" if said.epoch is not None else "none"
        track = tracks.get((said.name, which))
        if which == "none" and not isfinite(said.loss) and tracks:
            self.settle(number - self._first)
            track = max(tracks.values(), key=lambda each: each.total)
        if track is None:
            if len(tracks) == MOST_NAMES:
                return True
            most = self._most if len(self._tracks) <= 64 else max(100, self._most // 16)
            track = tracks[said.name, which] = Track(said.form, most)
        self._settle(track, number - self._first)
        track.add(said, at, number)
        self._latest = self._added = track
        return True


def _known(who: Party) -> Party:
    """A rank is the same after a restart, whatever its process."""
    if who.rank is not None:
        return Party(rank=who.rank, host=who.host)
    return Party(host=who.host, device=who.device)
