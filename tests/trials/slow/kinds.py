"""What a fault of `kinds.yaml` is, and what is done to hosts from outside their job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from tests.lab import Host
from tests.support.cases import from_cases
from tests.support.slow import starving
from tests.trials.kindfile import kinds

LOSES = from_cases(__file__, "LOSES", str)


Outside = Callable[[Host, int], Iterator[None]]


class SlowKind(Struct, frozen=True, forbid_unknown_fields=True):
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
    outside: str = ""
    """What is done to the host of the rank, or to its process."""
    cause: str = ""
    """What the report must give as the reason, if it is looked at."""
    lag: str = "late"
    """How the report must call it."""
    host_only: bool = False
    """Whether the host is at fault and not its rank."""
    beside: SlowKind | None = None
    """What is wrong on another host at the same time."""
    pipeline: bool = False
    """Only jobs of this kind have it."""

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


OUTSIDE: Mapping[str, Outside] = {
    "hogs-beside": _beside_hogs,
    "quota": _quota,
    "hogs": _hogs,
    "slow-link": _slow_link,
    "lossy-link": _lossy_link,
}
KINDS = kinds(__file__, SlowKind)


@contextmanager
def done_to(kind: SlowKind, host: Host, pid: int) -> Iterator[None]:
    yield from OUTSIDE[kind.outside](host, pid) if kind.outside else iter((None,))
