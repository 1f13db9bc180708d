"""Real ranks on this machine, without an agent: `run_ranks(shape)` returns the events and calls of each.

They are forked from a fresh process of one thread, as on the hosts, with the store in a process of its own.
Ranks that do not end are killed once no page has moved for `still` seconds.
"""

import json
import mmap
import os
import select
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from doctor.smoke.events import Event
from doctor.smoke.onhost.page import DTYPES, GROUPS, OPS, PHASES, SIZE, RankPage, read
from doctor.smoke.onhost.shape import CellShape, CollectiveCall, ScheduledCall
from tests.lab.warm import Warm
from tests.support.paths import ROOT

EventType = TypeVar("EventType", bound=msgspec.Struct)
WITH_TORCH = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
WARM = Warm("tests.support.smoke.ranks", **WITH_TORCH)
STILL = 3.0
LIMIT = 60.0
STACKS = 5.0
"""Seconds for the stacks of ranks that are killed."""
TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class RankOutput:
    """One rank at the end. `code` is None if a signal ended it; `killed` if we sent that."""

    place: int
    code: int | None
    signal: int | None
    killed: bool
    events: tuple[Event, ...]
    page: Mapping[str, Any]
    """Its last page: the fields of `RankPage.FIELDS`, with words for phase, group, op and dtype."""
    entries: tuple[ScheduledCall, ...]
    """Every collective that it entered, as in its schedule, except for the members of pairs."""
    words: str
    """What it wrote to stdout and stderr."""
    stack: str

    def all(self, kind: type[EventType]) -> list[EventType]:
        """Its events of one type, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def one(self, kind: type[EventType]) -> EventType:
        """Its only event of that type."""
        (event,) = self.all(kind)
        return event


def run_ranks(
    shape: CellShape,
    inject: Sequence[Mapping[str, Any]] = (),
    *,
    only: Sequence[str] | None = None,
    still: float = STILL,
    limit: float = LIMIT,
    environment: Mapping[str, str] | None = None,
    python: str = sys.executable,
) -> list[RankOutput]:
    """Run all ranks of one cell; `inject` as in the ranks' configuration: {"kind", "rank", "step"}.

    Of the phases collectives, train, audit and bandwidth only those named in `only` run.
    """
    wish = {
        "shape": shape,
        "inject": list(inject),
        "only": list(only) if only is not None else None,
        "still": still,
        "limit": limit,
    }
    env = {**os.environ, **WITH_TORCH, **(environment or {})}
    if python == sys.executable and not environment:
        done = WARM.run((), input=json.dumps(wish), env=env, cwd=ROOT, timeout=limit + 60)
    else:
        done = subprocess.run(
            [
                python,
                "-B",
                "-W",
                "ignore",
                "-c",
                "from tests.support.smoke.ranks import load, main; load(); main()",
            ],
            input=json.dumps(wish),
            capture_output=True,
            text=True,
            env=env,
            timeout=limit + 60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return [_output(seen) for seen in json.loads(done.stdout)]


def _output(seen: dict[str, Any]) -> RankOutput:
    entries, events = [], []
    for line in seen.pop("lines"):
        event = json.loads(line)
        if event["ev"] == "entered":
            shown = event["step"], event["group"], event["op"], event["dtype"], event["bytes"]
            call = CollectiveCall(*shown, (), *event["about"])
            entries.append(ScheduledCall(event["position"], event["phase"], event["seq"], call))
        else:
            events.append(msgspec.convert(event, Event))
    fields = dict(zip(RankPage.FIELDS, seen.pop("fields"), strict=True))
    named = {"phase": PHASES, "group": GROUPS, "op": OPS, "dtype": DTYPES}
    page = {name: named[name][value] if name in named else value for name, value in fields.items()}
    return RankOutput(events=tuple(events), page=page, entries=tuple(entries), **seen)


# From here on: the process that forks the ranks.


class RecordedPage(RankPage):
    """A page that also reports every collective that it shows."""

    say: Callable[[dict[str, Any]], None]

    def enter_phase(self, name: str, step: int = 0) -> None:
        super().enter_phase(name, step)
        assert name != "done" or "sympy" not in sys.modules, "40 MB and a second of each rank for nothing"

    def enter(
        self, group: str, seq: int, op: str, dtype: str, size: int, end: int = -1, tag: int = 0
    ) -> None:
        super().enter(group, seq, op, dtype, size, end, tag)
        where = {"ev": "entered", "position": self.position, "phase": PHASES[self.phase], "step": self.step}
        self.say(
            {
                **where,
                "seq": seq,
                "group": group,
                "op": op,
                "dtype": dtype,
                "bytes": size,
                "about": [end, tag],
            }
        )


class Child:
    """A forked rank, seen from the process that forked it."""

    def __init__(self, place: int, wish: dict[str, Any], memory: mmap.mmap) -> None:
        self.place = place
        self.memory = memory
        self.status: int | None = None
        self.killed = False
        self.read: dict[int, bytes] = {}
        self.stack = os.memfd_create("stack")
        events, events_end = os.pipe()
        words, words_end = os.pipe()
        go_end, self.go = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.dup2(words_end, 1)
            os.dup2(words_end, 2)
            _be_rank(place, wish, memory, events_end, go_end, self.stack)
        for fd in (events_end, words_end, go_end):
            os.close(fd)
        self.events, self.words = events, words
        self.read = {events: b"", words: b""}

    def take(self, fd: int) -> bool:
        """Read what is available; False at the end."""
        more = os.read(fd, 1 << 16)
        self.read[fd] += more
        return bool(more)

    def kill(self, number: int) -> None:
        if self.ended() is None:
            self.killed = True
            os.kill(self.pid, number)

    def runs(self) -> bool:
        """Whether it has neither ended nor is stopped."""
        if self.ended() is not None:
            return False
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "TtZ"

    def ended(self) -> int | None:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status

    def output(self) -> dict[str, Any]:
        assert self.status is not None
        gone = os.WIFSIGNALED(self.status)
        return {
            "place": self.place,
            "code": None if gone else os.WEXITSTATUS(self.status),
            "signal": os.WTERMSIG(self.status) if gone else None,
            "killed": self.killed,
            "lines": self.read[self.events].decode().splitlines(),
            "fields": read(self.memory, self.place),
            "words": self.read[self.words].decode(errors="replace"),
            "stack": os.pread(self.stack, 1 << 16, 0).decode(errors="replace"),
        }


def _be_rank(place: int, wish: dict[str, Any], memory: mmap.mmap, events: int, go: int, stack: int) -> None:
    from doctor.smoke.onhost import rank

    page = RecordedPage(memory, place)
    page.say = rank._sayer(events)
    page.enter_phase("spawned")
    if wish["only"] is not None:
        rank.WORK = tuple(work for work in rank.WORK if work[0] in wish["only"])
    rank._stay = lambda: None  # its exit code tells whether it ended well
    config = {
        "shape": wish["shape"],
        "cell": 0,
        "local": place,
        "device": None,
        "timeout": TIMEOUT,
        "framework": wish.get("framework", "torch"),
        "inject": wish["inject"],
    }
    rank.run(config, place, page, events, go, stack)


def _store() -> tuple[int, int]:
    """A process that holds the store; its id and its port."""
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        os.write(tell, b"%d\n" % store.port)
        signal.pause()
    os.close(tell)
    with open(told) as lines:
        return pid, int(lines.readline())


def _supervise(children: list[Child], still: float, limit: float) -> None:
    """Read the ranks' events until all ranks have ended."""
    now = time.monotonic()
    deadline, moved = now + limit, now
    pages: list[Any] = []
    of = {fd: child for child in children for fd in child.read}
    waiting = list(of)
    while waiting:
        ready, _, _ = select.select(waiting, [], [], 0.05)
        for fd in ready:
            if not of[fd].take(fd):
                waiting.remove(fd)
        seen = [read(child.memory, child.place) for child in children]
        if seen != pages or any(PHASES[fields[2]] in ("spawned", "start") for fields in seen):
            pages, moved = seen, time.monotonic()
        if time.monotonic() > min(moved + still, deadline):
            _kill(children)
    for child in children:
        while child.ended() is None:
            time.sleep(0.01)


def _kill(children: list[Child]) -> None:
    """Take their stacks, then stop all of them before the first dies, because its peers would notice."""
    for number in (signal.SIGUSR2, signal.SIGSTOP, signal.SIGKILL):
        for child in children:
            child.kill(number)
        if number == signal.SIGUSR2:
            _await_stacks(children)


def _await_stacks(children: list[Child]) -> None:
    """Wait until they are written: on a busy machine, that takes longer. A stopped rank writes none."""
    until = time.monotonic() + STACKS
    before: list[int] = []
    while time.monotonic() < until:
        time.sleep(0.1)
        sizes = [os.fstat(child.stack).st_size for child in children]
        due = [size for size, child in zip(sizes, children, strict=True) if child.runs()]
        if all(due) and sizes == before:
            return
        before = sizes


def load() -> None:
    """Import everything before the forks, as on the hosts."""
    warnings.simplefilter("ignore")
    import torch.distributed

    from doctor.smoke.onhost import devices, rank

    assert torch.distributed
    assert rank
    assert devices


def main() -> None:
    wish = json.load(sys.stdin)
    world = CellShape(*wish["shape"]).world
    assert len(os.listdir("/proc/self/task")) == 1, "a fork beside threads can deadlock"
    memory = mmap.mmap(-1, world * SIZE)
    store, port = _store()
    children = [Child(place, wish, memory) for place in range(world)]
    for child in children:
        os.write(child.go, json.dumps({"address": "127.0.0.1", "port": port}).encode() + b"\n")
    _supervise(children, wish["still"], wish["limit"])
    os.kill(store, signal.SIGKILL)
    os.waitpid(store, 0)
    print(json.dumps([child.output() for child in children]))
