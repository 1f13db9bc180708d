"""What /proc says of a process. Python 3.6 and later."""

import contextlib
import os
import re

_TICKS = os.sysconf("SC_CLK_TCK")
_PEAK = re.compile(rb"^VmHWM:\s+(\d{1,12}) kB", re.MULTILINE)


class HeldProcess:
    """One process, by an open file of its own: never another's that got its pid later."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)

    def look(self) -> "tuple[str, float]":
        """The letter of its state and the CPU seconds that it used; an empty state once it is gone."""
        try:
            # Its name, between parentheses, may hold anything.
            fields = os.pread(self._stat, 4096, 0).rpartition(b")")[2].split()
            return fields[0].decode("ascii"), (int(fields[11]) + int(fields[12])) / _TICKS
        except (OSError, IndexError, ValueError):
            return "", 0.0

    def close(self) -> None:
        if self._stat >= 0:
            os.close(self._stat)
            self._stat = -1


def peak_memory(pid: int) -> int:
    """Bytes; 0 if it is not known."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
        found = _PEAK.search(status.read())
        return int(found.group(1)) * 1024 if found else 0
    return 0


def kernel_place(pid: int) -> str:
    """Where in the kernel it waits, as far as this user may know."""
    for name in ("stack", "wchan"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
            text = file.read(2048).decode("ascii", "replace").strip()
            if text not in ("", "0"):
                return text
    return ""
