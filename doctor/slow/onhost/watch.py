"""One rank, looked at often: whether it is inside a collective, and what it uses. Reads /proc only."""

import contextlib
import os
import re
import struct
from collections.abc import Mapping
from typing import Any

from doctor.live.onhost import proc, syscalls
from doctor.live.onhost.descriptors import memory

WORKER = "pt_gloo_runloop"
"""A thread of gloo, which waits with a time limit if and only if its rank is inside a collective."""
MOST_WORKERS = 64
AWAKE = ("running", "-1", "", *syscalls.TALKS)
"""What a thread of NCCL is in while it carries something: no call at which it sleeps."""
_LONGEST = 512
_LONGEST_NAME = 64


class RankWatch:
    """`pid`: a rank whose system calls may be read; else `blind`, and only its resources are counted."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.home = f"{proc.PROC}/{pid}"
        self.main = self._opened(pid)
        self.sleeps_in = self._opened(pid, "wchan")
        names = self._threads()
        workers = sorted(tid for tid, name in names.items() if name == WORKER)[:MOST_WORKERS]
        self.workers = [self._opened(tid) for tid in workers]
        self.library = Library(self.home, names)
        proxies = self.library.threads(pid)
        self.proxies = {tid: one for tid in proxies if (one := self._opened(tid)) is not None}
        self.known = set()  # type: set[int]
        """The proxies that were seen asleep in NCCL."""
        self.blind = self.main is None or _read(self.main) == ""

    def _threads(self) -> "dict[int, str]":
        with contextlib.suppress(OSError):
            tids = [*map(int, os.listdir(self.home + "/task"))]
            return {tid: proc.lenient(f"{self.home}/task/{tid}/comm", 64).strip() for tid in tids}
        return {}

    def _opened(self, tid: int, name: str = "syscall") -> "int | None":
        with contextlib.suppress(OSError):
            return os.open(f"{self.home}/task/{tid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        return None

    def inside(self) -> "tuple[bool, bool]":
        """Whether a worker of gloo is in a collective, or NCCL carries one; and whether one is or the main
        thread waits with a limit, as it does in a send or a receive, but also when it waits for the GIL.
        """
        if self.proxies:
            carries = [self._carries(tid) for tid in [*self.proxies]]
            return any(carries), any(carries)
        calls = (_read(each) for each in self.workers if each is not None)
        by_worker = any(_timed(each) or each.startswith("running") for each in calls)
        return by_worker, by_worker or (self.main is not None and _timed(_read(self.main)))

    def _carries(self, tid: int) -> bool:
        """Whether a collective is under way in this thread. One that sleeps elsewhere is not NCCL's."""
        text = _read(self.proxies[tid])
        name = "".join(syscalls.named(text.split()[:1], proc.MACHINE))
        if name not in AWAKE and tid not in self.known:
            self.known.add(tid)
            if name != "futex" or _timed(text) or not self.library.sleeps_in(text):
                os.close(self.proxies.pop(tid))
        return name != "futex"

    def kernel_wait(self) -> str:
        """The function of the kernel in which its main thread sleeps; empty if it runs, or that is hidden."""
        found = "" if self.sleeps_in is None else _read(self.sleeps_in)
        return "" if found == "0" else found[:_LONGEST_NAME]

    def used(self) -> "dict[str, Any]":
        """What it has used so far: seconds, bytes and counts."""
        told = {}  # type: dict[str, Any]
        with contextlib.suppress(OSError, ValueError, IndexError):
            _, fields = proc.stat_of(proc.read(self.home + "/stat"))
            told["cpu"] = (int(fields[11]) + int(fields[12])) / proc.TICKS
            told["faults"], told["nice"] = int(fields[9]), int(fields[16])
        with contextlib.suppress(OSError, ValueError, IndexError):
            ran, waited = proc.read(f"{self.home}/task/{self.pid}/schedstat").split()[:2]
            told["ran"], told["starved"] = int(ran) / 1e9, int(waited) / 1e9
        with contextlib.suppress(OSError, ValueError):
            io = proc.counters(self.home)
            told.update(read=io["rchar"], written=io["wchar"], disk_written=io["write_bytes"])
        told.update(_throttling(self.pid))
        return told

    def close(self) -> None:
        for each in (self.main, self.sleeps_in, *self.workers, *self.proxies.values()):
            if each is not None:
                os.close(each)


def _read(descriptor: int) -> str:
    """The text of /proc/PID/task/TID/syscall at this moment; empty if it may not be read, or is gone."""
    with contextlib.suppress(OSError):
        return os.pread(descriptor, _LONGEST, 0).decode("ascii", "replace")
    return ""


def _timed(text: str) -> bool:
    call = syscalls.named(text.split()[:6], proc.MACHINE)
    if not call:
        return False
    return call[0] == "restart_syscall" or (call[0] == "futex" and len(call) > 4 and call[4] != "0x0")


def _throttling(pid: int) -> "dict[str, int]":
    """Periods of its CPU quota, and in how many it was throttled: of the nearest group that has a quota."""
    for root, group in _groups(pid):
        while group.strip("/"):
            place = root + group
            quota = proc.lenient(place + "/cpu.max", 64) or proc.lenient(place + "/cpu.cfs_quota_us", 64)
            if quota[:1].isdigit():
                lines = (line.split() for line in proc.lenient(place + "/cpu.stat", 4096).splitlines())
                stat = {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}
                return {"periods": stat.get("nr_periods", 0), "throttled": stat.get("nr_throttled", 0)}
            group = group.rpartition("/")[0]
    return {}


def _groups(pid: int) -> "list[tuple[str, str]]":
    """Where its groups of version 2 and of the controller `cpu` are, and their names."""
    found = []
    for line in proc.lenient(f"{proc.PROC}/{pid}/cgroup", 1 << 16).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        names = controllers.split(",")
        if number == "0" and not controllers:
            found.append(("/sys/fs/cgroup", group))
        elif "cpu" in names:
            found += [(f"/sys/fs/cgroup/{name}", group) for name in (controllers, "cpu")]
    return found


MOST = 4
LEAST = 0.05
"""Seconds of processor time without which a thread carries nothing."""
YIELDS = 0.03
"""The least share of that time in the kernel: a thread that computes is seldom there."""
STACK = 4096
"""Bytes of the stack of a thread that sleeps, among which its callers are looked for; it may have fewer."""
_LIBRARY = re.compile(r"^(\w+)-(\w+) ..x. .*/lib(?:nccl|rccl|torch_cuda|torch_hip)\b", re.MULTILINE)
_DEVICE, _OTHERS = re.compile("cuda|nccl|pt_nccl"), re.compile("pt_|cuda|gloo")
"""How the threads are called that only a process with a GPU has, and those that belong to something else."""


class Library:
    """NCCL or RCCL in a process: in a file of its own, or in torch's.

    A thread of it that carries the rank's collectives over the network yields its processor again and again
    while one that the rank has launched is under way, and sleeps on a condition while none is: then the
    rank's host has not called the next one.
    """

    def __init__(self, home: str, names: "Mapping[int, str]") -> None:
        """`names`: of all threads of the process."""
        self.home, self.names = home, names
        maps = proc.lenient(home + "/maps", 8 << 20) if any(map(_DEVICE.match, names.values())) else ""
        self.code = [(int(a, 16), int(b, 16)) for a, b in _LIBRARY.findall(maps)]

    def threads(self, main: int) -> "list[int]":
        """Those that may be such threads, by what they have used: the busiest in the kernel."""
        found = []
        others = (tid for tid, name in self.names.items() if tid != main and not _OTHERS.match(name))
        for tid in others if self.code and proc.MACHINE in syscalls.NAMES else ():
            with contextlib.suppress(OSError, ValueError, IndexError):
                _, fields = proc.stat_of(proc.read(f"{self.home}/task/{tid}/stat"))
                used, kernel = (int(fields[11]) + int(fields[12])) / proc.TICKS, int(fields[12]) / proc.TICKS
                found += [(-kernel, tid)] if used >= LEAST and kernel >= YIELDS * used else []
        return [tid for _, tid in sorted(found)[:MOST]]

    def sleeps_in(self, call: str) -> bool:
        """Whether a thread that is in this system call sleeps in this library."""
        with contextlib.suppress(OSError, OverflowError, ValueError, IndexError):
            data = memory(self.home, call.split()[7], STACK)
            words = struct.unpack_from(f"{len(data) // 8}Q", data)
            return any(begin <= word < end for word in words for begin, end in self.code)
        return False
