"""However a run ends, no process, file or port of it stays on a host, and its results are reported."""

import itertools
import json
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import Host, Lab, Snapshot
from tests.support.cases import from_cases
from tests.support.commands import doctor
from tests.support.faults import ALONE, HOSTS, Examiner, some_of, victim

MARK = "/run/asked"
CLOSED = from_cases(__file__, "CLOSED", str)


def runs(host: Host, words: str) -> bool:
    return any(words in process.command for process in host.snapshot().processes)


def asked(host: Host) -> bool:
    return host.ask(f"test -s {MARK}").returncode == 0


def slow_probe(lab: Lab, slow: Host) -> None:
    """Every host logs that it was asked; one then hangs in a command, and has no `timeout` to end it."""
    for host in lab:
        host.write(MARK, "")
        host.program("dmesg", f"echo asked >>{MARK}" + ("; exec sleep 4711" if host is slow else ""))
    slow.no_tool("timeout")


def in_mid_probe(host: Host, slow: Host) -> bool:
    return runs(host, "sleep 4711") if host is slow else asked(host) and not runs(host, "sh -s")


def slow_mesh(lab: Lab, slow: Host) -> None:
    """Connections to one host are dropped: all agents wait and listen."""
    del lab
    slow.nft(CLOSED)


def in_mid_mesh(host: Host, slow: Host) -> bool:
    del slow
    return host.snapshot().ports > {22}


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage in which a run is ended: how to prolong it, and how to see that the run reached it."""

    prepare: Callable[[Lab, Host], None]
    reached: Callable[[Host, Host], bool]
    args: tuple[str, ...]
    finds: Callable[[Host], dict[str, list[str]]]
    """What is known about the slow host by then."""


STAGES = {
    "probe": Stage(slow_probe, in_mid_probe, ALONE, lambda _: {}),
    "mesh": Stage(slow_mesh, in_mid_mesh, (), lambda slow: {"firewall-blocks": [slow.name]}),
}


def await_clean(
    lab: Lab, before: dict[str, Snapshot], names: Sequence[str] = (), but: str = "nothing"
) -> None:
    def clean(host: Host) -> bool:
        left = host.leftovers(before[host.name])
        return not left.ports and not left.files and all(but in each.command for each in left.processes)

    for host in (host for host in lab if not names or host.name in names):
        host.await_that(lambda host=host: clean(host), "clean end")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("stage", "number"),
    some_of(
        itertools.product(STAGES, (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)),
        ("probe", signal.SIGKILL),
        ("probe", signal.SIGTERM),
        ("mesh", signal.SIGINT),
    ),
)
def test_ended_by_a_signal(stage: str, number: signal.Signals, lab: Lab, tmp_path: Path) -> None:
    slow = victim(lab, "peer", f"{stage} {number}")
    sick = next(host for host in lab if host is not slow)
    sick.shm("64m")
    at = STAGES[stage]
    at.prepare(lab, slow)
    before = {host.name: host.snapshot() for host in lab}
    report = tmp_path / "report.json"
    healthy = tmp_path / "healthy"
    recording = tmp_path / "recording.json"
    files = ("--json", str(report), "--healthy-hosts", str(healthy), "--save", str(recording))
    run = lab.start_doctor("check", HOSTS, *at.args, *files)
    for host in lab:
        host.await_that(lambda host=host: at.reached(host, slow), f"run in mid-{stage}")  # type: ignore[misc]
    run.send_signal(number)
    out, errors = run.communicate(timeout=20)
    await_clean(lab, before)
    if number is signal.SIGKILL:
        assert run.returncode == -number
        return
    assert run.returncode == 128 + number, errors
    assert "Interrupted." in out
    assert "Traceback" not in out + errors
    told = json.loads(report.read_bytes())
    failed = {each["check"]: each["hosts"] for each in told["findings"] if each["status"] == "fail"}
    assert failed == {"shm-small": [sick.name], **at.finds(slow)}
    unexamined = {host["name"] for host in told["hosts"] if host["status"] == "unexamined"}
    if stage == "mesh":
        assert unexamined == set(lab.names) - {sick.name, slow.name}, "nobody connected to them yet"
    else:
        assert unexamined == {slow.name}
        assert re.search(rf"{slow.name}\s.*\bnot answered", out), out
        assert f"doctor check {slow.name}" in out
    assert healthy.read_text() == "", "an unfinished run vouches for nobody"
    again = tmp_path / "again.json"
    doctor("check", "--replay", str(recording), "--json", str(again))
    assert json.loads(again.read_bytes()) == told | {"exit_code": 1}, "nobody interrupted the replay"


def test_ended_by_faults(lab: Lab, examine: Examiner) -> None:
    lab["node2"].nft(CLOSED)
    lab["node3"].shm("64m")
    lab["node4"].shell("cut", after=3000)
    before = {host.name: host.snapshot() for host in lab}
    assert examine().code == 1
    await_clean(lab, before)


def test_ended_by_a_lost_network(lab: Lab) -> None:
    """The agents no longer get messages from the controller, so they end; only sshd still waits for it."""
    lost = lab["node4"]
    slow_mesh(lab, lab["node2"])
    before = {host.name: host.snapshot() for host in lab}
    run = lab.start_doctor("check", HOSTS)
    for host in lab:
        host.await_that(lambda host=host: in_mid_mesh(host, host), "run in mid-mesh")  # type: ignore[misc]
    lost.link_down()
    await_clean(lab, before, [lost.name], but="sshd: ")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=20)
    await_clean(lab, before, but="sshd: ")
