"""The operating system of a host's emulated NPUs, as far as collectives need it: one process for each device.

It refuses a second process on a device, and a process that comes too soon after the last one. It is a thread
of the process that runs the tests: it notices the end of a rank, whatever the signal, because the rank's
socket closes.
"""

import contextlib
import json
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path


class DeviceOs:
    """`lingers` is how long a device stays taken after its process has ended. `show` receives the devices
    that are taken.
    """

    def __init__(
        self, path: Path, lingers: float = 0.0, show: Callable[[int, bool], object] = lambda *_: None
    ) -> None:
        self.lingers = lingers
        self.started: list[int] = []
        """The device of each admitted process, oldest first."""
        self.refused: list[int] = []
        """The device of each refused process."""
        self._show = show
        self._holders: dict[socket.socket, int] = {}
        self._ended: dict[int, float] = {}
        self._selector = selectors.DefaultSelector()
        self._listener = _listen(path)
        self._bell, self._ring = socket.socketpair()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._bell, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="emulated device OS", daemon=True)
        self._thread.start()

    @property
    def taken(self) -> set[int]:
        """The devices with a process, and those whose last process ended too recently."""
        now = time.monotonic()
        lately = {device for device, ended in dict(self._ended).items() if now < ended + self.lingers}
        return lately | set(dict(self._holders).values())

    def close(self) -> None:
        self._ring.send(b"!")
        self._thread.join()
        for wire in (*self._holders, self._listener, self._bell, self._ring):
            wire.close()
        self._selector.close()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select(self._until_free()):
                if key.fileobj is self._bell:
                    return
                if key.fileobj is self._listener:
                    wire, _ = self._listener.accept()
                    wire.settimeout(5)  # it writes at once
                    self._selector.register(wire, selectors.EVENT_READ)
                elif isinstance(key.fileobj, socket.socket):
                    self._read(key.fileobj)
            self._free()

    def _read(self, wire: socket.socket) -> None:
        line = b""
        with contextlib.suppress(OSError):
            line = wire.recv(1000)
        if line:
            self._start(wire, int(json.loads(line)["device"]))
            return
        self._selector.unregister(wire)
        wire.close()
        device = self._holders.pop(wire, None)
        if device is not None:
            self._ended[device] = time.monotonic()

    def _start(self, wire: socket.socket, device: int) -> None:
        if device in self.taken:
            self.refused.append(device)
            answer = b"EJ0001\n"
        else:
            self._ended.pop(device, None)
            self._holders[wire] = device
            self.started.append(device)
            self._show(device, True)
            answer = b"started\n"
        with contextlib.suppress(OSError):
            wire.sendall(answer)

    def _until_free(self) -> float | None:
        if not self._ended:
            return None
        return max(0.0, min(self._ended.values()) + self.lingers - time.monotonic())

    def _free(self) -> None:
        taken = self.taken
        for device in [device for device in self._ended if device not in taken]:
            del self._ended[device]
            self._show(device, False)


def _listen(path: Path) -> socket.socket:
    """A path may be too long for a socket's address, so the folder's descriptor replaces it."""
    listener = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        path.unlink(missing_ok=True)
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
    path.chmod(0o666)
    listener.listen(256)
    return listener
