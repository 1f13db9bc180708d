"""The faults of the trials, and how long each makes its rank late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.lab import Host

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
    outside: Callable[[Host], Iterator[None]] | None = None
    """What is done to the host of the rank."""
    host_only: bool = False
    """Whether the host is at fault and not its rank."""


def _slow_link(host: Host) -> Iterator[None]:
    host.slow_link("16mbit")
    try:
        yield
    finally:
        host.do("tc qdisc del dev eth0 root")


def _lossy_link(host: Host) -> Iterator[None]:
    host.do('printf %s "$1" | nft -f -', LOSES)
    try:
        yield
    finally:
        host.do("nft delete table inet lossy")


KINDS = {
    "healthy": SlowKind(healthy=True),
    "jitter": SlowKind("jitter", 60, healthy=True),
    "loader": SlowKind("loader"),
    "reads": SlowKind("reads"),
    "computes": SlowKind("computes"),
    "uneven": SlowKind("uneven"),
    "little": SlowKind("little", 15),
    "gil": SlowKind("gil", 30),
    "gc": SlowKind("gc"),
    "fsync": SlowKind("fsync"),
    "checkpoint": SlowKind("checkpoint", first=True),
    "evaluation": SlowKind("evaluation", first=True),
    "two": SlowKind("uneven", ranks=2),
    "later": SlowKind("loader", later=4.0),
    "slow-link": SlowKind(outside=_slow_link, host_only=True),
    "lossy-link": SlowKind(outside=_lossy_link, host_only=True),
}


@contextmanager
def done_to(kind: SlowKind, host: Host) -> Iterator[None]:
    yield from kind.outside(host) if kind.outside else iter((None,))
