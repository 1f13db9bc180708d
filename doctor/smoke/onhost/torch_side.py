"""The smoke run with torch: see `sides`. `devices` has what differs on devices. Python 3.6 and later."""

import contextlib
import datetime
import importlib
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

MODULE = "doctor.smoke.onhost.devices"


def load() -> str:
    torch = importlib.import_module("torch")
    importlib.import_module("torch.distributed")
    # Importing it in each forked child would cost time; a broken installation must not matter here.
    with contextlib.suppress(Exception):
        importlib.import_module("numpy.random")
    return str(torch.__version__)


def meetings(worlds: "list[int]") -> "list[Any]":
    """One store serves all cells."""
    return [worlds]


def serve(address: str, timeout: float, _: Any, say: "Callable[[int, int | None], None]") -> None:
    store = _open_store(address, timeout)  # it ends with its last reference
    say(store.port, None)
    while True:
        signal.pause()


def _open_store(address: str, timeout: float) -> Any:
    """Open the store: on the data address if this torch accepts a socket, else on all addresses."""
    make = importlib.import_module("torch.distributed").TCPStore
    options = {"is_master": True, "wait_for_workers": False, "timeout": datetime.timedelta(seconds=timeout)}  # type: dict[str, Any]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    descriptor = -1
    try:
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.bind((address, 0))
            listener.listen(1024)
            port = listener.getsockname()[1]
            descriptor = listener.detach()
        return make(address, port, master_listen_fd=descriptor, **options)
    except (OSError, TypeError, RuntimeError):
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        return make(address, 0, **options)
