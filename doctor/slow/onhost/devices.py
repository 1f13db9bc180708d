"""Asks the tools of the devices that ranks use, at the beginning and at the end of a round.

The controller brings the scripts, and reads what they print. They run beside the samples.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from doctor.live.onhost import proc
from doctor.live.onhost.careful import Tool, run_all

MOST = 600_000
MOST_RANKS = 64
"""The most ranks of a host that are asked what they use."""


def used(scripts: "Sequence[Mapping[str, Any]]", pids: "Sequence[int]") -> "list[Mapping[str, Any]]":
    """The scripts of the vendors whose libraries one of these processes has loaded."""
    maps = [proc.lenient(f"{proc.PROC}/{pid}/maps", 8 << 20) for pid in pids[:MOST_RANKS]] if scripts else []
    return [one for one in scripts if any(re.search(str(one["library"]), each) for each in maps)]


class DeviceReading:
    """All scripts at work. `waits`: for how many seconds nobody will read what they print."""

    def __init__(self, scripts: "Sequence[Mapping[str, Any]]", which: str, waits: float = 0.0) -> None:
        self.which = which
        self.running = []  # type: list[tuple[Mapping[str, Any], Tool]]
        self.failed = []  # type: list[dict[str, Any]]
        for one in scripts:
            self._start(one, float(one["seconds"]) + waits)

    def _start(self, one: "Mapping[str, Any]", seconds: float) -> None:
        try:
            self.running.append((one, Tool(["sh", "-c", str(one["script"])], seconds, MOST)))
        except OSError as error:
            self.failed.append(self._told(one, "", str(error)))

    def told(self) -> "list[dict[str, Any]]":
        """What they printed, once all have ended."""
        found = list(self.failed)
        starts = [lambda tool=tool: tool for _, tool in self.running]
        for place, tool, code in run_all(starts, 4):
            text = bytes(tool.out).decode("utf-8", "replace")
            why = "" if code is not None else tool.why or "it did not end"
            found.append(self._told(self.running[place][0], "" if why else text, why))
        return found

    def _told(self, one: "Mapping[str, Any]", text: str, problem: str) -> "dict[str, Any]":
        return {"tool": one["tool"], "which": self.which, "text": text, "problem": problem[:300]}
