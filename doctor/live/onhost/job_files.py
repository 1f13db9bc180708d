"""Files that a job writes: status files, dumps, logs. Reading them may block, so careful.py calls this. Each
function reads one item, and returns None if there is nothing to read.

The paths come from the environment of a process that anybody may have written. So only regular files with the
expected name and the owner of the process are read, and only the expected content is passed on.
"""

import calendar
import contextlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from doctor.agents.onhost.recorder import MOST as MOST_DUMP
from doctor.agents.onhost.recorder import UnreadableDump, numbers

TAIL = 65536
MOST_NAMES = 20000
MOST_LINES = 40
LONGEST_LINE = 1500
_LOST = re.compile(rb"Cluster Exception Location\[")
_TIMED_OUT = re.compile(rb"The node: \S{1,64} is timed out")


def status(item: "tuple[Any, ...]") -> "dict[str, Any] | None":
    """torch_npu's status file of one process. `item`: folder, PIDs of the process, user, start."""
    folder, pids, uid, start = item
    ending = re.compile(
        r"torch_hccl_status-\d+_.+_\d+_\d+_(?:{})_\d+\.log\Z".format("|".join(map(str, pids)))
    )
    path = _newest(folder, ending)
    data, at = _read(path, TAIL, uid, start) if path else (None, 0.0)
    if data is None:
        return None
    try:
        kept = {"last_comm_op": json.loads(data.decode("utf-8", "replace"))["last_comm_op"][:1000]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {"name": path, "at": at, "problem": "it is cut off, or has an unknown form"}
    return {"name": path, "at": at, "text": json.dumps(kept)}


def dump(item: "tuple[Any, ...]") -> "dict[str, Any] | None":
    """A dump of the flight recorder; empty if there is none. `item`: path, user, process's start."""
    path, uid, start = item
    data, at = _read(path, MOST_DUMP + 1, uid, start)
    if data is None:
        return {}
    try:
        return {"name": path, "at": at, "text": numbers(data)}
    except UnreadableDump as error:
        return {"name": path, "at": at, "problem": str(error)}


def plog(item: "tuple[Any, ...]") -> "dict[str, Any] | None":
    """Lines of a process's newest plog that name a place. `item`: log folder, PIDs, user, start."""
    folder, pids, uid, start = item
    ending = re.compile(r"plog-(?:{})_\d+\.log\Z".format("|".join(map(str, pids))))
    path = _newest(os.path.join(folder, "debug", "plog"), ending)
    return _lines(path, _LOST, uid, start) if path else None


def scheduler(item: "tuple[Any, ...]") -> "dict[str, Any] | None":
    path, uid, start = item
    return _lines(path, _TIMED_OUT, uid, start)


def pace(item: "tuple[Any, ...]") -> "dict[str, Any] | None":
    """Seconds for a step, by the end of a rank's own log. `item`: path, user, process's start."""
    path, uid, start = item
    data, at = _read(path, TAIL, uid, start, tail=True)
    seconds = step_seconds(data or b"")
    return None if seconds is None else {"name": path, "at": at, "text": f"{seconds:.3f}"}


def _newest(folder: str, ending: "Any") -> str:
    found = ("", -1.0)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count > MOST_NAMES:
                break
            if ending.match(entry.name):
                with contextlib.suppress(OSError):
                    at = entry.stat(follow_symlinks=False).st_mtime
                    found = max(found, (entry.path, at), key=lambda pair: pair[1])
    return found[0]


def _lines(path: str, wanted: "Any", uid: int, start: float) -> "dict[str, Any] | None":
    data, at = _read(path, TAIL, uid, start, tail=True)
    lines = [line[:LONGEST_LINE] for line in (data or b"").split(b"\n") if wanted.search(line)][-MOST_LINES:]
    if not lines:
        return None
    return {"name": path, "at": at, "text": b"\n".join(lines).decode("utf-8", "replace")}


def _read(path: str, most: int, uid: int, start: float, tail: bool = False) -> "tuple[bytes | None, float]":
    """The first or last bytes of a file that was written after `start`, and its time; None if unusable."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (OSError, ValueError):
        return None, 0.0
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != uid or about.st_mtime < start:
            return None, 0.0
        if tail:
            os.lseek(handle, max(0, about.st_size - most), os.SEEK_SET)
        data = b""
        while len(data) < most:
            piece = os.read(handle, min(1 << 20, most - len(data)))
            if not piece:
                break
            data += piece
        return data, about.st_mtime
    except OSError:
        return None, 0.0
    finally:
        os.close(handle)


LAST = 20
"""How many of the last steps count."""
LONGEST = 86400.0
_BAR = re.compile(rb"/(\d{1,12}) \[[^\]]{0,60}?, {1,4}(\d{1,6}(?:\.\d{1,6})?)(s/it|it/s)")
_MILLISECONDS = re.compile(rb"elapsed time per iteration \(ms\): (\d{1,9}(?:\.\d{1,6})?)")
_STEP = re.compile(
    rb"(?i)\b(?:global[_ ]?step|step|iteration|iter)\b[\"']?\s{0,4}[:=\[#]?\s{0,8}(\d{1,12})\b"
)
_TIME = re.compile(rb"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")


def step_seconds(text: bytes) -> "float | None":
    """The median of the last steps, by progress bars, rates, or times beside numbers of steps; None if the
    log does not show it. Of several bars or counters, the shortest counts: an outer one counts epochs.
    """
    found = {}  # type: dict[bytes, list[float]]
    for label, seconds in _lengths(text):
        if 0 < seconds < LONGEST:
            found.setdefault(label, []).append(seconds)
    return min((median(some[-LAST:]) for some in found.values()), default=None)


def _lengths(text: bytes) -> "Iterator[tuple[bytes, float]]":
    for total, number, unit in _BAR.findall(text):
        value = float(number)
        if value:
            yield total, value if unit == b"s/it" else 1 / value
    for number in _MILLISECONDS.findall(text):
        yield b"ms", float(number) / 1000
    last = None  # type: tuple[int, float] | None
    for line in text.split(b"\n"):
        step, at = _STEP.search(line), _TIME.search(line)
        if step and at:
            now = int(step.group(1)), _seconds(at)
            if last and now[0] > last[0]:
                yield b"lines", (now[1] - last[1]) / (now[0] - last[0])
            last = now


def _seconds(at: "re.Match[bytes]") -> float:
    try:
        whole = time.strptime((at.group(1) + b" " + at.group(2)).decode("ascii"), "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return 0.0
    return calendar.timegm(whole) + float(b"0." + (at.group(3) or b"0"))
