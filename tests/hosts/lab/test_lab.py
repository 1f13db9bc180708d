"""The lab itself: its hosts exist, are healthy and separate, can be broken and reset, and leave nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab, missing, needs, sweep
from tests.lab.controller import REPOSITORY
from tests.lab.needs import processes_of
from tests.support.cases import cases
from tests.support.faults import injection

PORT = 29500


def test_missing_says_what_the_lab_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert missing() == "the lab needs root"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs, "PROGRAMS", ("sh", "no-such-program"))
    assert missing() == "the lab needs the program 'no-such-program'"


# Hosts exist and are healthy.


def test_nothing_leaves_the_machine(lab: Lab) -> None:
    for namespace in (lab["node1"].ask("ip -4 route show default"), lab.run(["ip", "-4", "route"])):
        assert "dev eth0" not in namespace.stdout.replace("via 198.18.0.1 dev eth0", "")


def test_an_idle_host_runs_only_sshd(lab: Lab) -> None:
    host = lab["node1"]
    seen = host.snapshot()
    assert not seen.processes
    assert seen.ports == {22}
    assert host.ask("dmesg").stdout == ""
    assert len(host.ask("cat /proc/swaps").stdout.splitlines()) == 1
    assert host.ask("cat /proc/sys/net/ipv4/neigh/default/gc_thresh3").stdout == "1024\n"


def test_init_reaps_orphans(lab: Lab) -> None:
    host = lab["node1"]
    host.sh("sh -c 'sleep 0.05 & sleep 0.05 &'")
    time.sleep(0.3)
    assert not host.snapshot().processes


# Apart from each other and from the machine.


@cases
def test_change_is_seen_on_one_host_only_until_reset(lab: Lab, change: dict[str, Any], look: str) -> None:
    first, second = lab["node1"], lab["node2"]
    fine, neighbour = first.ask(look).stdout, second.ask(look).stdout
    injection(change)(first)
    changed = first.ask(look).stdout
    assert changed != fine
    assert second.ask(look).stdout == neighbour
    assert subprocess.run(["sh", "-c", look], capture_output=True, text=True).stdout != changed
    lab.reset()
    assert first.ask(look).stdout == fine


def test_processes_are_apart(lab: Lab) -> None:
    first, second = lab["node1"], lab["node2"]
    process = first.spawn(["sleep", "1000"])
    assert process.alive
    assert "sleep 1000" in first.ask("ps -e -o args").stdout
    assert "sleep 1000" not in second.ask("ps -e -o args").stdout
    process.stop()
    assert not process.alive


def test_settings_of_the_machine_cannot_be_written(lab: Lab) -> None:
    done = lab["node1"].ask("echo 1 >/proc/sys/vm/swappiness")
    assert "Read-only" in done.stderr


# Sessions that fail.


@pytest.mark.parametrize("kind", ["silent", "flood", "stall"])
def test_a_shell_that_hangs_ends_with_its_connection(lab: Lab, kind: str) -> None:
    host = lab["node1"]
    host.shell(kind, after=3)
    before = host.snapshot()
    session = lab.popen(["ssh", "-F", str(lab.ssh_config), "node1", "echo 123456"])
    assert session.stdout is not None
    if kind != "silent":
        assert session.stdout.read(3) == {"flood": "a s", "stall": "123"}[kind]
    with pytest.raises(subprocess.TimeoutExpired):
        session.wait(0.6)
    assert host.leftovers(before).processes
    session.kill()
    host.await_that(lambda: not host.leftovers(before), "end of the session", 3)


def test_shell_cuts_the_connection(lab: Lab) -> None:
    lab["node1"].shell("cut", "trainee", after=7)
    done = lab.ssh("node1", "echo 123456789", "trainee")
    assert (done.stdout, done.returncode) == ("1234567", 255)


# Nothing is left behind.


def test_leftovers_are_listed(lab: Lab) -> None:
    host = lab["node1"]
    before = host.snapshot()
    assert not host.leftovers(before)
    host.listen(PORT, user="trainee")
    host.do("touch /dev/shm/a; mkdir -p /opt/b; touch /opt/b/c; touch ~/d")
    found = host.leftovers(before)
    assert [process.command.split()[0] for process in found.processes] == [sys.executable]
    assert {"/dev/shm/a", "/opt/b/c", "/root/d"} <= found.files
    assert found.ports == {PORT}


def test_a_closed_lab_leaves_nothing(make_lab: Callable[..., Lab]) -> None:
    lab = make_lab(2, names=["a", "b"])
    lab["a"].spawn(["sleep", "1000"])
    running, directory = lab.popen(["sleep", "1000"]), lab.directory
    assert lab.ssh("b", "hostname").stdout == "b\n"
    lab.close()
    assert running.poll() is not None
    assert not directory.exists()
    assert str(directory) not in Path("/proc/self/mounts").read_text()
    assert not processes_of(directory)


@pytest.mark.usefixtures("make_lab")
def test_a_killed_lab_is_cleaned_up() -> None:
    script = "from tests.lab import Lab; lab = Lab(2).start(); print(lab.directory, flush=True); input()"
    owner = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        directory = Path(owner.stdout.readline().strip())
        assert processes_of(directory)
        assert directory not in sweep()
        os.kill(owner.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while processes_of(directory):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert directory in sweep()
    assert not directory.exists()


def test_reset_boots_only_what_was_touched(lab: Lab) -> None:
    pids = {host.name: host.pid for host in lab}
    lab["node2"].sh("true")
    lab["node3"].power_off()
    lab.reset()
    assert {host.name for host in lab if host.pid != pids[host.name]} == {"node2", "node3"}
    assert not lab["node2"].dirty


def test_two_labs_run_side_by_side(lab: Lab, make_lab: Callable[..., Lab]) -> None:
    other = make_lab(1)
    other["node1"].do("touch /tmp/other")
    assert "other" in other.ssh("node1", "ls /tmp").stdout.split()
    assert "other" not in lab.ssh("node1", "ls /tmp").stdout.split()
