"""What one line shows about itself: its form, its level, its time, and who wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from doctor.logs.forms.times import Clock
from doctor.logs.model import Form, Party

LEVELS = {
    **dict.fromkeys(("E", "ERROR", "ERR", "CRITICAL", "EXCEPTION", "SEVERE"), "ERROR"),
    **dict.fromkeys(("F", "C", "FATAL", "EMERG", "ALERT", "CRIT", "PANIC"), "FATAL"),
    **dict.fromkeys(("W", "WARN", "WARNING", "WRN"), "WARN"),
    **dict.fromkeys(("I", "INFO", "INF", "NOTICE", "EVENT", "TRACE", "NORMAL", "VERSION", "ABORT"), "INFO"),
    **dict.fromkeys(("D", "V", "DEBUG"), "DEBUG"),
}


def level_of(word: str) -> str:
    return LEVELS.get(word.upper(), "")


@dataclass(slots=True)
class LineFacts:
    """What is known about a line so far. `start` is where its own text begins, after all prefixes."""

    form: Form = Form.PLAIN
    level: str = ""
    at: float | None = None
    zoned: bool = False
    rank: int | None = None
    task: bool = False
    """Whether `rank` is the number of a task of Slurm, which is not a rank if the task is a torchrun."""
    local: int | None = None
    """The rank within its host."""
    worker: int | None = None
    """The number of a worker of vLLM: its rank, unless several engines number their own."""
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    prefix: int = 0
    """Where the launcher's prefix ends."""
    stamp: tuple[int, int] = (0, 0)
    """Where a time stands in the prefix; it differs from line to line."""
    start: int = 0
    shared: bool = False
    """Whether Ray's or vLLM's prefix names its writer: lines without the prefix have other writers."""
    record: bool = False
    """Whether a logger's header with a level stands before each line of its messages."""
    headed: bool = False
    """Whether it has a header of its own, so that it does not continue the line before."""

    @property
    def party(self) -> Party:
        device = self.local if self.device is None else self.device
        return Party(rank=self.rank, host=self.host, device=device, pid=self.pid)

    def head(self, found: re.Match[str], form: Form, clock: Clock) -> None:
        """Note what the groups of a header say; the line's own text begins behind it."""
        said = found.groupdict()
        self.form, self.headed, self.start = form, True, found.end()
        if said.get("level"):
            self.level = level_of(said["level"])
        if said.get("hour"):
            self.at, self.zoned = clock.at(found)
        self.host = said.get("host") or self.host
        for name in ("pid", "device"):
            if (said.get(name) or "").isdigit():
                setattr(self, name, int(said[name]))

    def inherit(self, head: LineFacts) -> None:
        """Fill in what is missing from the line that this one continues."""
        if self.form is Form.PLAIN:
            self.form = head.form
        self.level = self.level or head.level
        if self.at is None:
            self.at, self.zoned = head.at, head.zoned
        for name in ("rank", "local", "worker", "host", "pid", "device"):
            if getattr(self, name) is None:
                setattr(self, name, getattr(head, name))


Parse = Callable[[str], LineFacts]
"""Reads a line by what is known of its file: the prefix of its lines, and its clock."""
