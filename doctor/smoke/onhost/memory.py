"""Memory shared between processes, as a descriptor without a name; and how much memory is free."""

import ctypes
import os
import tempfile
from contextlib import suppress

_CGROUP = "/sys/fs/cgroup/memory"


def anonymous(size: int) -> int:
    """A descriptor of zeroed memory."""
    descriptor = _memfd()
    if descriptor < 0:
        with tempfile.TemporaryFile(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as file:
            descriptor = os.dup(file.fileno())
    if size:
        # Allocated, not just sized: a full disk must fail here, not kill a process that writes to it.
        os.posix_fallocate(descriptor, 0, size)
    return descriptor


def _memfd() -> int:
    if hasattr(os, "memfd_create"):
        try:
            return os.memfd_create("doctor-smoke", 1)
        except OSError:
            return -1
    create = getattr(ctypes.CDLL(None), "memfd_create", None)  # Python 3.6 and 3.7
    return create(b"doctor-smoke", 1) if create else -1


def holding(data: bytes) -> int:
    """A descriptor from which these bytes can be read."""
    descriptor = anonymous(len(data))
    os.pwrite(descriptor, data, 0)
    return descriptor


def free_memory() -> float:
    """The bytes that programs may still take on this host, and in this container; 0 if that is not known."""
    free = 0.0
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        free = next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), 0.0)
    for limit, used in (".max", ".current"), ("/memory.limit_in_bytes", "/memory.usage_in_bytes"):
        with suppress(OSError, ValueError), open(_CGROUP + limit) as most, open(_CGROUP + used) as now:
            free = min(free, float(most.read()) - float(now.read()))
    return free
