"""A rank as the agent of its host sees it: its pipes, its page, its process. Python 3.6 and later."""

import contextlib
import math
import mmap
import os
import time
from typing import Any

from doctor.agents.onhost.process import HeldProcess, Idleness, peak_memory
from doctor.agents.onhost.voice import parse
from doctor.smoke.onhost import page
from doctor.smoke.onhost.memory import anonymous

LAST_WORDS = 2048
LONGEST_EVENT = 256 * 1024
PIECE = 65536
PIECES = 2  # per turn: a rank that floods its pipe does not delay the others
STOPPED = 0.3  # seconds; a shorter stop is not reported
SHORT = 0.25  # seconds without a move before its threads are examined, too
SHOWN = page.RankPage.FIELDS.index("inside") + 1
DONE = page.PHASES.index("done")
VERSION, PHASE, STEP, DISTURBED = (
    page.RankPage.FIELDS.index(name) for name in ("version", "phase", "step", "disturbed")
)


class Rank:
    def __init__(self, index: int, told: "dict[str, Any]", cell: "dict[str, Any]") -> None:
        self.index = index
        self.number = int(told["rank"])
        self.place = int(told["place"])
        self.config = dict(cell, local=told["local"], device=told["device"])
        self.events, self._their_events = os.pipe()
        self._their_go, self.go = os.pipe()
        self.output, self._their_output = os.pipe()
        self.stack = anonymous(0)
        for descriptor in (self.events, self.go, self.output):
            os.set_blocking(descriptor, False)
        self.process = None  # type: HeldProcess | None
        self.pid = 0
        self.gone = False
        self.peak = 0
        self.raw_state = ""
        self.state = ""
        self.cpu = 0.0
        self.still = 0.0
        self._idleness = Idleness()
        self._threads = {}  # type: dict[int, Idleness]
        self.page = (0,) * len(page.RankPage.FIELDS)  # type: tuple[Any, ...]
        self._stopped = 0.0
        self._words = b""
        self._line = b""

    # For the process that starts it.

    def seat(self) -> "dict[str, Any]":
        return {
            "index": self.index,
            "place": self.place,
            "config": self.config,
            "events": self._their_events,
            "go": self._their_go,
            "output": self._their_output,
            "stack": self.stack,
        }

    def hand_over(self) -> None:
        for descriptor in (self._their_events, self._their_go, self._their_output):
            os.close(descriptor)

    # Its life.

    def spawned(self, pid: int) -> None:
        self.pid = pid
        with contextlib.suppress(OSError):
            self.process = HeldProcess(pid)

    @property
    def living(self) -> bool:
        return self.pid > 0 and not self.gone

    @property
    def working(self) -> bool:
        """Whether it still has something to do: it stays until all ranks have ended."""
        return self.living and self.page[PHASE] < DONE

    @property
    def can_write_stack(self) -> bool:
        """Whether it handles the signal. Before it has marked its page, the signal would kill it."""
        return bool(self.page[VERSION])

    def ended(self, peak: int) -> None:
        self.gone = True
        self.peak = max(self.peak, peak)
        if self.process is not None:
            self.process.close()

    def measure(self) -> None:
        if self.living:
            self.peak = max(self.peak, peak_memory(self.pid))

    def join(self, line: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self.go, line + b"\n")

    def ask_backend(self) -> None:
        """Ask for what NCCL or HCCL knows; once the rank has joined, one of its threads answers."""
        if self.page[PHASE] > page.PHASES.index("join"):
            self.join(b"evidence")

    # Looking at it.

    def look(self, memory: mmap.mmap, seconds: float) -> "tuple[bool, bool]":
        """Read page and process. Returns whether the page moved, and whether it was stopped or continued."""
        values = page.read(memory, self.index)
        moved = values[VERSION] != self.page[VERSION]
        self.page = values
        if self.process is None:
            self.still = 0.0 if moved else self.still + seconds
            return moved, False
        self.raw_state, self.cpu = self.process.look()
        idle = self._idleness.counted(seconds, self.process.turns(), self.raw_state == "R")
        if moved or self.still < SHORT:
            self._threads = {}
        else:
            idle = min(idle, self._starved(seconds))
        self.still = 0.0 if moved else self.still + idle
        self._stopped = self._stopped + seconds if self.raw_state in ("T", "t") else 0.0
        if self.raw_state in ("T", "t") and self._stopped < STOPPED:
            return moved, False
        news = self.raw_state != self.state and ("T" in (self.raw_state + self.state).upper())
        self.state = self.raw_state
        return moved, news

    def _starved(self, seconds: float) -> float:
        """How many of these seconds the thread that waited longest for a processor did not wait for one."""
        found = self.process.threads() if self.process is not None else {}
        self._threads = {thread: self._threads.get(thread, Idleness()) for thread in found}
        counts = [self._threads[one].counted(seconds, *turns) for one, turns in found.items()]
        return min(counts, default=seconds)

    def shown(self) -> "dict[str, Any]":
        since = float(self.page[DISTURBED])
        return {
            "rank": self.number,
            "page": self.page[:SHOWN],
            "still": round(self.still, 3),
            "state": self.state,
            "cpu": round(self.cpu, 2),
            "disturbed": round(max(0.0, time.monotonic() - since), 4) if 0 < since < math.inf else None,
        }

    # Its output.

    def read_output(self) -> None:
        for data in _pieces(self.output):
            self._words = (self._words + data)[-LAST_WORDS:]

    @property
    def words(self) -> str:
        return self._words.decode("utf-8", "replace")

    def fatal_error(self) -> str:
        """What Python wrote about the signal that killed it, if anything."""
        _, found, rest = os.pread(self.stack, 1 << 20, 0).rpartition(b"Fatal Python error")
        stack = rest.partition(b"\nExtension modules")[0] if found else b""
        return (found + stack)[:LAST_WORDS].decode("utf-8", "replace")

    def read_events(self) -> "list[dict[str, Any]]":
        """The complete events that have arrived. Anything else in this pipe is dropped."""
        found = []
        for data in _pieces(self.events):
            lines = (self._line + data).split(b"\n")
            self._line = lines.pop()
            if len(self._line) > LONGEST_EVENT:
                self._line = b""
            for line in lines:
                event = parse(line)
                if event is not None:
                    found.append(event)
        return found


def _pieces(descriptor: int) -> "list[bytes]":
    pieces = []
    with contextlib.suppress(OSError):
        for _ in range(PIECES):
            data = os.read(descriptor, PIECE)
            if not data:
                break
            pieces.append(data)
    return pieces
