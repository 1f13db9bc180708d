"""Where rank 0 listens for the others: on the first port of the job's own that is free there."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from doctor.errors import UsageError
from doctor.run.in_job.rank_env import JobRank
from doctor.run.in_job.wire import Stranger, greet

HANDSHAKES = 64
BACKLOG = 1024
PAUSE = 0.05


class RankListener:
    """`let_in` gets every connection that proved to be of this job."""

    def __init__(self, seat: JobRank, let_in: Callable[[socket.socket], object]) -> None:
        self._seat = seat
        self._let_in = let_in
        self._handshakes = threading.Semaphore(HANDSHAKES)
        self._socket = _listening(seat)
        self._closed = False
        threading.Thread(target=self._accept, name="in-job door", daemon=True).start()

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # closing alone does not wake who accepts
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # out of descriptors for the moment, or who knocked has left
                if self._closed:
                    return
                time.sleep(PAUSE)
                continue
            self._handshakes.acquire()
            try:
                threading.Thread(target=self._greet, args=(connection,), daemon=True).start()
            except RuntimeError:
                connection.close()
                self._handshakes.release()

    def _greet(self, connection: socket.socket) -> None:
        try:
            greet(connection, self._seat.token)
            self._let_in(connection)
        except (OSError, Stranger):
            connection.close()
        finally:
            self._handshakes.release()


def _listening(seat: JobRank) -> socket.socket:
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    for port in seat.ports:
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    raise UsageError(
        f"--in-job: none of the ports {', '.join(map(str, seat.ports))} is free on the host of rank 0.",
        "See who holds them: ss -ltnp. Another run of doctor may not have ended yet.",
    )
