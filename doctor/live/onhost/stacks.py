"""Python stacks from py-spy, without stopping the processes. The only local variables that leave this module
are step, rank, its number on its host, and world size.
"""

import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from doctor.live.onhost import locks
from doctor.live.onhost.careful import Tool, run_all

SECONDS = 5.0
"""Seconds for one answer, while other processes wait for their turn."""
SILENT = "no answer within "
MOST = 4 << 20
MOST_THREADS = 256
INNER, OUTER = 100, 40
"""How many of the innermost and the outermost frames of a stack are kept."""
DUMP = ("dump", "--nonblocking", "--json", "--locals")
"""Never without --nonblocking: py-spy would stop the process, or wait forever if it cannot be stopped."""
STEPS = ("step", "global_step", "iteration", "iter_num", "step_idx", "batch_idx", "batch_id", "it", "itr")
WEAK = ("i", "idx")
"""Counters of any loop: they count only if exactly one function of the user's code has one, and it is no
comprehension.
"""
INLINE = ("comp>", "genexpr>")
NUMBERS = {"rank": ("global_rank", "rank"), "local": ("local_rank",), "world": ("world_size", "world")}
SPAWNED = ("_wrap", "/torch/multiprocessing/spawn.py", "i")
"""The function that runs a process of mp.spawn, its file, and the variable with the number on this host."""
_NOT_USERS = re.compile(r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|^<")


class PySpy:
    """A py-spy. `path`: the program. `descriptor`: the descriptor that holds it, if it is only in memory."""

    def __init__(self, path: str, descriptor: "int | None" = None) -> None:
        self.path = path
        self.keep = () if descriptor is None else (descriptor,)

    def argv(self, pid: int) -> "list[str]":
        return [self.path, *DUMP, "--pid", str(pid)]

    def version(self, seconds: float = SECONDS) -> "tuple[str, str]":
        """Its name and version, and why it cannot be used; one of the two is empty."""
        try:
            [(_, tool, code)] = run_all([lambda: Tool([self.path, "--version"], seconds, 4096, self.keep)], 1)
        except OSError as error:
            return "", error.strerror or str(error)
        said = " ".join(tool.out.decode("ascii", "replace").split())[:60]
        if code == 0 and not said.startswith("py-spy "):
            return "", "it is another program"
        return (said, "") if code == 0 else ("", tool.why or f"exit status {code}")


def dumps(
    pyspy: PySpy, owners: "Mapping[int, str]", at_once: int, seconds: float = math.inf
) -> "tuple[dict[int, list[dict[str, Any]]], dict[int, str]]":
    """The threads of each process, and for the others the reason why there are none, within `seconds`. A
    failed dump is tried once more, because a running process may change while it is read and a busy host may
    be slow. `owners` keeps one user's processes from delaying another's.
    """
    until = time.monotonic() + seconds
    found = {}  # type: dict[int, list[dict[str, Any]]]
    failed = {}  # type: dict[int, str]
    for _ in range(2):
        todo = [pid for pid in owners if pid not in found]
        starts = [partial(_dump, pyspy, pid, until) for pid in todo]
        try:
            for place, tool, code in run_all(starts, at_once, [owners[pid] for pid in todo], until):
                pid = todo[place]
                stack, why = (
                    _read(bytes(tool.out)) if code == 0 else ([], tool.why or _words(bytes(tool.err)))
                )
                if why:
                    failed[pid] = why
                else:
                    found[pid] = stack
                    failed.pop(pid, None)
        except OSError as error:
            failed.update((pid, str(error.strerror)) for pid in todo if pid not in found)
        failed = {**dict.fromkeys(set(todo) - {*found}, SILENT), **failed}
    silent = f"{SILENT}{max(seconds, 0.1):.2g} s"
    return found, {pid: silent if why.startswith(SILENT) else why for pid, why in failed.items()}


def _dump(pyspy: PySpy, pid: int, until: float) -> Tool:
    seconds = max(0.0, min(SECONDS, until - time.monotonic()))
    return Tool(pyspy.argv(pid), seconds, MOST, pyspy.keep, reads=True)


def _read(out: bytes) -> "tuple[list[dict[str, Any]], str]":
    try:
        return threads(json.loads(out.decode("utf-8", "replace"))), ""
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return [], "the output of py-spy is not understood: " + str(error)[:200]


def _words(err: bytes) -> str:
    lines = [line.strip() for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith("Reason")), "")
    return " ".join((lines[:1] or ["it printed nothing"]) + [reason])[:300]


def threads(said: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
    """The output of py-spy as evidence. `rank`, `local` and `world` are added if local
    variables give them."""
    return [_thread(each) for each in said[:MOST_THREADS]]


def _thread(said: "dict[str, Any]") -> "dict[str, Any]":
    frames = said["frames"]
    ends = frames[:INNER] + frames[-OUTER:]
    thread = {
        "tid": max(0, int(said.get("os_thread_id") or 0)),
        "name": str(said.get("thread_name") or "")[:256],
        "owns_gil": bool(said.get("owns_gil")),
        "frames": [frame(each) for each in (frames if len(frames) <= INNER + OUTER else ends)],
    }
    users = [each for each in frames if is_users(str(each.get("filename") or ""))]
    thread["locks"] = locks.names(frames)
    step = _number(users, STEPS)
    if step is None:
        loops = [each for each in users if _number([each], WEAK) is not None]
        alone = len(loops) == 1 and not str(loops[0].get("name")).endswith(INLINE)
        step = _number(loops, WEAK) if alone else None
    if step is not None:
        thread["step"] = step
    for key, names in NUMBERS.items():
        number = _number(users[::-1], names)
        if number is not None:
            thread[key] = number
    name, file, variable = SPAWNED
    own = [each for each in frames if each.get("name") == name and str(each.get("filename")).endswith(file)]
    spawned = _number(own, (variable,))
    if spawned is not None:
        thread["local"] = spawned
    return thread


def frame(said: "Mapping[str, Any]") -> "dict[str, Any]":
    return {
        "name": str(said.get("name") or "?")[:256],
        "file": str(said.get("filename") or said.get("short_filename") or said.get("file") or "?")[:4096],
        "line": max(0, int(said.get("line") or 0)),
    }


def is_users(file: str) -> bool:
    return _NOT_USERS.search(file) is None


def _number(frames: "list[dict[str, Any]]", names: "Sequence[str]") -> "int | None":
    """The value of the first local variable that has one of these names and is a number; None if none is."""
    for frame in frames:
        known = {each.get("name"): each.get("repr") for each in frame.get("locals") or () if each.get("repr")}
        for name in names:
            if re.match(r"\d{1,15}\Z", str(known.get(name, ""))):
                return int(known[name])
    return None


def processors() -> int:
    with_affinity = getattr(os, "sched_getaffinity", None)
    return len(with_affinity(0)) if with_affinity else os.cpu_count() or 1
