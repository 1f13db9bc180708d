"""File locks that a process may wait for, and who holds them: from /proc/locks, open files and names in its
stack. No file is opened.
"""

import contextlib
import os
import re
import stat
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from doctor.live.onhost import proc, source

MOST = 8
MOST_OPEN = 256
MOST_HOLDERS = 4
MOST_LOCKS = 1 << 20
"""The most bytes of /proc/locks that are read."""
SCAN = 0.5
"""Seconds for the search for processes that keep a file open."""
FRAMES = 12
_LINE = re.compile(r"(\d+): ( *-> )?(\w+) +\w+ +(\w+) (-?\d+) ([0-9a-f]+:[0-9a-f]+:\d+) ")
_NAME = re.compile(r'"([^"\\]+(?:\.lo?ck|/lock|lockfile))"\Z')
_LIBRARIES = re.compile(r"/(?:filelock|portalocker|fasteners|lockfile)/|/torch/utils/(?:file_baton|cpp_ext)")
_FOLDER = "build_directory", "/torch/utils/cpp_extension.py"
"""A local variable, and the file whose functions wait for the file `lock` in that folder."""

Entry = Any
"""A line of /proc/locks: the number of the lock, whether the process waits for it, its kind, its mode, the
PID and the file.
"""


def entries() -> "list[Entry]":
    text = proc.lenient(proc.PROC + "/locks", MOST_LOCKS)
    return [
        (number, bool(waits), kind, mode, int(pid), file)
        for number, waits, kind, mode, pid, file in _LINE.findall(text)
    ]


def names(frames: "Sequence[Any]") -> "list[tuple[str, str]]":
    """Names of lock files among the local variables of the innermost frames, as py-spy shows these, and how
    each is known: by a "library" of locks, or by the user's "own" innermost function.
    """
    found = []
    for at, frame in enumerate(frames[:FRAMES]):
        file = str(frame.get("filename") or "")
        by = "library" if _LIBRARIES.search(file) else "own" if at == 0 else ""
        for each in (frame.get("locals") or ()) if by else ():
            text = str(each.get("repr") or "")
            if each.get("name") == _FOLDER[0] and file.endswith(_FOLDER[1]):
                text = text[:-1] + '/lock"'
            match = _NAME.match(text)
            if match:
                found.append((match.group(1), by))
    return found[:MOST]


def concerns(pid: int, table: "Sequence[Entry]", named: "Sequence[Any]") -> bool:
    """Whether there may be a lock that it waits for."""
    return bool(named) or any(who == pid if waits else who != pid for _, waits, _, _, who, _ in table)


def of(item: "tuple[int, str, Any, Sequence[tuple[str, str]], Sequence[Entry]]") -> "list[dict[str, Any]]":
    """The locks that a process may wait for. The item: its PID, the prefix of its paths, its rights, the
    names in its stack, and the lines of /proc/locks.
    """
    pid, inside, rights, named, table = item
    asked = {number: file for number, waits, _, _, who, file in table if waits and who == pid}
    holders = {}  # type: dict[str, set[int]]
    kinds = {}  # type: dict[str, str]
    for number, waits, kind, mode, who, file in table:
        if not waits and (number in asked or mode == "WRITE"):
            holders.setdefault(file, set()).add(who)
            kinds[file] = kind
    found = _open_locks(pid, {*asked.values()}, {file for file in holders if pid not in holders[file]}, kinds)
    for path, by in named:
        known = _named(pid, inside, path, rights)
        file = _file(known) if known else ""
        if known and pid not in holders.get(file, ()) and file not in asked.values():
            found[file] = _lock(path, kinds.get(file, ""), by, known)
    for file, lock in found.items():
        held = holders.get(file, ())
        pids = {each for each in held if each > 0 and os.path.exists(f"{proc.PROC}/{each}/stat")}
        pids = pids or _keepers(pid, file)
        lock["holders"] = [one for one in map(_holder, sorted(pids)[:MOST_HOLDERS]) if one]
    return list(found.values())[:MOST]


def _open_locks(
    pid: int, asked: "Collection[str]", others: "Collection[str]", kinds: "Mapping[str, str]"
) -> "dict[str, dict[str, Any]]":
    """The locks that the kernel shows that it waits for, and those of others on files that it has open."""
    # The path is unknown if stat and /proc/locks name the file differently, as on some overlays.
    found = {file: {"path": "", "kind": kinds.get(file, ""), "by": "kernel"} for file in asked}
    for path, about in _open_files(pid):
        file = _file(about)
        if file in asked or file in others:
            found[file] = _lock(path, kinds.get(file, ""), "kernel" if file in asked else "open", about)
    return found


def _lock(path: str, kind: str, by: str, about: os.stat_result) -> "dict[str, Any]":
    age = max(0.0, round(time.time() - about.st_mtime, 1))
    return {"path": path[:4096], "kind": kind, "by": by, "age": age}


def _file(about: os.stat_result) -> str:
    """The file as /proc/locks names it."""
    return f"{os.major(about.st_dev):02x}:{os.minor(about.st_dev):02x}:{about.st_ino}"


def _open_files(pid: int) -> "Iterator[tuple[str, os.stat_result]]":
    folder = f"{proc.PROC}/{pid}/fd"
    with contextlib.suppress(OSError):
        for number in sorted(map(int, os.listdir(folder)))[:MOST_OPEN]:
            with contextlib.suppress(OSError):
                about = os.stat(f"{folder}/{number}")
                if stat.S_ISREG(about.st_mode):
                    yield os.fsencode(os.readlink(f"{folder}/{number}")).decode("utf-8", "replace"), about


def _named(pid: int, inside: str, path: str, rights: Any) -> "os.stat_result | None":
    with contextlib.suppress(OSError, ValueError):
        if not path.startswith("/"):
            path = os.readlink(f"{proc.PROC}/{pid}/cwd") + "/" + path
        with source.acting_as(rights):
            about = os.stat(inside + path)
        return about if stat.S_ISREG(about.st_mode) else None
    return None


def _keepers(own: int, file: str) -> "set[int]":
    """Processes that have this file open: a lock stays while any process that inherited it keeps it open."""
    until = time.monotonic() + SCAN
    found = set()  # type: set[int]
    for pid in proc.pids():
        if time.monotonic() > until or len(found) >= MOST_HOLDERS:
            break
        if pid != own and any(_file(about) == file for _, about in _open_files(pid)):
            found.add(pid)
    return found


def _holder(pid: int) -> "dict[str, Any] | None":
    """Who holds a lock, and how much this process has done so far."""
    home = f"{proc.PROC}/{pid}"
    with contextlib.suppress(OSError, ValueError, IndexError, KeyError):
        name, fields = proc.stat_of(proc.read(home + "/stat"))
        command = " ".join(proc.lenient(home + "/cmdline", 4096).split("\0")[:-1]) or f"[{name}]"
        found = {
            "pid": pid,
            "uid": os.stat(home).st_uid,
            "command": command[:4096],
            "age": max(0.0, round(proc.uptime() - int(fields[19]) / float(proc.TICKS), 1)),
            "state": fields[0],
            "cpu": int(fields[11]) + int(fields[12]),
        }  # type: dict[str, Any]
        with contextlib.suppress(OSError):
            done = proc.counters(home)
            found["moved"] = done["rchar"] + done["wchar"] + done["syscr"] + done["syscw"]
        return found
    return None
