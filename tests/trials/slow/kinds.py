"""The faults of the trials, and how long each makes its rank late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tests.lab import Host
from tests.support.slow import starving

LOSES = """
table inet lossy {
  chain c { type filter hook input priority 0; meta l4proto tcp numgen random mod 100 < 2 drop; }
}
"""


@dataclass(frozen=True, slots=True)
class SlowKind:
    fault: str = "none"
    """As the job calls it."""
    ms: float = 50
    healthy: bool = False
    """Nobody may be named."""
    ranks: int = 1
    """How many are late."""
    later: float = 0.0
    """Seconds after the start of the look until it begins."""
    first: bool = False
    """Only rank 0."""
    everybody: bool = False
    """Whether all ranks do what the fault says, and only one suffers from it."""
    outside: Callable[[Host, int], Iterator[None]] | None = None
    """What is done to the host of the rank, or to its process."""
    cause: str = ""
    """What the report must give as the reason, if it is looked at."""
    lag: str = "late"
    """How the report must call it."""
    host_only: bool = False
    """Whether the host is at fault and not its rank."""
    beside: SlowKind | None = None
    """What is wrong on another host at the same time."""

    @property
    def both(self) -> tuple[SlowKind, ...]:
        return (self, self.beside) if self.beside else (self,)

    def row(self, ranks: str, base: float, scaled: bool) -> str:
        """What the job reads; `base`: how many milliseconds a step sleeps."""
        ms = self.ms if self.ms >= 1 else self.ms * base
        ms = max(ms, self.ms * base / 60) if scaled else ms
        return f"{self.fault} {ranks} {ms}"


def _slow_link(host: Host, _: int) -> Iterator[None]:
    host.slow_link("16mbit")
    try:
        yield
    finally:
        host.do("tc qdisc del dev eth0 root")


def _lossy_link(host: Host, _: int) -> Iterator[None]:
    host.do('printf %s "$1" | nft -f -', LOSES)
    try:
        yield
    finally:
        host.do("nft delete table inet lossy")


def _quota(_: Host, pid: int) -> Iterator[None]:
    with starving.quota(pid, 0.02):
        yield


def _hogs(_: Host, pid: int) -> Iterator[None]:
    with starving.hogs(pid):
        yield


def _beside_hogs(host: Host, pid: int) -> Iterator[None]:
    """Others compute on the machine, which all hosts share."""
    del pid
    started = [host.spawn(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    try:
        yield
    finally:
        for each in started:
            each.stop()


KINDS = {
    "healthy": SlowKind(healthy=True),
    "jitter": SlowKind("jitter", 60, healthy=True),
    "beside-hogs": SlowKind(healthy=True, outside=_beside_hogs),
    "loader": SlowKind("loader", cause="data loader"),
    "reads": SlowKind("reads", cause="reads"),
    "computes": SlowKind("computes", cause="computes"),
    "uneven": SlowKind("uneven", cause="takes longer at the same line"),
    "little": SlowKind("little", 15),
    "gil": SlowKind("gil", 30, cause="GIL"),
    "gc": SlowKind("gc", cause="garbage collection"),
    "fsync": SlowKind("fsync", cause="writes"),
    "checkpoint": SlowKind("checkpoint", first=True, cause="checkpoint", lag="pauses"),
    "evaluation": SlowKind("evaluation", first=True, cause="evaluation", lag="pauses"),
    "quota": SlowKind("computes", 0.12, everybody=True, outside=_quota, cause="CPU quota"),
    "hogs": SlowKind("computes", 0.12, everybody=True, outside=_hogs, cause="other processes"),
    "two": SlowKind("uneven", ranks=2),
    "later": SlowKind("loader", later=4.0),
    "stage": SlowKind("stage", 400, lag="slowest stage"),
    "slow-link": SlowKind(outside=_slow_link, host_only=True, lag="slow link"),
    "lossy-link": SlowKind(outside=_lossy_link, host_only=True, lag="lossy link"),
}
LINKS = ("slow-link", "lossy-link")
LOADER, LINK = SlowKind("loader", 100, cause="data loader"), KINDS["slow-link"]
PAIRS = {
    "loader-and-quota": SlowKind("loader", 200, cause="data loader", beside=KINDS["quota"]),
    "loader-and-fsync": replace(LOADER, beside=SlowKind("fsync", 70, cause="writes")),
    "loader-and-little": replace(LOADER, beside=KINDS["little"]),
    "late-and-later": replace(KINDS["uneven"], ms=120, beside=SlowKind("loader", 60, cause="data loader")),
    "checkpoint-and-loader": replace(KINDS["checkpoint"], beside=replace(LOADER, ms=40)),
    "link-and-little": replace(LINK, beside=KINDS["little"]),
    "link-and-loader": replace(LINK, beside=replace(LOADER, ms=400)),
    "lossy-and-loader": replace(KINDS["lossy-link"], beside=LOADER),
}
"""Two faults at once, on two hosts."""
KINDS |= PAIRS
"""Milliseconds below 1 are a share of the time that a step sleeps."""


@contextmanager
def done_to(kind: SlowKind, host: Host, pid: int) -> Iterator[None]:
    yield from kind.outside(host, pid) if kind.outside else iter((None,))
