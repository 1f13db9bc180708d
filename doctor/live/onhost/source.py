"""The text of lines in Python files. Reading them may block, so careful.py calls this."""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Any

Rights = Any
"""A result of proc.rights: user, group and further groups."""

MOST = 4 << 20
LONGEST = 400
INNERMOST = 3


CHANGED = "changed"
"""In place of all lines: the file is younger than the process, which runs what was there before."""


def lines(item: "tuple[str, Sequence[int], Rights | None, float]") -> "dict[str, str]":
    """The lines with these numbers. The path comes from the memory of a process that anybody may have
    written. So the file must be a regular one whose real name ends in .py, and it is read with the rights of
    that process. The last part of the item is when the process started, in seconds since 1970.
    """
    path, numbers, rights, since = item
    with acting_as(rights):
        return _lines(path, numbers, since)


@contextlib.contextmanager
def acting_as(rights: "Rights | None") -> "Iterator[None]":
    """If we are root, act with the user and the groups of a process."""
    if os.geteuid() != 0 or rights is None:
        yield
        return
    user, group, groups = rights
    before = os.getegid(), os.getgroups()
    try:
        os.setgroups(groups)
        os.setegid(group)
        os.seteuid(user)
        yield
    finally:
        os.seteuid(0)
        os.setegid(before[0])
        os.setgroups(before[1])


def _lines(path: str, numbers: "Sequence[int]", since: float) -> "dict[str, str]":
    real = os.path.realpath(path)
    if not (path.startswith("/") and real.endswith(".py")):
        return {}
    try:
        handle = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return {}
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > MOST:
            return {}
        if max(about.st_mtime, about.st_ctime) > since:
            return {CHANGED: ""}
        with open(handle, "rb", closefd=False) as file:
            found = file.read(MOST).split(b"\n")
    except OSError:
        return {}
    finally:
        os.close(handle)
    wanted = [number for number in numbers if 0 < number <= len(found)]
    return {str(n): _text(found, n).decode("utf-8", "replace").strip()[:LONGEST] for n in wanted}


def _text(found: "Sequence[bytes]", number: int, far: int = 20) -> bytes:
    """The line. One that sleeps follows what its loop tests, or what failed before it."""
    line = found[number - 1]
    deep = len(line) - len(line.lstrip())
    for at in range(number - 2, max(-1, number - far), -1) if b"sleep(" in line else ():
        above = found[at].lstrip()
        if above.strip() and len(found[at]) - len(above) < deep:
            deep = len(found[at]) - len(above)
            failed = above.startswith(b"except")
            if failed or above.startswith(b"while "):
                tries = found[at - failed].strip()
                return line if tries[6:10] in (b"True", b"1:") else tries + b" ... " + line.strip()
    return line


def wanted(threads: "list[dict[str, Any]]", is_users: Any, most: int = INNERMOST) -> "list[dict[str, Any]]":
    """The innermost frames of the user's own code in each thread."""
    return [f for one in threads for f in [f for f in one["frames"] if is_users(f["file"])][:most]]
