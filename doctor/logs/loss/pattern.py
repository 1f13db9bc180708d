"""Reads lines that differ only in their numbers by a pattern, made from one of them: many at once.

A line that a pattern does not match is read by itself.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct

from doctor.logs.loss.lines import LossValues
from doctor.logs.model import LossForm

LONGEST = 1000
MOST_NUMBERS = 40
MOST_LAYOUTS = 2000
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_NUMBER = re.compile(r"((?:(?<![\w.)\]])[-+])?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
_ANY = r"[-+]?\d+(?:\.\d+|(?!\.\d))(?:[eE][-+]?\d+)?"
"""A number that is not read. It matches in one way only."""
_LOSS = r"([-+]?\d{1,40}\.\d{1,60}(?:[eE][-+]?\d\d?)?)"
_COUNT = r"(\d{1,15})"
_PART = _COUNT + r"\.\d{1,30}"
_BLANKS = re.compile(r"(?:\\ )+")
VALUES = ("loss", "step", "of", "epoch")
Read = Callable[[str], LossValues | None]
"""Reads one line: `read_line`, or the rows of a table."""
At = Callable[[int], float | None]
"""Gives the time at which a line was written, by its index in a run."""


@dataclass(frozen=True, slots=True)
class LossRun:
    """The losses of one writer in lines of one pattern; or that of a single line, which is `like`."""

    like: LossValues
    at: At
    lines: Sequence[int]
    """Their numbers."""
    losses: Sequence[float] = ()
    steps: Sequence[int] = ()
    of: Sequence[int] = ()
    epochs: Sequence[int] = ()

    def said(self, number: int) -> LossValues:
        if not self.losses:
            return self.like
        return LossValues(
            self.like.form,
            self.like.name,
            self.losses[number],
            self.steps[number] if self.steps else None,
            self.of[number] if self.of else None,
            self.epochs[number] if self.epochs else None,
            self.like.part,
        )


@dataclass(frozen=True, slots=True, eq=False)
class LossPattern:
    lines: re.Pattern[bytes]
    """Matches a whole line. Its groups are the launcher's prefix before and after a time in it, the values in
    the order of the line, and nothing.
    """
    like: LossValues
    """The values of the line that it was made from."""
    columns: tuple[int, ...]
    """The index of the group of each of VALUES; the last one if the line has no such value."""
    timed: bool
    """Whether its lines state when they were written."""
    _layouts: dict[bytes, Struct | None] = field(default_factory=dict)

    def read(self, lines: Sequence[bytes]) -> list[tuple[bytes, ...] | None]:
        """The groups of each line; None if it does not match. Lines with digits at the same places are cut at
        the same places, which is faster than to match each.
        """
        forms = b"\n".join(lines).translate(_ZEROS).split(b"\n")
        if len(self._layouts) > MOST_LAYOUTS:
            self._layouts.clear()
        for form in {*forms} - self._layouts.keys():
            self._layouts[form] = self._layout(form)
        cuts = map(self._layouts.__getitem__, forms)
        return [cut.unpack(line) if cut else None for cut, line in zip(cuts, lines, strict=True)]

    def _layout(self, form: bytes) -> Struct | None:
        """Where the groups are in lines of a form: a line with all its digits as 0."""
        found = self.lines.fullmatch(form) if len(form) <= LONGEST else None
        if found is None:
            return None
        fields, at = "", 0
        for start, end in map(found.span, range(1, self.lines.groups + 1)):
            fields += f"{start - at}x{end - start}s"
            at = end
        return Struct(f"{fields}{len(form) - at}x")

    def run(self, at: At, lines: Sequence[int], rows: Sequence[tuple[bytes, ...]]) -> LossRun:
        """The lines of one writer, by their groups."""
        groups = [*zip(*rows, strict=True)]
        losses, *counts = (groups[column] for column in self.columns)
        steps, of, epochs = ([*map(int, each)] if each[0] else [] for each in counts)
        return LossRun(self.like, at, lines, [*map(float, losses)], steps, of, epochs)


def pattern_of(
    text: str, read: Read, front: int = 0, stamp: tuple[int, int] = (0, 0), *, timed: bool = False
) -> LossPattern | None:
    """The pattern of a line; None if it prints no loss, or values that are no plain numbers. `front` is the
    end of the launcher's prefix, `stamp` the position of a time in it, which does not identify the writer.
    """
    own = _NUMBER.split(text[front:])  # words and numbers by turns
    said = read(text) if len(text) <= LONGEST and len(own) <= 2 * MOST_NUMBERS else None
    if said is None or said.rank is not None or _is_doubtful(said, text):
        return None
    at: dict[str, int] = {}
    groups: dict[int, str] = {}
    for name in VALUES:
        if getattr(said, name) is None:
            continue
        place = _place(own, said, name, read)
        group = _LOSS if name == "loss" else _PART if name == "epoch" and said.part else _COUNT
        if place is None or place in groups or not re.fullmatch(group, own[place]):
            return None
        at[name], groups[place] = place, group
    before, time, after = (
        _alike(_NUMBER.split(text[begin:end]), {}) for begin, end in ((0, stamp[0]), stamp, (stamp[1], front))
    )
    order = sorted(groups)
    columns = (order.index(at[name]) + 2 if name in at else -1 for name in VALUES)
    lines = re.compile(rf"({before}){time}({after}){_alike(own, groups)}()\r*".encode())
    return LossPattern(lines, said, tuple(columns), timed)


def _is_doubtful(said: LossValues, text: str) -> bool:
    """Whether the same words mean another thing with other numbers: for the Trainer, 0 beside a NaN is NaN;
    in JSON, 0.5 is a part of an epoch, and 1.0 is not.
    """
    return (said.form is LossForm.TRAINER and "nan" in text.lower()) or (
        said.form is LossForm.JSON and said.part
    )


def _place(parts: Sequence[str], said: LossValues, name: str, read: Read) -> int | None:
    """The index of the number that is the value: with another number there, another value is read."""
    value, part = getattr(said, name), name == "epoch" and said.part
    other = 2 * abs(value) + 1
    for place in range(1, len(parts), 2):
        number = float(parts[place])
        if value == (number // 1 if part else number):
            changed = read("".join([*parts[:place], f"{other}{'.5' * part}", *parts[place + 1 :]]))
            if changed and getattr(changed, name) == other:
                return place
    return None


def _alike(parts: Sequence[str], groups: Mapping[int, str]) -> str:
    """A pattern for words and numbers by turns, with any numbers, except that some are groups. Numbers are
    padded with any blanks.
    """
    made = ""
    for place, part in enumerate(parts):
        if place % 2:
            made += ("" if made.endswith((" *", " +")) else " *") + groups.get(place, _ANY)
        else:
            made += " +" if part and not part.strip(" ") else _BLANKS.sub(" *", re.escape(part))
    return made
