"""Collects the losses of one file line by line, in bounded memory.

    collector = LossCollector("rank3.log")
    if collector.wants(raw):
        collector.offer(text, number, who, at)
    curves = collector.curves()

A rank may have several curves in a file: each start of the job is a curve of its own, in order.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite

from doctor.logs.loss.lines import LONGEST, LossValues, read_spans, read_without_loss, wants
from doctor.logs.loss.points import MOST_POINTS, At, Points
from doctor.logs.loss.rows import Rows, Shape
from doctor.logs.loss.shapes import NO_FRONT, Front, Shapes
from doctor.logs.loss.tables import Header, may_be_row, read_header
from doctor.logs.loss.track import Track
from doctor.logs.model import Curve, LossForm, Party

MOST_PARTIES = 1024
MOST_NAMES = 6
MOST_PARTS = 32
"""The most states of a line that a progress bar overwrites; only the last ones are read."""
CLEAR = 0.1
"""A loss that is left out was NaN only if the one before was above this: others may have become negative."""
NOBODY = Party()


class LossCollector:
    """The losses of one file. `most` is how many points of a curve it keeps."""

    def __init__(self, file: str, most: int = MOST_POINTS) -> None:
        self._file = file
        self._most = most
        self._tracks: dict[Party, dict[tuple[str, str], Track]] = {}
        self._header: Header | None = None
        self.headers = 0
        """How many header lines of tables were read."""
        self._added: Track | None = None
        self._shapes = Shapes()
        self._track_of: dict[tuple[Shape, bytes], Track] = {}
        """The track of the rows of a shape, by the launcher's prefix."""
        self._held: dict[int, tuple[Shape, bytes, Rows]] = {}
        """Rows of a new writer, by the index of the first one, which is offered by itself."""
        self._waiting: dict[Track, None] = {}
        self._lost: dict[Party, tuple[LossValues, float | None, int]] = {}
        """The first of the last lines that leave their loss out, with its time and number."""
        self._first = 0
        self._at: At = lambda _: None

    def wants(self, raw: bytes) -> bool:
        """A cheap test of whether the line is worth offering."""
        return wants(raw) or (self._header is not None and may_be_row(raw))

    def offer(
        self, text: str, number: int, who: Party = NOBODY, at: float | None = None, front: Front = NO_FRONT
    ) -> bool:
        """Read one line; True if it prints a loss."""
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
        """Begin another window: `first` is the number of its first line, `at` gives the times of lines."""
        self._first, self._at = first, at

    def shapes(self, words: bytes) -> int:
        """How many shapes are known for lines of that sentence."""
        return len(self._shapes.of(words))

    def take(self, words: bytes, lines: Sequence[bytes], places: Sequence[int]) -> list[int]:
        """Take the lines of one sentence that have a known shape. The others must be offered, and then
        `settle` must be called. Returns the indices of the lines that were taken.
        """
        taken: list[int] = []
        for before, rows in self._shapes.rows(words, lines, places):
            shape = rows.shapes[0]
            track = self._track_of.get((shape, before))
            if track is not None:
                taken += rows.places
                self._wait(track, rows)
            else:  # the first one shows who wrote them
                taken += rows.places[1:]
                self._held[rows.places[0]] = shape, before, rows.part(1, len(rows))
        return taken

    def take_back(self, place: int) -> list[int]:
        """Give back the rows below an index where another table begins: they must be offered."""
        gone = [each for track in self._waiting for each in track.take_back(place, LossForm.CSV)]
        for first, (shape, _, rows) in list(self._held.items()):
            if shape.like.form is LossForm.CSV:
                gone += rows.places
                del self._held[first]
        return gone

    def settle(self, before: int | None = None) -> None:
        """Add the waiting rows, up to an index."""
        for track in list(self._waiting):
            self._settle(track, before)
        if before is None:
            self._held.clear()

    def _wait(self, track: Track, rows: Rows) -> None:
        """Let rows wait: adding many points at once is faster."""
        if rows:
            self._waiting[track] = None
            track.wait(rows)

    def _settle(self, track: Track, before: int | None) -> None:
        if track.settle(self._first, self._at, before):
            self._waiting.pop(track, None)

    def curves(self) -> tuple[Curve, ...]:
        """The curves of each party's most frequent loss, one for each start of the job."""
        found: list[Curve] = []
        for who, tracks in self._tracks.items():
            track = max(tracks.values(), key=lambda each: each.total)
            if (lost := self._lost.get(who)) and track.line < lost[2] and track.last_loss > CLEAR:
                track.add(*lost)
            if track.back:
                track.start_again()
            found += [self._curve(who, track, points) for points in track.runs]
        return tuple(found)

    def _curve(self, who: Party, track: Track, points: Points) -> Curve:
        return replace(points.curve(), file=self._file, who=who, counted=track.counted)

    def _offer(self, text: str, number: int, who: Party, at: float | None, front: Front | None) -> bool:
        """`front` is None for one of several states of a line: no shape is learned from it."""
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
        elif lost := read_without_loss(text):
            self._lose(lost, number, _without_process(who), at)
        return False

    def _lose(self, said: LossValues, number: int, party: Party, at: float | None) -> None:
        self.settle(number - self._first)
        tracks = [each for each in self._tracks.get(party, {}).values() if each.form is LossForm.MEGATRON]
        before = self._lost.get(party)
        if tracks and (before is None or any(each.line > before[2] for each in tracks)):
            self._lost[party] = (said, at, number)

    def _add(self, said: LossValues, number: int, who: Party, at: float | None) -> bool:
        party = Party(rank=said.rank) if who.rank is None and said.rank is not None else _without_process(who)
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
        self._added = track
        return True


def _without_process(who: Party) -> Party:
    """The party without its process: a rank is the same after a restart."""
    if who.rank is not None:
        return Party(rank=who.rank, host=who.host)
    return Party(host=who.host, device=who.device)
