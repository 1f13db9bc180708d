"""Runs reads and tools that may never return in child processes, which are abandoned if they take too long.

A file of /proc can block while a lock on its process's memory is held; any file can block on a dead file
system.
"""

import contextlib
import heapq
import json
import math
import os
import resource
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from doctor.agents.onhost.process import default_signals, die_with_parent, state_of

STALL = 1.0
HUNGRY = 10.0
"""Seconds that a reader may take if it only waits for CPU time."""
MOST_STALLS = 24
PIECE = 65536
MEMORY = 512 << 20
"""Bytes of memory for a process that reads what a job has written."""
EASE = 0.3
"""Seconds that a killed process may take to end."""


def carefully(
    work: "Callable[[Any], Any]",
    items: "Sequence[Any]",
    stall: float = STALL,
    owners: "Sequence[Any]" = (),
    until: float = math.inf,
) -> "Iterator[tuple[Any, Any]]":
    """Each item with the result of `work`, a JSON value. The result is None if `work` failed or did not
    return in time, or if there was no time left for the item. The `owners` of the items share the time
    equally.
    """
    owners = owners or [None] * len(items)
    turns = OwnerTurns(owners)
    stalls = dict.fromkeys(owners, 0)
    while turns.next() is not None and time.monotonic() < until:
        for at, value in _in_child(work, items, turns, stall, until):
            yield items[at], value
        at = turns.next()  # type: ignore[assignment]
        if at is not None and time.monotonic() < until:
            stalls[owners[at]] += 1
            if stalls[owners[at]] < MOST_STALLS:
                turns.over(stall)
                yield items[at], None
            else:
                yield from ((items[each], None) for each in turns.give_up())
    while turns.next() is not None:
        yield from ((items[each], None) for each in turns.give_up())


def _in_child(
    work: "Callable[[Any], Any]", items: "Sequence[Any]", turns: "OwnerTurns", stall: float, until: float
) -> "Iterator[tuple[int, Any]]":
    """Run `work` in a child, and yield the index and the result of each item until one takes too long. Both
    processes take the items in the same order.
    """

    def work_in_turn(out: "BinaryIO") -> None:
        bound_memory()
        _take_turns(work, items, turns, out)

    child, ear = forked(work_in_turn)
    begun = b""
    poll = select.poll()
    poll.register(ear, select.POLLIN)
    try:
        while time.monotonic() < until:
            since = time.monotonic()
            while not poll.poll(100):
                waited = time.monotonic() - since
                if waited > (HUNGRY if state_of(child) == "R" else stall) or since + waited > until:
                    return
            data = os.read(ear, PIECE)
            if not data:
                return
            lines = (begun + data).split(b"\n")
            begun = lines.pop()
            for line in lines:
                at = turns.next()
                assert at is not None
                seconds, value = json.loads(line.decode("ascii"))
                turns.over(seconds)
                yield at, value
    finally:
        os.close(ear)
        end(child)


def _take_turns(
    work: "Callable[[Any], Any]", items: "Sequence[Any]", turns: "OwnerTurns", out: "BinaryIO"
) -> None:
    at = turns.next()
    while at is not None:
        began = time.monotonic()
        value = json.dumps(work(items[at]))
        seconds = time.monotonic() - began
        out.write(f"[{seconds!r}, {value}]\n".encode("ascii"))
        out.flush()
        turns.over(seconds)
        at = turns.next()


def bound_memory() -> None:
    """Limit the memory of this process. Libraries that it maps do not count."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    with contextlib.suppress(OSError, ValueError):
        soft = MEMORY if most == resource.RLIM_INFINITY else min(MEMORY, most)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, most))


def forked(work: "Callable[[BinaryIO], None]") -> "tuple[int, int]":
    """Let a child do this work; it ends with this process. Returns its PID, and a pipe with what it says."""
    ear, mouth = os.pipe()
    me = os.getpid()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            default_signals()
            die_with_parent(me)
            os.close(ear)
            with open(mouth, "wb") as out:
                work(out)
            code = 0
        finally:
            os._exit(code)
    os.close(mouth)
    return child, ear


def end(child: int) -> None:
    """End a child. One that cannot be killed is left to the process that ends us."""
    until = time.monotonic() + EASE
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        while not os.waitpid(child, os.WNOHANG)[0] and time.monotonic() < until:
            time.sleep(0.002)


class Tool:
    """A running program, with at most `most` bytes of output, which ends by its deadline. `reads`: it reads
    the memory of processes that may be hostile, so its own memory is limited.
    """

    def __init__(
        self,
        argv: "Sequence[str]",
        seconds: float,
        most: int,
        keep: "Sequence[int]" = (),
        reads: bool = False,
    ) -> None:
        """Raises OSError if it cannot be started."""
        self.out, self.err, self.why = bytearray(), bytearray(), ""
        self.most = most
        self.deadline = time.monotonic() + seconds
        self.seconds = seconds
        me = os.getpid()

        def begin() -> None:
            die_with_parent(me)
            if reads:
                bound_memory()

        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=tuple(keep),
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            preexec_fn=begin,
        )
        self.open = {}
        for stream, kept in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            assert stream is not None
            self.open[stream.fileno()] = kept

    def read(self, descriptor: int) -> None:
        kept = self.open[descriptor]
        data = os.read(descriptor, PIECE)
        if not data:
            del self.open[descriptor]
        kept += data
        if len(kept) > self.most:
            self.why = f"it printed more than {self.most // 1024} KiB"

    def over(self) -> bool:
        if self.open and not self.why and time.monotonic() > self.deadline:
            self.why = f"no answer within {round(self.seconds, 1):g} s"
        return not self.open or bool(self.why)

    def close(self) -> "int | None":
        """The exit status; None if the program was abandoned or does not end."""
        if self.why:
            with contextlib.suppress(OSError):
                self.process.kill()
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(EASE if self.why else max(EASE, self.deadline - time.monotonic()))
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return None if self.why else code


def run_all(
    starts: "Sequence[Callable[[], Tool]]",
    at_once: int,
    owners: "Sequence[Any]" = (),
    until: float = math.inf,
) -> "Iterator[tuple[int, Tool, int | None]]":
    """Run these tools, at most `at_once` at the same time, divided equally among the `owners`. Yields the
    index of each, the tool, and its exit status. No tool is started after `until`.
    """
    owners = owners or [None] * len(starts)
    waiting = {}  # type: dict[Any, deque[int]]
    for place, owner in enumerate(owners):
        waiting.setdefault(owner, deque()).append(place)
    each = max(1, at_once // max(1, len(waiting)))
    running = {}  # type: dict[int, Tool]
    while running or any(waiting.values()):
        if time.monotonic() > until:
            waiting.clear()
        for owner, places in waiting.items():
            mine = sum(owners[place] == owner for place in running)
            while places and mine < each:
                place, mine = places.popleft(), mine + 1
                running[place] = starts[place]()
        poll = select.poll()
        known = {}
        for tool in running.values():
            for descriptor in tool.open:
                known[descriptor] = tool
                poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(50):
            known[descriptor].read(descriptor)
        for place in [place for place, tool in running.items() if tool.over()]:
            tool = running.pop(place)
            yield place, tool, tool.close()


class OwnerTurns:
    """Decides whose item is next: one of the owner whose items have taken the least time so far."""

    def __init__(self, owners: "Sequence[Any]") -> None:
        self.waiting = {}  # type: dict[Any, deque[int]]
        for at, owner in enumerate(owners):
            self.waiting.setdefault(owner, deque()).append(at)
        self.taken = [(0.0, place, owner) for place, owner in enumerate(self.waiting)]

    def next(self) -> "int | None":
        """The index of the next item; None if nothing is left."""
        return self.waiting[self.taken[0][2]][0] if self.taken else None

    def over(self, seconds: float) -> None:
        """The item that was next is done and took this number of seconds."""
        taken, place, owner = self.taken[0]
        self.waiting[owner].popleft()
        if self.waiting[owner]:
            heapq.heapreplace(self.taken, (taken + seconds, place, owner))
        else:
            heapq.heappop(self.taken)

    def give_up(self) -> "list[int]":
        """Drop all items of the owner of the next item, and return their indices."""
        return [*self.waiting[heapq.heappop(self.taken)[2]]] if self.taken else []
