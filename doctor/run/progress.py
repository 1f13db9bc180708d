"""One line on stderr that says who is still outstanding; where stderr is a log, nothing, or with `verbose` a
line whenever something else begins.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Collection

from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.terminal import tell

EVERY = 0.1
FEW = 32
"""Up to this many outstanding hosts are always shown: a stale line might never be corrected."""


class ProgressLine:
    """Redraws itself in place; `clear` leaves nothing behind."""

    def __init__(self, wanted: bool, *, verbose: bool = False) -> None:
        self._live = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._logs = wanted and verbose and not self._live
        self._drawn = 0.0
        self._doing = ""

    def __call__(self, doing: str, done: int | None, outstanding: Collection[str]) -> None:
        now = time.monotonic()
        if self._logs and doing != self._doing:
            self._doing = doing
            tell(f"{clean_line(doing)}\n")
        if not self._live or (len(outstanding) > FEW and now - self._drawn < EVERY):
            return
        self._drawn = now
        waiting = f", waiting for {fold(outstanding)}" if outstanding else ""
        text = clean_line(doing if done is None else f"{doing}: {done} answered{waiting}")
        width = shutil.get_terminal_size().columns - 1
        tell("\r\x1b[K" + (text if len(text) <= width else text[: width - 1] + "…"), drawn=True)

    def clear(self) -> None:
        if self._live and self._drawn:
            tell("\r\x1b[K", drawn=True)
