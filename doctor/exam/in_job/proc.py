"""What the kernel of this host shows about a rank: whether it runs, is stopped, or exists at all."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import psutil

GONE = "gone"
STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
WORDS = {
    psutil.STATUS_STOPPED: "stopped",
    psutil.STATUS_TRACING_STOP: "held by a debugger",
    psutil.STATUS_DISK_SLEEP: "in uninterruptible sleep (state D)",
    psutil.STATUS_ZOMBIE: "dead and not yet collected (state Z)",
    psutil.STATUS_DEAD: "dead",
    GONE: "no longer there",
}


def identity() -> str:
    """A text that differs between machines, and between containers with networks of their own."""
    parts = []
    with contextlib.suppress(OSError):
        parts += [os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid")]
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    return "/".join(parts)


def started(pid: int) -> int:
    """In hundredths of a second since boot, because the clock may be set; 0 if there is no such process."""
    boot = psutil.boot_time()  # first: psutil before 7.1 counts from the boot time that was last read
    with contextlib.suppress(psutil.Error):
        return round(100 * (psutil.Process(pid).create_time() - boot))
    return 0


def state(pid: int, began: int) -> str:
    """psutil's word for its state, or `gone`."""
    with contextlib.suppress(psutil.Error):
        if started(pid) == began:
            return str(psutil.Process(pid).status())
    return GONE


def find_rank(variable: str, number: int, same: Sequence[tuple[str, str]]) -> tuple[int, str] | None:
    """A missing rank of this job: its pid and state. Only processes of the own user are searched."""
    wanted = {(variable, str(number)), *same}
    found = [
        (process.pid, process.info["status"])
        for process in psutil.process_iter(["environ", "status"])
        if wanted <= (process.info["environ"] or {}).items()
    ]
    return min(found, key=lambda each: (each[1] not in STOPPED, each[0]), default=None)
