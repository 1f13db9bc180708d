"""What a run is doing, on stderr: a line that redraws itself on a terminal, an occasional line in a log.

A thread draws, so that the clock runs while hosts are silent, and a held terminal (Ctrl-S) does not hold up
the run. Between two redraws the cursor waits at the start of the line: whatever happens then, such as a
narrower window or ^C, erasing from the cursor on erases the whole line. So `rich` only lays the line out, and
its Live does not draw it.
"""

import io
import sys
import threading
import time
from contextlib import suppress
from itertools import islice

from doctor.report.out.formats import Outputs
from doctor.stage import Stage
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line
from doctor.text.ranks import ranks_text
from doctor.text.speech import t
from doctor.text.terminal import can_redraw, coloured, room, taken, tell
from doctor.text.trace import began, trace

REDRAW = 0.2
LOG = 10.0
"""Seconds of a phase before its first line in a log, and between two lines."""
STILL = 5.0
"""Seconds without progress before the line says so."""
MOST_NAMES = 200
"""The most host names that are folded into a line: no line has room for more."""
BAR, ROOM_FOR_BAR = 16, 80
"""The width of the bar, and the least width of a terminal that gets one, in columns."""


class ProgressLine:
    """Called with each stage; `clear` leaves nothing behind."""

    def __init__(self, wanted: bool, *, verbose: bool = False, colour: bool = True) -> None:
        self.live = wanted and can_redraw(sys.stderr)
        self._wanted = wanted
        self._verbose = verbose
        self._colour = colour
        self._began = self._moved = self._logged = time.monotonic()
        self._stage: Stage | None = None
        self._drawn = ""
        self._pen = threading.Lock()
        self._over = threading.Event()

    def __call__(self, stage: Stage) -> None:
        before, now = self._stage, time.monotonic()
        if stage != before:
            self._moved = now
        self._stage = stage
        if before is None or before.phase != stage.phase:
            self._logged = now
        begins = before is None or (before.phase, before.part) != (stage.phase, stage.part)
        if begins:
            trace("", f"{stage.phase}: {stage.doing}")
        if begins and self._verbose and self._wanted and not self.live:
            tell(f"doctor: {words(stage, 0.0, now - self._began)}\n")
        if before is None and self._wanted:
            with suppress(RuntimeError):  # if no thread can start, another finding reports it
                threading.Thread(target=self._keep_on, name="progress", daemon=True).start()

    def show(self, now: float) -> None:
        """Draw the line, or log it if it is due."""
        with self._pen:
            if (stage := self._stage) is None or not self._wanted or self._over.is_set():
                return
            still, ran = now - self._moved, now - self._began
            if not self.live:
                if now - self._logged >= LOG:
                    self._logged = now
                    tell(f"doctor: {words(stage, still, ran)}\n")
            elif not taken(sys.stderr):
                line = drawn(stage, still, ran, room(sys.stderr), self._colour)
                if line != self._drawn:
                    tell(f"{self._erasing()}{line}\r", drawn=True)
                    self._drawn = line

    def clear(self) -> None:
        self._over.set()
        with self._pen:
            if self._drawn and not taken(sys.stderr):
                tell(self._erasing(), drawn=True)
            self._drawn = ""

    def _erasing(self) -> str:
        return "\r\x1b[J" if self._colour else f"\r{' ' * len(self._drawn)}\r"

    def _keep_on(self) -> None:
        while not self._over.wait(REDRAW if self.live else 1.0):
            self.show(time.monotonic())


def progress_line(outputs: Outputs) -> ProgressLine:
    colour = coloured(sys.stderr, outputs.colours)
    return ProgressLine(not outputs.quiet and not began, verbose=outputs.verbose, colour=colour)


def words(stage: Stage, still: float, ran: float) -> str:
    """The line as written to a log."""
    return "  ".join(filter(None, (clean_line(t(stage.phase)), *map(t, _parts(stage, still)), _clock(ran))))


def drawn(stage: Stage, still: float, ran: float, columns: int, colour: bool) -> str:
    """The line as drawn on a terminal, never wider than `columns`."""
    from rich.console import Console, RenderableType
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = Text(clean_line(t(stage.phase)), style="bold", no_wrap=True)
    body = Text("  ", no_wrap=True, overflow="ellipsis").join(Text(t(part)) for part in _parts(stage, still))
    still = 0.0 if stage.patient else still
    if still >= STILL:
        body.stylize("yellow")
    bar = ProgressBar(stage.of, stage.done, BAR, complete_style="cyan", finished_style="cyan")
    line = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    cells: list[RenderableType] = [head, body, Text(_clock(ran), style="dim", no_wrap=True)]
    if colour and stage.of and still < STILL and columns + 1 >= ROOM_FOR_BAR:
        cells.insert(1, bar)
    for cell in cells:
        line.add_column(no_wrap=cell is not body, width=BAR if cell is bar else None)
    line.add_row(*cells)
    canvas = Console(
        file=io.StringIO(), width=columns, force_terminal=True, color_system="standard" if colour else None
    )
    with canvas.capture() as seen:
        canvas.print(line, end="", no_wrap=True, crop=True)
    first, _, _ = seen.get().partition("\n")
    return first


def _parts(stage: Stage, still: float) -> list[str]:
    parts = [clean_line(stage.doing)]
    if still >= STILL and not stage.patient:
        limit = f", limit {stage.limit:.0f} s" if stage.limit else ""
        parts.append(f"no move for {still:.0f} s{limit}")
    if stage.waiting:
        names = list(islice(stage.waiting, MOST_NAMES + 1))  # in one step: other threads may change it
        more = ", …" if len(names) > MOST_NAMES else ""
        ranks = f"{ranks_text(stage.ranks, most=3)} on " if stage.ranks else ""
        parts.append(f"waiting for {ranks}{clean_line(fold(names[:MOST_NAMES]))}{more}")
    return parts


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
