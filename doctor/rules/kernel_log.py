"""What the kernel's log counts: one event may have several lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from doctor.agents.onhost.kernel_kills import GROUP, HOST, LACK, Kill, kills
from doctor.api import Expect, Undecided
from doctor.facts.processes import MOST_LINES, KernelLine

__all__ = ["GROUP", "HOST", "LACK", "KernelLog", "Kill", "kills_of", "read_log", "when"]


@dataclass(frozen=True, slots=True)
class KernelLog:
    """The part of a kernel's log that counts."""

    lines: tuple[KernelLine, ...]
    span: str
    """ "in 24 hours" """
    cut: bool
    """Whether there were more lines than are kept."""

    def number(self, number: int, thing: str) -> str:
        """ "2 kills"; "at least 66 kills" """
        least = "at least " if self.cut else ""
        return f"{least}{number} {thing}{'s' * (number != 1)}"

    def times(self, found: Iterable[tuple[str, KernelLine]], apart: float) -> str:
        """`found`: lines with what they are about; those about the same within `apart` seconds are one."""
        last: dict[str, KernelLine] = {}
        number, seen = 0, list(found)
        for about, line in seen:
            before = last.get(about)
            number += before is None or not _within(before, line, apart)
            last[about] = line
        if number > 1 and apart and any(line.age is None for _, line in seen):
            return self.number(number, "line") + " without a time"
        return "once" if number == 1 and not self.cut else self.number(number, "time")


def read_log(lines: Sequence[KernelLine], expect: Expect) -> KernelLog:
    """The lines of the hours that are expected to be quiet. Those without a time count as new."""
    if expect.kernel_log_since and any(line.age is None for line in lines):
        raise Undecided("the lines of its kernel log have no time: which of them are new is not known")
    kept = tuple(line for line in lines if line.age is None or line.age <= expect.kernel_log_hours * 3600)
    hours = f"{expect.kernel_log_hours:g}"
    span = f"since {expect.kernel_log_since}" if expect.kernel_log_since else f"in {hours} hours"
    return KernelLog(kept, span, len(lines) >= MOST_LINES and kept[:1] == (*lines[:1],))


def when(line: KernelLine) -> str:
    return "" if line.age is None else f"{line.age / 3600:.1f} h ago: "


def _within(before: KernelLine, line: KernelLine, apart: float) -> bool:
    if before.age is None or line.age is None:
        return apart == float("inf")
    return abs(before.age - line.age) < apart


def kills_of(lines: Iterable[KernelLine]) -> list[Kill]:
    return kills((None if line.age is None else -line.age, line.text) for line in lines)
