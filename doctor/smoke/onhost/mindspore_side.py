"""The smoke run with MindSpore: see `sides`.

The ranks of a cell meet as those of msrun do, through a scheduler (MindSpore's dynamic cluster). Everything
here was run on the CPU; the parts for Ascend follow MindSpore's documents.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
from collections.abc import Callable
from typing import Any

MODULE = "doctor.smoke.onhost.mindspore_framework"
CHANCES = 3
"""How many ports a scheduler tries: another program may take one before the scheduler does."""


def load() -> str:
    """Import it, without an operation: after the first one, forked ranks would hang."""
    # Importing it in each forked child would cost time; a broken installation shows in the next line.
    with contextlib.suppress(Exception):
        importlib.import_module("numpy.random")
    mindspore = importlib.import_module("mindspore")
    importlib.import_module("mindspore.mint.distributed")
    return str(mindspore.__version__)


def meetings(worlds: list[int]) -> list[Any]:
    """A scheduler serves one cell."""
    return list(enumerate(worlds))


def serve(address: str, timeout: float, worlds: Any, say: Callable[[int, int | None], None]) -> None:
    """Be a scheduler: it does not return from `init` before the job has ended."""
    cell, world = worlds
    init = importlib.import_module("mindspore.communication").init
    for chance in range(CHANCES):
        port = _free_port(address)
        os.environ.update(cluster(address, port, world, timeout), MS_ROLE="MS_SCHED")
        say(port, cell)
        try:
            init()
            return
        except RuntimeError:
            if chance == CHANCES - 1:
                raise


def cluster(address: str, port: int, world: int, timeout: float) -> dict[str, str]:
    """The variables of a dynamic cluster. Its own limits never come first."""
    limit = str(int(timeout))
    return {
        "MS_SCHED_HOST": address,
        "MS_SCHED_PORT": str(port),
        "MS_WORKER_NUM": str(world),
        "MS_TOPO_TIMEOUT": limit,
        "MS_NODE_TIMEOUT": limit,
        "MS_HEARTBEAT_RETRY_TIMEOUT": limit,
        "MS_RECEIVE_MSG_TIMEOUT": limit,
        "MS_CPU_COMM_OP_TIMEOUT": limit,
        "MS_RETRY_INTERVAL_LOWER": "1",
        "MS_RETRY_INTERVAL_UPPER": "1",
    }


def _free_port(address: str) -> int:
    with contextlib.closing(socket.socket()) as listener:
        listener.bind((address, 0))
        return int(listener.getsockname()[1])
