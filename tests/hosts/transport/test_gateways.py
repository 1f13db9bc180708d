"""Hosts that only gateways reach: gateways and hosts that fail, and what a doctor that was killed leaves."""

import json
import random
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab
from tests.support.gateways import behind_gateways

pytestmark = pytest.mark.slow
GATEWAYS = ("node3", "node4")
VIA = ("--via", "node[3-4]")
SHM = ("--exam", "host", "--only", "shm-*")


@pytest.fixture
def gates(lab: Lab) -> Lab:
    behind_gateways(lab, ["node1", "node2"], GATEWAYS)
    return lab


def check(lab: Lab, *words: str) -> dict[str, Any]:
    done = lab.doctor("check", *words, *SHM, "--connect-timeout", "5", "--json", "-")
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def unreached(said: dict[str, Any]) -> dict[str, str]:
    return {host: each["summary"] for each in said["findings"] for host in each["hosts"]}


def test_without_a_gateway_they_are_not_reached(gates: Lab) -> None:
    assert check(gates, "node[1-2]")["exit_code"] == 1
    assert check(gates, "node[1-2]", *VIA)["exit_code"] == 0


def test_the_hosts_of_a_dead_gateway_go_through_another(gates: Lab) -> None:
    gates["node3"].kill_sshd()
    said = gates.doctor("check", "node[1-2]", *VIA, "--exam", "host", "--only", "shm-*")
    assert said.returncode == 0, said.stdout + said.stderr
    told = " ".join(said.stdout.split())
    assert "The jump host node3 cannot be used: Connection refused" in told
    assert "Other gateways were tried for its hosts." in told
    gates["node4"].kill_sshd()
    none = check(gates, "node[1-2]", *VIA)
    assert none["exit_code"] == 1
    assert set(unreached(none)) == {"node1", "node2"}


def test_each_fault_behind_a_gateway_has_its_own_words(gates: Lab) -> None:
    gates["node1"].refuse_login()
    gates["node2"].kill_sshd()
    said = unreached(check(gates, "node[1-2],node9", *VIA))
    assert "nothing listens on port 22 (seen from the jump host node" in said["node2"]
    assert "Permission denied" in said["node1"]
    assert "The name cannot be resolved (seen from the jump host node" in said["node9"]
    gates["node3"].do(": >/root/.ssh/known_hosts")
    strange = unreached(check(gates, "node1", "--via", "node3"))
    assert "node3: Host key verification failed" in strange["node1"]


def test_a_gateway_without_ssh_says_so(gates: Lab) -> None:
    gates["node3"].do(
        "mkdir -p /run/none; cp -P /bin/sh /bin/dash /run/none || :; echo 'PATH=/run/none' >/root/.bashrc"
    )
    said = unreached(check(gates, "node1", "--via", "node3"))
    assert "It has no ssh to log in to the hosts with" in said["node1"]


def test_more_hosts_than_a_connection_has_sessions(gates: Lab) -> None:
    gates["node3"].sshd(MaxSessions="1")
    assert check(gates, "node[1-2]", "--via", "node3")["exit_code"] == 0


def test_routes_of_a_topology(gates: Lab, tmp_path: Path) -> None:
    me = socket.gethostname().partition(".")[0]
    file = tmp_path / "topology.conf"
    file.write_text(f"[routes]\n{me}: node[3-4]\nnode[3-4]: node1\n")
    assert check(gates, "node1", "--via", str(file))["exit_code"] == 0
    done = gates.doctor("facts", "node[1-2]", "--via", str(file))
    assert done.returncode == 2
    assert "no route leads from this machine to node2" in " ".join(done.stderr.split())


def test_a_gateway_that_dies_during_the_run(gates: Lab) -> None:
    hosts = [gates[name] for name in ("node1", "node2", *GATEWAYS)]
    started = gates.start_doctor("hang", "node[1-2]", *VIA, "--for", "6", "--json", "-")
    hosts[2].await_that(
        lambda: "ssh" in hosts[2].do("ps -eo args | grep '[s]sh -o' || :"), "a host behind it"
    )
    hosts[2].do("pkill -KILL sshd")
    out, err = started.communicate(timeout=120)
    assert started.returncode == 3, out + err
    assert "node1" in json.dumps(json.loads(out)["hosts"]), out


def test_nothing_is_left_of_a_doctor_that_was_killed(gates: Lab) -> None:
    hosts = [gates[name] for name in ("node1", "node2", *GATEWAYS)]
    before = [host.snapshot() for host in hosts]
    drawn = random.Random(53)
    for _ in range(20):
        command = drawn.choice([["facts"], ["hang", "--for", "9"], ["check", "--exam", "host"]])
        started = gates.start_doctor(command[0], "node[1-2]", *VIA, *command[1:])
        time.sleep(drawn.uniform(0.4, 4.0))
        started.send_signal(drawn.choice([signal.SIGKILL, signal.SIGTERM]))
        started.wait(60)
    for host, was in zip(hosts, before, strict=True):
        host.await_that(lambda host=host, was=was: not host.leftovers(was), "clean end")  # type: ignore[misc]
