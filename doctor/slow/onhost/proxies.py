"""The threads of NCCL and RCCL that carry a rank's collectives over the network.

Such a thread yields its processor again and again while a collective that the rank has launched is under way,
and sleeps on a condition while none is: then the rank's host has not called the next one.
"""

import contextlib
import re
import struct
from collections.abc import Mapping

from doctor.live.onhost import proc, syscalls
from doctor.live.onhost.descriptors import memory

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
    """NCCL or RCCL in a process: in a file of its own, or in torch's."""

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
