"""A run that is ended while NPUs are queried or ping each other: nothing stays, and results are reported."""

import itertools
import json
import signal
from pathlib import Path

import pytest

from tests.lab import Rack, Snapshot
from tests.lab.warm import Started
from tests.support.faults import some_of

HOSTS = "node[1-3]"
USERS = {"root": (), "trainee": ("--sudo",)}


def asking(rack: Rack) -> str:
    """hccn_tool hangs on one host and ignores every signal except KILL."""
    rack["node2"].hang("link", 3, deaf=True)
    return "sleep 86400"


def pinging(rack: Rack) -> str:
    """The device of one host gets no answers, and its pings take a long time to fail."""
    rack.cut(rack["node2"][3])
    for host in rack:
        host.ping_timeout(7)
    return "sleep 7"


STAGES = {"asking": asking, "pinging": pinging}


def await_clean(rack: Rack, before: dict[str, Snapshot], *but: str) -> None:
    for host in (host for host in rack.lab if host.name not in but):
        host.await_that(lambda host=host: not host.leftovers(before[host.name]), "clean end")  # type: ignore[misc]


def run_until(rack: Rack, words: str, args: tuple[str, ...], user: str) -> Started:
    """An examination during which a process with these words on its command line runs on node2."""
    run = rack.lab.start_doctor("check", HOSTS, *args, user=user)
    slow = rack.lab["node2"]
    slow.await_that(lambda: any(words in each.command for each in slow.snapshot().processes), words)
    return run


@pytest.mark.parametrize(
    ("user", "stage", "number"),
    some_of(
        itertools.product(USERS, STAGES, (signal.SIGINT, signal.SIGKILL)),
        ("root", "asking", signal.SIGKILL),
        ("root", "pinging", signal.SIGINT),
    ),
)
def test_ended_by_a_signal(user: str, stage: str, number: signal.Signals, rack: Rack, tmp_path: Path) -> None:
    if user != "root":
        for host in rack.lab:
            host.grant_sudo(user)
    before = {host.name: host.snapshot() for host in rack.lab}
    report = tmp_path / "report.json"
    run = run_until(rack, STAGES[stage](rack), (*USERS[user], "--json", str(report)), user)
    run.send_signal(number)
    out, errors = run.communicate(timeout=20)
    await_clean(rack, before)
    assert not rack.setters
    if number is signal.SIGKILL:
        return
    assert run.returncode == 128 + number, errors
    assert "Interrupted." in out
    told = json.loads(report.read_bytes())
    failed = {found["check"] for found in told["findings"] if found["status"] in ("fail", "crash")}
    assert failed == ({"device-net-unhealthy"} if stage == "pinging" else set()), "what was known by then"
    unknown = {found["check"]: found["summary"] for found in told["findings"] if found["status"] == "unknown"}
    if stage == "pinging":
        assert unknown["device-unreachable"] == "npu-pings: the run ended before it"


def test_a_host_that_dies_while_it_pings_is_not_healthy(rack: Rack, tmp_path: Path) -> None:
    before = {host.name: host.snapshot() for host in rack.lab}
    report = tmp_path / "report.json"
    for host in rack:
        host.slow(0.1)  # eight devices and two peers, so the pings take a while
    run = rack.lab.start_doctor("check", HOSTS, "--json", str(report))
    dying = rack["node2"]
    dying.host.await_that(lambda: any("-ping" in call for call in dying.calls), "first ping", timeout=60)
    dying.host.halt()
    out, errors = run.communicate(timeout=60)
    await_clean(rack, before, "node2")
    assert "Traceback" not in out + errors
    told = json.loads(report.read_bytes())
    failed = {each["check"]: each["hosts"] for each in told["findings"] if each["status"] == "fail"}
    assert failed["host-unreachable"] == ["node2"]
    assert {host["name"] for host in told["hosts"] if host["status"] == "healthy"} <= {"node1", "node3"}
    assert run.returncode == 1
