"""What the kernel's log counts: one event may have several lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from doctor.api import Expect, Undecided
from doctor.facts.processes import MOST_LINES, KernelLine

_CHOSEN = re.compile(
    r"oom-kill:constraint=CONSTRAINT_(?P<why>\w+)(?:.*?,oom_memcg=(?P<group>[^,]+),task_memcg=)?"
)
_KILL = re.compile(
    r"(?P<group>memory cgroup )?out of memory(?: \(\w+\))?: kill(?:ed)? process \d", re.IGNORECASE
)
HOST, GROUP = "NONE", "MEMCG"
"""What had no memory left, as the kernel calls it: the host, or a control group that reached its limit."""
TOGETHER = 5.0
"""A kill that nothing announces belongs to the one this many seconds before: the kernel announces 10 in 5 s,
and of a group that is killed as a whole only the first."""


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
        """How often it happened. `found` is each line with what it is about: lines about the same within
        `apart` seconds are one event.
        """
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


@dataclass(slots=True)
class Kill:
    """A process that the kernel ended for lack of memory. `group` is the control group, if it is named."""

    why: str
    group: str = ""
    lines: list[KernelLine] = field(default_factory=list)


def kills(lines: Iterable[KernelLine]) -> list[Kill]:
    """The kills, each from the line that announces it, if there is one, and the line that reports it."""
    found: list[Kill] = []
    announced = False
    for line in lines:
        if chosen := _CHOSEN.search(line.text):
            found.append(Kill(chosen["why"], chosen["group"] or "", [line]))
            announced = True
        elif killed := _KILL.search(line.text):
            if not announced:
                why = GROUP if killed["group"] else HOST
                first = next((each for each in found[-1:] if each.why == why), None)
                near = first and _within(first.lines[-1], line, TOGETHER)
                found.append(Kill(why, first.group if first and near else ""))
            found[-1].lines.append(line)
            announced = False
    return found
