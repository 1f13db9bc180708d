"""The agent of `doctor slow`: that of `doctor hang`, which also looks at its ranks for some time, often.

Further commands: sample (one round, after the search for ranks), ping (what is the time?). Further answers:
rank, profile, devices, round, pong. Each round ends with a look as in `doctor hang`; the first begins with
one, too.
"""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from doctor.live.onhost import look, proc, stacks
from doctor.live.onhost.agent import OF_VERSION, LookAgent, MessageWriter, seconds_of
from doctor.live.onhost.careful import Tool, run_all
from doctor.slow.onhost.record import START, StackRecord, finish
from doctor.slow.onhost.sampling import Round

LONGEST = 900.0
MOST_PARTS = 64
MOST_LINES = 100
SHORTER = 1.0
"""Seconds of a round that py-spy takes to start."""


class SlowAgent(LookAgent):
    def __init__(self) -> None:
        LookAgent.__init__(self)
        self.first = 0.0
        """When the first look began."""
        self.scripts = None  # type: list[Mapping[str, Any]] | None
        """Those that ask the devices that the ranks use; None if that is not known yet."""

    def do(self, what: str, told: "Mapping[str, Any]") -> None:
        if what == "ping":
            self.say("pong", number=told.get("number"), at=time.monotonic())
        elif what == "sample":
            self.then("sample", lambda say: self._sample(told, say))
            self.first = self.first or time.monotonic()

    def _sample(self, told: "Mapping[str, Any]", say: MessageWriter) -> None:
        within = max(1.0, seconds_of(told.get("within"), look.LOOK))
        seconds = min(max(seconds_of(told.get("seconds"), 6.0), 0.2), LONGEST)
        parts = max(1, min(int(told.get("parts") or 1), MOST_PARTS))
        members = self.chosen(set(told["pids"]) if isinstance(told.get("pids"), list) else None)
        pyspy, what, why = self.pyspy(min(stacks.SECONDS, within * OF_VERSION))
        looks = look.Looks(members, pyspy, say, 2 * within)
        looks.silent = {member["pid"] for member in members} - set(told.get("stacks") or ())
        first = self.first or time.monotonic()
        if told.get("first"):
            first = time.monotonic()
            for one in looks.look(within):
                say("look", which="a", look=one)
        if self.scripts is None:
            self.scripts = used(told.get("devices") or [], [member["pid"] for member in members])
        devices = [DeviceReading(self.scripts, "a", seconds)]
        recordings, problems = _recordings(pyspy, why, told, seconds)
        number = told.get("number", 0)
        sampling = Round(members, parts)
        try:
            about = sampling.run(seconds)
        finally:
            sampling.close()
        for count in sampling.ranks + sampling.helpers:
            say("rank", number=number, rank=count.told(about["seconds"]))
        devices.append(DeviceReading(self.scripts, "b", START))
        profiles = problems + finish(recordings)
        said = [one for reading in devices for one in reading.told()]
        frames = {}  # type: dict[int, list[dict[str, Any]]]
        for each in profiles:
            frames.setdefault(each["pid"], []).append({"frames": each.get("frames", [])})
        looks.add_sources(frames, time.monotonic() + look.LINES, MOST_LINES)
        for each in profiles:
            say("profile", number=number, profile=each)
        apart = time.monotonic() - first
        at = time.time() - apart  # The ages of processes are those of the first look, long ago.
        for one in looks.look(within):
            say("look", which="b", look=one)
        self.say_seen(say, looks, at, apart, what, ["Python stacks: " + why] if why else [])
        for one in said:
            say("devices", number=number, devices=one)
        say("round", number=number, links=sampling.told_links(), **about)


def _recordings(
    pyspy: "stacks.PySpy | None", why: str, told: "Mapping[str, Any]", seconds: float
) -> "tuple[list[StackRecord], list[dict[str, Any]]]":
    """The recordings that were asked for, begun, and those that could not begin."""
    begun, failed = [], []  # type: list[StackRecord], list[dict[str, Any]]
    asked = [(pid, False) for pid in told.get("record") or ()] + [
        (pid, True) for pid in told.get("gil") or ()
    ]
    for pid, gil in asked:
        one = _begun(pyspy, pid, seconds, gil) if pyspy else why or "py-spy is not there"
        if isinstance(one, StackRecord):
            begun.append(one)
        else:
            failed.append({"pid": pid, "gil": gil, "problem": one})
    return begun, failed


def _begun(pyspy: "stacks.PySpy", pid: int, seconds: float, gil: bool) -> "StackRecord | str":
    try:
        return StackRecord(pyspy, pid, seconds - SHORTER, gil)
    except (OSError, AttributeError) as error:
        return str(error)[:300]


def main(program: bytes, head: int) -> None:
    del program, head
    SlowAgent().live()


MOST = 600_000
MOST_RANKS = 64
"""The most ranks of a host that are asked what they use."""


def used(scripts: "Sequence[Mapping[str, Any]]", pids: "Sequence[int]") -> "list[Mapping[str, Any]]":
    """The scripts of the vendors whose libraries one of these processes has loaded."""
    maps = [proc.lenient(f"{proc.PROC}/{pid}/maps", 8 << 20) for pid in pids[:MOST_RANKS]] if scripts else []
    return [one for one in scripts if any(re.search(str(one["library"]), each) for each in maps)]


class DeviceReading:
    """The tools of the devices that ranks use, at work beside the samples. The controller brings the scripts,
    and reads what they print. `waits`: for how many seconds nobody will read that.
    """

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
