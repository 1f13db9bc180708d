"""Hosts that are idle, or as busy as a job makes them."""

from __future__ import annotations

import os
import sys

from tests.lab import Host
from tests.lab.container import Container, Memory
from tests.trials.node.situation import Group, Stage

BUSY = Group("Idle and busy hosts")
MB = 1 << 20
LEAST = 600
"""Seconds that what keeps a host busy may live."""


def _spin(host: Host, script: str, times: int = 1) -> None:
    for _ in range(times):
        host.spawn(["timeout", str(LEAST), "sh", "-c", script])


def _hogs(host: Host) -> None:
    _spin(host, "while :; do :; done", 4 * (os.cpu_count() or 1))


def _full_cgroup(stage: Stage) -> Container | None:
    """In a cgroup of its own, so that the machine keeps its memory."""
    if not Memory.possible():
        return None
    limit = 256 * MB
    container = stage.engine.run("node1", "train", memory=limit, shm="1g")
    # What python and doctor need is left.
    container.ask("dd if=/dev/zero of=/dev/shm/held bs=1M count=100 2>/dev/null")
    return container


def _writes(host: Host, times: int = 2) -> None:
    _spin(host, "while :; do dd if=/dev/zero of=/var/big bs=1M count=200 conv=fsync 2>&-; done", times)


def _everything(host: Host) -> None:
    _hogs(host)
    _spin(host, STORM, 2)
    _writes(host, 1)


def _nothing(_: Stage) -> None:
    pass


def _little_memory(host: Host) -> None:
    """Emulated."""
    host.shadow("/proc/meminfo", "MemTotal: 16384000 kB\nMemFree: 20000 kB\nMemAvailable: 60000 kB\n")


STORM = "n=0; while [ $n -lt 20000 ]; do /bin/true & /bin/true & wait; n=$((n+1)); done"
SOCKETS = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
while True:
    one = socket.create_connection(listener.getsockname())
    listener.accept()[0].close()
    one.close()
"""

BUSY.add("idle", _nothing)
BUSY.add("idle, with GPUs *", _nothing, "gpus")
BUSY.add("idle, with NPUs *", _nothing, "npus")
BUSY.add("idle, with AMD GPUs *", _nothing, "amd")
BUSY.on_host("CPU hogs, four a core", _hogs)
BUSY.add("CPU hogs beside GPUs *", lambda stage: _hogs(stage.gpu.host), "gpus")
BUSY.add("CPU hogs beside NPUs *", lambda stage: _hogs(stage.npu.host), "npus")
BUSY.add("memory of its cgroup nearly full", _full_cgroup)
BUSY.on_host("hardly any memory free *", _little_memory)
BUSY.on_host("disk writing", _writes)
BUSY.on_host("1,000 processes", lambda host: _spin(host, "for i in $(seq 1000); do sleep 500 & done; wait"))
BUSY.on_host("processes start and end all the time", lambda host: _spin(host, STORM, 3))
BUSY.on_host(
    "connections open and close all the time",
    lambda host: [
        host.spawn(["timeout", str(LEAST), sys.executable, "-IS", "-c", SOCKETS]) for _ in range(2)
    ],
)
BUSY.on_host("everything at once", _everything)
