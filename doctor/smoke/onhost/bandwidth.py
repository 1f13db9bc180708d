"""The bandwidth phase: hosts meet in pairs and send as fast as they can."""

from __future__ import annotations

import time
from typing import Any

from doctor.agents.onhost.process import queued_so_far
from doctor.agents.onhost.segments import segments_by_peer
from doctor.smoke.onhost import alone, sweep
from doctor.smoke.onhost.bandwidthplan import (
    LARGEST_PIECE,
    LONG_ENOUGH,
    LONG_ENOUGH_ONE_WAY,
    PIECE,
    PING,
    PINGS,
    TransferPace,
    Way,
    bandwidth_calls,
    lots,
)
from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.encoding import decoded, encoded


def run(comm: Comm) -> None:
    """Measure with all peers. The last call keeps every rank here until all have measured. What a host does
    alone is measured twice, some time apart.
    """
    alone.run(comm)
    if not bandwidth_calls(comm.shape, comm.place):
        alone.run(comm)
        return
    transfers = _Transfers(comm)
    for lot in lots(comm.shape, comm.place):
        for meeting in lot:
            trip = transfers.round_trip(meeting.peer)
            pace = transfers.transfer(meeting.peer, meeting.way)
            measured = {"bytes": pace.bytes, "seconds": pace.seconds, "rtt": trip, "queued": pace.queued}
            comm.say({"ev": "pair", **meeting._asdict(), **measured})
        if comm.shape.pairs_at_once:
            comm.all_reduce(comm.ones(1), "world")
    comm.say({"ev": "segments", "peers": segments_by_peer()})
    alone.run(comm)
    sweep.run(comm)
    comm.all_reduce(comm.ones(1), "world")


class _Transfers:
    """The transfers of one rank, with reused buffers that grow as its links allow: one, or two if hosts send
    and receive at the same time.
    """

    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self.framework = comm.framework
        self.buffers: dict[str, Any] = {}

    def _buffer(self, size: int) -> Any:
        return self.framework.tensor(bytearray(size), "uint8")

    def round_trip(self, peer: int) -> float:
        """The quickest of several round trips, in seconds: distance delays all, a busy processor only some.

        Each end sends again once it has received, so two turns are one round trip; the first turn waits for
        the peer to arrive.
        """
        out, into = self._buffer(PING), self._buffer(PING)
        moments: list[float] = []

        def talk() -> None:
            for _ in range(PINGS):
                self.comm.swap(out, into, peer)
                moments.append(time.perf_counter())
                self.comm.page.mark()

        self.comm.converse(out, talk)
        return min(moments[i + 2] - moments[i] for i in range(0, len(moments) - 2, 2))

    def transfer(self, peer: int, way: Way) -> TransferPace:
        """Send pieces until enough went through; the page moves with each, so a slow link is not a hang.

        The end that only receives sends notes of a few bytes.
        """
        pace = TransferPace(LONG_ENOUGH if way == "both" or self.comm.shape.turns else LONG_ENOUGH_ONE_WAY)

        def send() -> None:
            mine, notes = 0, self._buffer(PING)
            while not pace.done:
                out = notes if way == "in" else self._first("out", pace.size)
                into = notes if way == "out" else self._first("into" if way == "both" else "out", pace.size)
                self.framework.write(out, encoded([mine], "int64"))
                queued, began = queued_so_far(), time.perf_counter()
                self.comm.swap(out, into, peer)
                took = time.perf_counter() - began
                queued = max(0.0, queued_so_far() - queued)
                theirs = self.framework.bytes_of(self.framework.first(into, PING))
                pace.turn(mine, int(decoded(theirs, "int64")[0]), queued)
                mine = max(1, int(took * 1e6))
                self.comm.page.mark()

        self.comm.converse(self._first("out", PIECE), send)
        return pace

    def _first(self, name: str, size: int) -> Any:
        """So many bytes of a buffer."""
        if name not in self.buffers or size > self.framework.size_of(self.buffers[name]):
            self.buffers[name] = self._buffer(min(2 * size, LARGEST_PIECE))
        return self.framework.first(self.buffers[name], size)
