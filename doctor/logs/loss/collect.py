"""The losses of one file, as its lines come by, in bounded memory.

    collector = LossCollector("rank3.log")
    if collector.wants(raw):
        collector.offer(text, number, who, at)
    curves = collector.curves()

One rank may stand in a file more than once: each start of the job is a curve of its own, in their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from operator import lt

from doctor.logs.loss.lines import LONGEST, Said, read_pace, read_spans, wants
from doctor.logs.loss.points import MOST_POINTS, At, Points
from doctor.logs.loss.shapes import Row, Shape, Shapes, said_of
from doctor.logs.loss.tables import Header, may_be_row, read_header
from doctor.logs.model import Curve, LossForm, Party

MOST_PARTIES = 1024
MOST_NAMES = 6
MOST_STARTS = 12
MOST_PARTS = 32
"""Of a line that a progress bar overwrites: its last states."""
SURE = 3
"""So many losses after a step that falls back say that the job was started again."""
MOST_BACK = 64
MOST_ALL = 400_000
"""Points of all files together."""


def points_each(files: int) -> int:
    """How many points each of so many files may keep of a curve."""
    return max(250, min(MOST_POINTS, MOST_ALL // max(files, 1)))


@dataclass(slots=True, eq=False)
class _Track:
    """One kind of loss of one party."""

    form: LossForm
    most: int
    runs: list[Points] = field(default_factory=list)
    counted: bool = False
    offset: int = 0
    last: int = 0
    """As it was printed."""
    epoch: int | None = None
    whole: bool = False
    """Each loss is of a whole epoch, though its step is written."""
    began: int | None = None
    """The first epoch of all."""
    back: list[tuple[Said, float | None, int]] = field(default_factory=list)
    """Losses whose steps fell back, until it is clear whether the job began again."""
    waiting: list[Row] = field(default_factory=list)
    """Further losses, until there are many, or another line is read."""

    def add(self, said: Said, at: float | None, line: int) -> None:
        if not self.runs:
            self.runs.append(Points(self.most))
            self.counted = said.step is None and (said.epoch is None or said.part)
        points = self.runs[-1]
        raw = said.step if said.step is not None else None if said.part else said.epoch
        again = said.step is None and points.total > 0 and raw == points.last_step
        if again and not self.counted and said.loss != points.last_loss:
            self.counted = True  # several losses an epoch, and no steps
        if self.counted or raw is None:
            points.add(max(points.total, points.last_step) + 1, said.loss, at, said.took, line)
            return
        older = said.epoch is not None and self.epoch is not None and said.epoch < self.epoch
        if not older:
            self._turn_over(said, raw)
        step = self.offset + raw
        if points.total and (older or step < points.last_step):
            self._fall_back(said, at, line)
            return
        self.back.clear()  # ranks without a prefix, a little out of order
        self.epoch = said.epoch if said.epoch is not None else self.epoch
        self.began = self.epoch if self.began is None else self.began
        self.last = raw
        points.add(step, said.loss, at, said.took, line)

    def _turn_over(self, said: Said, raw: int) -> None:
        """A new epoch, in which steps count from the start."""
        if said.step is None or not self.runs[-1].total:
            return
        if raw == self.last == said.of and self.runs[-1].total == 1:
            self.whole = True  # Keras prints no more than the end of each epoch
        on = said.epoch is not None and self.epoch is not None and not said.part and said.epoch > self.epoch
        end = said.epoch is None and said.of and raw < self.last and 10 * self.last >= 9 * said.of
        if (on and raw <= self.last) or end or (self.whole and raw == self.last == said.of):
            self.offset += said.of if said.of and self.last <= said.of else self.last
            self.back.clear()

    def _fall_back(self, said: Said, at: float | None, line: int) -> None:
        if self.back and _place(said) < _place(self.back[-1][0]):
            self.back.clear()
        self.back.append((said, at, line))
        if len({_place(each) for each, _, _ in self.back}) >= SURE:
            self.start_again()
        elif len(self.back) > MOST_BACK:
            del self.back[1:]

    def start_again(self) -> None:
        if len(self.runs) == MOST_STARTS:
            del self.runs[1]
        back, self.back = self.back, []
        self.runs.append(Points(self.most))
        first = back[0][0]
        epochs = (first.epoch or 0) - (self.began or 0)
        self.offset = epochs * first.of if first.of and first.step is not None and epochs > 0 else 0
        self.last, self.epoch, self.whole = 0, None, False
        for said, at, line in back:
            self.add(said, at, line)

    def add_rows(self, rows: Sequence[Row], first: int, at: At) -> None:
        """Like `add` of each: at once, where no more than steps and losses changes. `first` is the number of
        the line at place 0.
        """
        rows = self._without_repeats(rows)
        if not rows:
            self.back.clear()
            return
        places, shapes, _, steps, _, epochs, losses, took = zip(*rows, strict=True)

        def written(row: int) -> float | None:
            return at(places[row]) if shapes[row].timed and took[row] is None else None

        told = self._all_new([step for step in steps if step is not None], {*epochs, None}, len(rows))
        if told:
            timed = any(shape.timed for shape in set(shapes))
            lines = [first + place for place in places]
            self.runs[-1].add_all(told, losses, took, lines, written if timed else None)
            return
        for number, row in enumerate(rows):
            self.add(said_of(row), written(number), first + row[0])

    def _without_repeats(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Ranks without a prefix print one step many times."""
        points = self.runs[-1]
        if self.counted or not points.total or not isfinite(points.last_loss):
            return rows
        places = [(row[3], row[5]) for row in rows]
        known = self.last if points.last_step == self.offset + self.last else None
        before = [(known, self.epoch if places[0][1] is not None else None), *places]
        again = [row for row, place, last in zip(rows, places, before, strict=False) if place == last]
        if not again or any(row[3] in (None, row[4]) for row in again):
            return rows  # the last step of an epoch may be that of the next
        return [row for row, place, last in zip(rows, places, before, strict=False) if place != last]

    def _all_new(self, steps: Sequence[int], epochs: set[int | None], many: int) -> Sequence[int]:
        """The steps of so many losses; none where one of them may begin something, or be there already."""
        points = self.runs[-1]
        if not points.total or not isfinite(points.last_loss):
            return ()
        if self.counted:
            begin = max(points.total, points.last_step) + 1
            return range(begin, begin + many)
        last = max(self.last, points.last_step - self.offset)
        if len(steps) < many or not epochs <= {self.epoch, None} or not all(map(lt, (last, *steps), steps)):
            return ()
        self.last = steps[-1]
        self.back.clear()
        return [self.offset + step for step in steps] if self.offset else steps

    def took_last(self, seconds: float) -> None:
        if self.waiting:
            self.waiting[-1] = (*self.waiting[-1][:-1], seconds)
        else:
            self.runs[-1].took_last(seconds)

    @property
    def total(self) -> int:
        return sum(points.total for points in self.runs)


def _place(said: Said) -> tuple[int, int]:
    return (said.epoch or 0, said.step or 0)


class LossCollector:
    """Of one file. `most` is how many points it keeps of a curve, see `points_each`."""

    def __init__(self, file: str, most: int = MOST_POINTS) -> None:
        self._file = file
        self._most = most
        self._tracks: dict[Party, dict[tuple[str, str], _Track]] = {}
        self._header: Header | None = None
        self.headers = 0
        """Lines that named columns."""
        self._latest: _Track | None = None
        self._added: _Track | None = None
        self._shapes = Shapes()
        self._track_of: dict[tuple[Shape, bytes], _Track] = {}
        """By what a launcher wrote in front of a row."""
        self._waiting: list[_Track] = []
        self._first = 0
        self._at: At = lambda _: None

    def wants(self, raw: bytes) -> bool:
        """Whether the line is worth offering; cheap."""
        return wants(raw) or (self._header is not None and may_be_row(raw))

    def offer(
        self,
        text: str,
        number: int,
        who: Party = Party(),  # noqa: B008
        at: float | None = None,
        prefix: int = 0,
    ) -> bool:
        """True if it is a line of a loss. `prefix` characters of it are a launcher's."""
        parts = text.split("\r") if "\r" in text else [text]
        taken = False
        for part in parts[-MOST_PARTS:]:
            taken = self._offer(part[:LONGEST], number, who, at, prefix if len(parts) == 1 else None) or taken
        return taken

    def begin(self, first: int, at: At) -> None:
        """Lines of another window: the number of its first, and when that at a place was written."""
        self._first, self._at = first, at

    def shapes(self, words: bytes) -> int:
        """How many shapes lines of that sentence are known to have."""
        return len(self._shapes.of(words))

    def rows(self, words: bytes, lines: Sequence[bytes], places: Sequence[int]) -> list[Row]:
        """Those of the lines, which are of one sentence, that have a known shape."""
        return self._shapes.rows(words, lines, places)

    def add_rows(self, rows: Sequence[Row]) -> Iterator[Row]:
        """Add them in their order; `settle` must follow. Rows of a writer that is not known are given back
        one by one: each is to be offered before the next is asked for.
        """
        of: defaultdict[tuple[Shape, bytes], list[Row]] = defaultdict(list)
        for row in rows:
            of[row[1:3]].append(row)
        if of.keys() <= self._track_of.keys():
            for key, some in of.items():
                self._wait(self._track_of[key], some)
            if rows:
                self._latest = self._track_of[rows[-1][1:3]]
            return
        for row in rows:
            track = self._track_of.get(row[1:3])
            if track is not None:
                self._wait(track, [row])
                self._latest = track
                continue
            self._added = None
            yield row
            if self._added and len(self._track_of) < MOST_PARTIES:
                self._track_of[row[1:3]] = self._added

    def _wait(self, track: _Track, rows: Sequence[Row]) -> None:
        """A curve is faster with many points at once."""
        before = track.waiting
        if not before:
            self._waiting.append(track)
        mixed = before and rows[0][0] < before[-1][0]
        before += rows
        if mixed:
            before.sort()

    def settle(self) -> None:
        """Add what waits."""
        while self._waiting:
            self._settle(self._waiting.pop())

    def _settle(self, track: _Track) -> None:
        rows, track.waiting = track.waiting, []
        if rows:
            track.add_rows(rows, self._first, self._at)

    def curves(self) -> tuple[Curve, ...]:
        """Of each party the loss that it printed most often; each start of the job is one."""
        found: list[Curve] = []
        for who, tracks in self._tracks.items():
            track = max(tracks.values(), key=lambda each: each.total)
            if track.back:
                track.start_again()
            found += [self._curve(who, track, points) for points in track.runs]
        return tuple(found)

    def _curve(self, who: Party, track: _Track, points: Points) -> Curve:
        return replace(points.curve(), file=self._file, who=who, form=track.form, counted=track.counted)

    def _offer(self, text: str, number: int, who: Party, at: float | None, prefix: int | None) -> bool:
        """`prefix` is None for a state of a line that has several: it tells nothing of other lines."""
        if self._header and (said := self._header.read(text)):
            if prefix is not None:
                self._shapes.learn(text, said, None, prefix, at is not None)
            return self._add(said, number, who, at)
        said, spans = read_spans(text)
        if said:
            if prefix is not None:
                self._shapes.learn(text, said, spans, prefix, at is not None)
            return self._add(said, number, who, at)
        if "oss" in text.lower() and (header := read_header(text)):
            self._header = header
            self.headers += 1
            self._shapes.forget_rows()
        elif self._latest and "step time" in text and (took := read_pace(text)):
            self._latest.took_last(took)
        return False

    def _add(self, said: Said, number: int, who: Party, at: float | None) -> bool:
        self._added = None
        party = Party(rank=said.rank) if who.rank is None and said.rank is not None else _known(who)
        tracks = self._tracks.get(party)
        if tracks is None:
            if len(self._tracks) == MOST_PARTIES:
                return True
            tracks = self._tracks[party] = {}
        which = "step" if said.step is not None else "epoch" if said.epoch is not None else "none"
        track = tracks.get((said.name, which))
        if which == "none" and not isfinite(said.loss) and tracks:
            self.settle()
            track = max(tracks.values(), key=lambda each: each.total)
        if track is None:
            if len(tracks) == MOST_NAMES:
                return True
            most = self._most if len(self._tracks) <= 64 else max(100, self._most // 16)
            track = tracks[said.name, which] = _Track(said.form, most)
        self._settle(track)
        track.add(said, at, number)
        self._latest = self._added = track
        return True


def _known(who: Party) -> Party:
    """A rank is the same after a restart, whatever its process."""
    if who.rank is not None:
        return Party(rank=who.rank, host=who.host)
    return Party(host=who.host, device=who.device)
