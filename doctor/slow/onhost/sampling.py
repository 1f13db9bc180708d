"""Looks at all ranks of a host many times a second, and keeps only sums."""

import contextlib
import os
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

from doctor.live.onhost import proc
from doctor.live.onhost.netlink import TcpTable
from doctor.slow.onhost.watch import RankWatch

EVERY = 0.04
SLOWEST = 0.2
"""The seconds from one sample to the next; in a long round fewer are enough."""
SAMPLES = 1_500
"""The most samples of a round."""
OF_A_CORE = 0.015
"""The share of a processor that the samples of one rank may cost."""
READINGS = 8
"""How often connections are read in a round."""
LONG = 0.25
"""Seconds that a rank is inside or outside, from which on it is told when."""
MOST_LONG = 200
MOST_LINKS = 512
MOST_OUTSIDE = 8
BUSIEST = 3


class RankCount:
    """The samples of one rank in one round, summed over each part of it."""

    def __init__(self, watch: RankWatch, parts: int) -> None:
        self.watch = watch
        self.samples, self.inside, self.waits = [0] * parts, [0] * parts, [0] * parts
        self.entries = self.wait_entries = 0
        self.outside = {}  # type: dict[str, int]
        """In how many samples outside collectives its main thread slept in each function of the kernel."""
        self.long, self.long_waits = Stretches(), Stretches()
        self.before = watch.used()

    def look(self, part: int, at: float) -> None:
        inside, waits = self.watch.inside()
        self.samples[part] += 1
        self.inside[part] += inside
        self.waits[part] += waits
        if not inside and (name := self.watch.kernel_wait()):
            name = f"limited {name}" if waits else name
            self.outside[name] = self.outside.get(name, 0) + 1
        self.entries += inside and self.long.state is False
        self.wait_entries += waits and self.long_waits.state is False
        self.long.look(inside, at)
        self.long_waits.look(waits, at)

    def told(self, at: float) -> "dict[str, Any]":
        after = self.watch.used()
        deltas = {name: round(max(0, after[name] - self.before.get(name, 0)), 6) for name in after}
        deltas["nice"] = after.get("nice", 0)
        seen = {}  # type: dict[str, Any]
        if not self.watch.blind:
            often = sorted(self.outside.items(), key=lambda one: -one[1])[:MOST_OUTSIDE]
            seen = {"inside": self.inside, "waits": self.waits, "outside": dict(often)}
            seen.update(long=self.long.told(at), long_waits=self.long_waits.told(at))
            seen.update(wait_entries=self.wait_entries)
        return dict(
            pid=self.watch.pid,
            samples=self.samples,
            entries=self.entries,
            workers=len(self.watch.workers),
            proxies=len(self.watch.proxies),
            used=deltas,
            **seen,
        )


class Stretches:
    """When a rank was in one state for long."""

    def __init__(self) -> None:
        self.state = None  # type: bool | None
        self.since = 0.0
        self.stretches = []  # type: list[tuple[float, float, bool]]

    def look(self, state: bool, at: float) -> None:
        if state is not self.state:
            self._end(at)
            self.state, self.since = state, at

    def _end(self, at: float) -> None:
        if self.state is not None and at - self.since >= LONG and len(self.stretches) < MOST_LONG:
            self.stretches.append((round(self.since, 3), round(at, 3), self.state))

    def told(self, at: float) -> "list[tuple[float, float, bool]]":
        self._end(at)
        return self.stretches


class Round:
    """One round of samples of `members`: ranks and their helpers."""

    def __init__(self, members: "Sequence[Mapping[str, Any]]", parts: int) -> None:
        self.parts = parts
        self.ranks = [RankCount(RankWatch(m["pid"]), parts) for m in members if m.get("helps") is None]
        self.helpers = [RankCount(RankWatch(m["pid"]), parts) for m in members if m.get("helps") is not None]
        self.mine = {m["pid"] for m in members}
        self.sockets = {}  # type: dict[int, int]
        self.tables = []  # type: list[TcpTable]
        self.links = {}  # type: dict[tuple[str, str], list[dict[str, Any]]]
        self._open()

    def _open(self) -> None:
        spaces = {}  # type: dict[str, str]
        for each in self.ranks:
            home = each.watch.home
            with contextlib.suppress(OSError):
                spaces.setdefault(os.readlink(home + "/ns/net"), home + "/ns/net")
            for link in proc.links(home + "/fd"):
                if link.startswith("socket:["):
                    self.sockets[int(link[8:-1])] = each.watch.pid
        with contextlib.suppress(OSError):
            spaces[os.readlink("/proc/self/ns/net")] = ""
        for place in spaces.values():
            with contextlib.suppress(OSError):
                self.tables.append(TcpTable(place))

    def run(self, seconds: float) -> "dict[str, Any]":
        """Sample for this long. The times are by this host's steady clock."""
        busy = _ticks()
        began = time.monotonic()
        every = min(SLOWEST, max(EVERY, seconds / SAMPLES))
        readings = 0
        while True:
            at = time.monotonic() - began
            if at >= seconds:
                break
            before = time.process_time()  # On a busy host a sample takes long, and costs as little.
            part = min(self.parts - 1, int(at / seconds * self.parts))
            for each in self.ranks:
                each.look(part, at)
            if at >= readings * seconds / READINGS:
                readings = int(at / seconds * READINGS) + 1
                self._read_links()
            pause = max(every, (time.process_time() - before) / (OF_A_CORE * max(1, len(self.ranks))))
            took = time.monotonic() - began - at
            # Not at a fixed rate: a job whose steps take as long would always be seen at the same place.
            time.sleep(max(0.001, min(pause * random.uniform(0.8, 1.2) - took, seconds - at - took)))
        self._read_links()
        return {"began": began, "seconds": time.monotonic() - began, "busiest": self._busiest(busy)}

    def _read_links(self) -> None:
        for table in self.tables:
            found = []
            with contextlib.suppress(OSError):
                found = table.read(lambda inode, _: inode in self.sockets)
            for one in found:
                key = one["local"], one["peer"]
                if key in self.links or len(self.links) < MOST_LINKS:
                    self.links.setdefault(key, []).append(one)

    def told_links(self) -> "list[dict[str, Any]]":
        """What each connection carried in this round."""
        told = []
        for (local, peer), seen in self.links.items():
            first, last = seen[0], seen[-1]
            rates = sorted(each["rate"] for each in seen)
            one = {name: max(0, last[name] - first[name]) for name in ("sent", "received", "again")}
            one.update(busy=max(0, last["busy"] - first["busy"]) / 1e6, rate=rates[len(rates) // 2])
            told.append(dict(one, local=local, peer=peer, pid=self.sockets.get(first["inode"], 0)))
        return sorted(told, key=lambda one: -one["sent"] - one["received"])

    def _busiest(self, before: "Mapping[int, int]") -> "list[dict[str, Any]]":
        """The other processes that used the processors most."""
        ours = {os.getpid(), os.getppid()}
        used = {pid: ticks - before.get(pid, 0) for pid, ticks in _ticks().items()}
        order = sorted((pid for pid in used if pid not in self.mine | ours), key=lambda pid: -used[pid])
        rows = [(pid, proc.row((pid, False))) for pid in [pid for pid in order[:BUSIEST] if used[pid] > 0]]
        users = proc.users({row["uid"] for _, row in rows if row})
        return [
            {
                "pid": pid,
                "name": row["name"][:256],
                "cpu": used[pid] / proc.TICKS,
                "user": users.get(row["uid"], "")[:256],
            }
            for pid, row in rows
            if row
        ]

    def close(self) -> None:
        for each in self.ranks + self.helpers:
            each.watch.close()
        for table in self.tables:
            table.close()


def _ticks() -> "dict[int, int]":
    return {pid: proc.ticks(pid) for pid in proc.pids()}
