"""Ends ranks of a job on this host: TERM, a grace, KILL; prints what became of each.

The first line of stdin is the request. A rank is left alone if it is not the process that was seen, or if
nothing shows that the command started it.
"""

import json
import os
import signal
import time
from typing import Any, NamedTuple

from doctor.agents.onhost.request import one_request

SAME = 30.0
"""Seconds by which the start of the same process may seem to differ."""
TICK = 0.1
LAST = 3.0
"""Seconds from KILL to the end."""
ITSELF, TERM, KILL = "itself", "TERM", "KILL"
DENIED, FOREIGN, STUCK = "denied", "foreign", "stuck"
ENVIRONMENT = 1 << 20


class Known(NamedTuple):
    """A process; `start` tells it from a later one with its PID, in ticks since the boot."""

    pid: int
    start: int


def main(program: bytes, head: int) -> None:
    del program, head
    asked = one_request()
    done = end_ranks(asked["ranks"], set(asked["ports"]), asked["itself"], asked["grace"])
    print(f"{asked['token']} {json.dumps(done)}\n{asked['token']} done", flush=True)


def end_ranks(
    ranks: "list[dict[str, Any]]", ports: "set[int]", itself: float, grace: float
) -> "dict[str, str]":
    """What became of each PID. They have `itself` seconds to end without being asked to."""
    became = {}  # type: dict[str, str]
    left = []  # type: list[Known]
    for rank in ranks:
        name, known = str(rank["pid"]), _seen(rank["pid"], rank["start"])
        if known is None:
            became[name] = ITSELF
        elif rank["own"] or _came_by_ssh(known.pid, ports):
            left.append(known)
        else:
            became[name] = FOREIGN
    _until_gone(left, itself)
    became.update({str(each.pid): ITSELF for each in left if not _runs(each)})
    left = [each for each in left if _runs(each)]
    below = {each: _below(each.pid) for each in left}
    denied = {each for each in left if not _send(each, signal.SIGTERM)}
    asked = [each for each in left if each not in denied]
    for each in asked:  # a stopped process does not see TERM
        _send(each, signal.SIGCONT)
    _until_gone(asked, grace)
    still = [each for each in asked if _runs(each)]
    for each in asked:
        for one in [each, *below[each], *_below(each.pid)]:
            _send(one, signal.SIGKILL)
    _until_gone(still, LAST)
    for each in left:
        if each in denied:
            word = DENIED
        elif each not in still:
            word = TERM
        else:
            word = STUCK if _runs(each) else KILL
        became[str(each.pid)] = word
    return became


def _stat(pid: int) -> "list[bytes] | None":
    """The fields of /proc/PID/stat after the name; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _known(pid: int) -> "Known | None":
    fields = _stat(pid)
    return Known(pid, int(fields[19])) if fields and fields[0] not in b"ZX" else None


def _seen(pid: int, began: float) -> "Known | None":
    """The process that began at that time, in seconds since 1970; None if it has ended."""
    known = _known(pid)
    if known is None:
        return None
    with open("/proc/uptime") as file:
        booted = time.time() - float(file.read().split()[0])
    start = booted + known.start / os.sysconf("SC_CLK_TCK")
    return known if abs(start - began) < SAME else None


def _came_by_ssh(pid: int, ports: "set[int]") -> bool:
    """Whether one of these ports is that of the connection in which it was started."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read(ENVIRONMENT).split(b"\0")
    except OSError:
        return False
    found = [each.split() for each in variables if each.startswith(b"SSH_CONNECTION=")]
    return any(len(words) == 4 and words[1].isdigit() and int(words[1]) in ports for words in found)


def _runs(known: Known) -> bool:
    return _known(known.pid) == known


def _below(pid: int) -> "list[Known]":
    parents = {}  # type: dict[int, list[int]]
    for name in os.listdir("/proc"):
        fields = _stat(int(name)) if name.isdigit() else None
        if fields:
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, new = [], list(parents.get(pid, ()))  # type: list[Known], list[int]
    while new:
        one = new.pop()
        known = _known(one)
        found += [known] if known else []
        new += parents.get(one, ())
    return found


def _send(known: Known, number: int) -> bool:
    """Whether it may be sent."""
    try:
        if _runs(known):
            os.kill(known.pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def _until_gone(processes: "list[Known]", seconds: float) -> None:
    until = time.monotonic() + seconds
    while any(map(_runs, processes)) and time.monotonic() < until:
        time.sleep(TICK)
