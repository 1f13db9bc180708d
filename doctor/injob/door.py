"""Where rank 0 listens for the others: on the first port of the job's own that is free there."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from doctor.errors import UsageError
from doctor.injob.who import Seat
from doctor.injob.wire import Stranger, greet

HANDSHAKES = 64
BACKLOG = 1024


class Door:
    """`let_in` gets every connection that proved to be of this job."""

    def __init__(self, seat: Seat, let_in: Callable[[socket.socket], object]) -> None:
        self._seat = seat
        self._let_in = let_in
        self._handshakes = threading.Semaphore(HANDSHAKES)
        self._socket = _listening(seat)
        threading.Thread(target=self._accept, name="in-job door", daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing alone does not wake who accepts
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._handshakes.acquire()
            threading.Thread(target=self._greet, args=(connection,), daemon=True).start()

    def _greet(self, connection: socket.socket) -> None:
        try:
            greet(connection, self._seat.token)
            self._let_in(connection)
        except (OSError, Stranger):
            connection.close()
        finally:
            self._handshakes.release()


def _listening(seat: Seat) -> socket.socket:
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    for port in seat.ports:
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    raise UsageError(
        f"--in-job: none of the ports {', '.join(map(str, seat.ports))} is free on the host of rank 0.",
        "See who holds them: ss -ltnp. Another run of doctor may not have ended yet.",
    )
