"""Python stacks of a rank, many a second, by py-spy's record mode, which costs far less than its dumps."""

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from doctor.live.onhost.careful import Tool, run_all
from doctor.live.onhost.stacks import PySpy, frame

RATE = 20
GIL_RATE = 50
"""Samples a second: of stacks, and of who holds the GIL."""
START = 6.0
"""Seconds that py-spy may take to read symbols and to write its file."""
MOST = 32 << 20
MOST_STACKS, DEEPEST, MOST_FRAMES = 80, 30, 600
PARTS = 8
_THREAD = re.compile(r"thread \((0x[0-9a-fA-F]+|\d+)\)|Thread (0x[0-9a-fA-F]+|\d+)")


class StackRecord:
    """One py-spy at work on one process. What it writes stays in memory."""

    def __init__(self, pyspy: PySpy, pid: int, seconds: float, gil: bool = False) -> None:
        """Raises OSError. Never without --nonblocking: py-spy would stop the process again and again."""
        self.pid, self.gil = pid, gil
        self.rate = GIL_RATE if gil else RATE
        self.file = os.memfd_create("stacks")  # type: ignore[attr-defined, unused-ignore]
        how = ("--gil",) if gil else ("--idle",)
        whole = max(1, int(seconds))
        argv = [
            *(pyspy.path, "record", "--nonblocking", *how, "--threads", "--full-filenames"),
            *("--format", "speedscope", "--rate", str(self.rate), "--duration", str(whole)),
            *("--output", f"/proc/self/fd/{self.file}", "--pid", str(pid)),
        ]
        try:
            self.tool = Tool(argv, whole + START, 1 << 16, (*pyspy.keep, self.file), reads=True)
        except OSError:
            os.close(self.file)
            raise
        self.expected = whole * self.rate

    def told(self, code: "int | None") -> "dict[str, Any]":
        """The profile, or the reason why there is none."""
        try:
            size = os.fstat(self.file).st_size
            if code != 0 or not 0 < size <= MOST:
                said = self.tool.err.decode("utf-8", "replace").strip().splitlines()
                why = self.tool.why or next(
                    (line for line in said if line.startswith("Error")), "it wrote nothing"
                )
                return {"pid": self.pid, "gil": self.gil, "problem": why[:300]}
            data = os.pread(self.file, size, 0)
        finally:
            os.close(self.file)
        try:
            found = profile(json.loads(data.decode("utf-8", "replace")), self.pid)
            return dict(found, gil=self.gil, asked=self.expected)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            why = "the output of py-spy is not understood: " + str(error)[:200]
            return {"pid": self.pid, "gil": self.gil, "problem": why}


def finish(recordings: "Sequence[StackRecord]") -> "list[dict[str, Any]]":
    """Wait until all have ended, each by its own limit."""
    starts = [lambda one=one: one.tool for one in recordings]
    found = []
    for place, _, code in run_all(starts, max(1, len(starts))):
        found.append(recordings[place].told(code))
    return found


def profile(said: "Mapping[str, Any]", pid: int) -> "dict[str, Any]":
    """A file of speedscope as counts of equal stacks, the innermost frame first, in parts of the time."""
    known = said["shared"]["frames"]
    counts = Counter()  # type: Counter[tuple[bool, tuple[int, ...], int]]
    whole = 0
    for each in said["profiles"]:
        samples = each["samples"]
        main = _tid(str(each.get("name") or "")) == pid or "MainThread" in str(each.get("name"))
        whole = max(whole, len(samples))
        for at, stack in enumerate(samples):
            inner = [f for f in reversed(stack) if not _THREAD.match(str(known[f].get("name")))]
            counts[main, tuple(inner[:DEEPEST]), min(PARTS - 1, at * PARTS // len(samples))] += 1
    stacks = {}  # type: dict[tuple[bool, tuple[int, ...]], list[int]]
    for (main, stack, part), number in counts.items():
        stacks.setdefault((main, stack), [0] * PARTS)[part] += number
    often = sorted(stacks.items(), key=lambda each: -sum(each[1]))[:MOST_STACKS]
    used, frames, told = {}, [], []  # type: dict[int, int], list[dict[str, Any]], list[dict[str, Any]]
    for (main, stack), parts in often:
        if len(used) + len(stack) > MOST_FRAMES:
            break
        for number in stack:
            if number not in used:
                used[number] = len(frames)
                frames.append(frame(known[number]))
        told.append({"main": main, "frames": [used[number] for number in stack], "counts": parts})
    in_main = [0] * PARTS
    for (main, _, part), number in counts.items():
        in_main[part] += number if main else 0
    return {"pid": pid, "samples": whole, "main": in_main, "frames": frames, "stacks": told}


def _tid(name: str) -> int:
    found = _THREAD.search(name)
    with contextlib.suppress(ValueError, TypeError):
        return int(found.group(1) or found.group(2), 0) if found else 0
    return 0
