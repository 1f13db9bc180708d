"""Collects the losses of one file, in bounded memory.

A rank may have several curves in a file: each start of the job is a curve of its own, in order.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isfinite

from doctor.logs.loss.lines import LONGEST, LossValues, read_line, read_without_loss, wants
from doctor.logs.loss.names import PARTS
from doctor.logs.loss.pattern import LossRun
from doctor.logs.loss.points import MOST_POINTS
from doctor.logs.loss.tables import Header, may_be_row, read_header
from doctor.logs.loss.track import Time, Track, known
from doctor.logs.model import Curve, LossForm, Party

MOST_PARTIES = 1024
MOST_NAMES = 6
MOST_PARTS = 32
"""The most states of a line that a progress bar overwrites; only the last ones are read."""
CLEAR = 0.1
"""A loss that is left out was NaN only if the one before was above this: others may have become negative."""


class LossCollector:
    """The losses of one file. `most` is how many points of a curve it keeps."""

    def __init__(self, file: str, most: int = MOST_POINTS) -> None:
        self._file = file
        self._most = most
        self._tracks: dict[Party, dict[tuple[str, str], Track]] = {}
        self.header: Header | None = None
        """The last header of a table: lines of numbers may be its rows."""
        self._lost: dict[Party, tuple[LossValues, float | None, int]] = {}
        """The first of the last lines that leave their loss out, with its time and number."""

    def wants(self, raw: bytes) -> bool:
        """A cheap test of whether the line is worth offering."""
        return wants(raw) or (self.header is not None and may_be_row(raw))

    def read(self, text: str) -> list[LossValues]:
        """What one line prints: the states of a progress bar, or a loss that Megatron leaves out, which has
        no name. The header of a table is remembered.
        """
        parts = text.split("\r")[-MOST_PARTS:] if "\r" in text else [text]
        return [said for part in parts if (said := self._read(part[:LONGEST]))]

    def _read(self, text: str) -> LossValues | None:
        said = (self.header and self.header.read(text)) or read_line(text)
        if said:
            return said
        if "oss" in text.lower() and (header := read_header(text)):
            self.header = header
            return None
        return read_without_loss(text)

    def add(self, who: Party, runs: Sequence[LossRun]) -> None:
        """Add what one party printed in one part of the file."""
        if len(runs) == 1 and len(runs[0].lines) > 1:
            if track := self._track(who, runs[0].like):
                track.add_run(runs[0])
            return
        order = sorted(
            (line, which, place) for which, run in enumerate(runs) for place, line in enumerate(run.lines)
        )
        for line, which, place in order:
            self._add(who, runs[which].said(place), partial(runs[which].at, place), line)

    def _add(self, who: Party, said: LossValues, at: Time, line: int) -> None:
        if not said.name:
            self._lose(who, said, at(), line)
        elif track := self._track(who, said):
            track.add(said, at, line)

    def curves(self) -> tuple[Curve, ...]:
        """The curves of each party's most frequent loss, one for each start of the job."""
        found: list[Curve] = []
        for who, tracks in self._tracks.items():
            named = [each for (name, _), each in tracks.items() if name != PARTS]
            track = max(named or tracks.values(), key=lambda each: each.total)
            if not named and any(isfinite(loss) for points in track.runs for loss in points.curve().losses):
                continue  # parts are NaN now and then
            if (lost := self._lost.get(who)) and track.line < lost[2] and track.last_loss > CLEAR:
                said, at, line = lost
                track.add(said, known(at), line)
            if track.back:
                track.start_again()
            own = partial(replace, file=self._file, who=who, counted=track.counted)
            found += [own(points.curve()) for points in track.runs]
        return tuple(found)

    def _lose(self, who: Party, said: LossValues, at: float | None, line: int) -> None:
        tracks = [each for each in self._tracks.get(who, {}).values() if each.form is LossForm.MEGATRON]
        before = self._lost.get(who)
        if tracks and (before is None or any(each.line > before[2] for each in tracks)):
            self._lost[who] = (said, at, line)

    def _track(self, who: Party, said: LossValues) -> Track | None:
        """The track of such losses of a party; None if there are too many."""
        tracks = self._tracks.get(who)
        if tracks is None:
            if len(self._tracks) == MOST_PARTIES:
                return None
            tracks = self._tracks[who] = {}
        which = "step" if said.step is not None else "epoch" if said.epoch is not None else "none"
        if which == "none" and not isfinite(said.loss) and tracks:
            return max(tracks.values(), key=lambda each: each.total)
        if (said.name, which) not in tracks:
            if len(tracks) == MOST_NAMES:
                return None
            most = self._most if len(self._tracks) <= 64 else max(100, self._most // 16)
            tracks[said.name, which] = Track(said.form, most)
        return tracks[said.name, which]


def party_of(said: LossValues, who: Party) -> Party:
    """Whose curve it is. A rank is the same after a restart, as another process."""
    if who.rank is not None:
        return Party(rank=who.rank, host=who.host)
    return Party(rank=said.rank) if said.rank is not None else Party(host=who.host, device=who.device)
