"""What the run itself excuses: its own end, and a pause of its process."""

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from doctor.exam.collect import Collection, Order
from doctor.exam.pauses import PAUSE, Pauses
from doctor.job.wishes import JobWishes
from doctor.model import Host, UnreachedHost, UnreachedKind
from doctor.transport import Script
from doctor.transport.errors import cannot
from tests.support.limits import within
from tests.support.recordings import report


def collection(until: float = math.inf, **more: Any) -> Collection:
    order = Order("check", "host", (Host("node1", "node1"),), JobWishes(), (), until=until)
    nobody: Any = None
    return Collection(order, nobody, lambda *_: None, **more)


def why(kind: UnreachedKind) -> UnreachedHost:
    return UnreachedHost("node1", kind, "No answer.", "", (), "")


@pytest.mark.parametrize("kind", [UnreachedKind.TIMEOUT, UnreachedKind.SILENT, UnreachedKind.BANNER])
def test_a_host_that_was_cut_off_by_the_end_of_the_run(kind: UnreachedKind) -> None:
    assert collection(time.monotonic())._excused(why(kind)).kind is UnreachedKind.DEADLINE
    assert collection(time.monotonic() + 60)._excused(why(kind)) == why(kind)
    assert collection()._excused(why(kind)) == why(kind)


@pytest.mark.parametrize("kind", [UnreachedKind.REFUSED, UnreachedKind.AUTH, UnreachedKind.KEY_CHANGED])
def test_what_a_host_said_is_excused_by_nothing(kind: UnreachedKind) -> None:
    stopped = Pauses()
    stopped._woke -= 25
    assert collection(time.monotonic(), pauses=stopped)._excused(why(kind)) == why(kind)


@pytest.mark.parametrize("kind", [UnreachedKind.TIMEOUT, UnreachedKind.LOST, UnreachedKind.JUMP])
def test_a_run_that_was_stopped_blames_no_host(kind: UnreachedKind) -> None:
    stopped = Pauses()
    stopped._woke -= 25
    excused = collection(pauses=stopped)._excused(why(kind))
    assert excused.kind is UnreachedKind.CONTROLLER
    assert "was stopped for 25 s" in excused.summary


class Nobody:
    """A transport whose hosts never have their turn."""

    name = "nobody"
    warnings = ()

    def run(self, scripts: Mapping[str, Script], timeout: float, until: float) -> Iterator[UnreachedHost]:  # noqa: ARG002
        yield from (cannot("no turn").of(host) for host in scripts)


@pytest.mark.slow
def test_many_hosts_cost_little() -> None:
    """The work for each host does not grow with the number of hosts."""
    names = [f"node{number}" for number in range(20_000)]
    nobody: Any = Nobody()
    hosts = tuple(Host(name, name) for name in names)
    with within(10):
        many = Collection(Order("check", "host", hosts, JobWishes(), ()), nobody, lambda *_: None)
        many.run()
        found = report(many.recording())
    assert (len(many.unreached), found.exit_code) == (20_000, 3)


def test_a_busy_machine_is_no_pause() -> None:
    pauses = Pauses()
    pauses._woke -= PAUSE / 2
    assert pauses.longest == 0
    pauses._woke -= PAUSE
    assert pauses.longest >= PAUSE
    pauses.close()
