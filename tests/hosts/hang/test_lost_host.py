"""A host that lost everything without a word: the other ranks keep connections that nobody there has."""

import json
from typing import Any

import pytest

from tests.hosts.hang.test_torchrun import step, torchrun, until
from tests.lab import Lab
from tests.support.hang.lost import lose_everything
from tests.support.hang.named import culprits

pytestmark = pytest.mark.slow

KILLED = "[{:.6f}] Out of memory: Killed process 4711 (python) total-vm:9000000kB, anon-rss:8000000kB\n"
BOOTED = "echo '{0:.2f} {0:.2f}' >/run/uptime; mount --bind /run/uptime /proc/uptime"


def looked(lab: Lab) -> tuple[int, dict[str, Any]]:
    done = lab.doctor("hang", "node[1-3]", "--for", "1", "--json", "-")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_its_ranks_are_gone_and_its_connections_half_open(lab: Lab) -> None:
    hosts = [lab["node1"], lab["node2"], lab["node3"]]
    with torchrun(hosts, 1, FAULT="") as job:
        until(lambda: min(step(hosts, rank) for rank in range(3)) >= 3, job)
        lose_everything(hosts[2], "[h]ang/job.py")
        code, said = looked(lab)
        (culprit,) = culprits(said)
        assert (code, culprit["rank"], culprit["host"], culprit["pid"]) == (1, 2, "node3", None), said
        assert (culprit["cause"], culprit["confidence"]) == ("gone", "certain")
        assert f"of ranks 0-1 to {hosts[2].address} are half open, and node3 answers" in culprit["summary"]
        assert "started again" not in culprit["summary"]
        assert said["hang"]["job"]["gone"] == [{"rank": 2, "host": "node3"}]
        assert any("journalctl" in each and "-b -1" not in each for each in said["hang"]["commands"])
        assert any(
            "to leave node3 out, start the job again on node[1-2]" in each for each in said["hang"]["do"]
        )

        for host in hosts:
            host.no_tool("ip", "ss")
        code, said = looked(lab)
        (culprit,) = culprits(said)
        assert (code, culprit["rank"], culprit["cause"], culprit["confidence"]) == (
            1,
            2,
            "gone",
            "certain",
        ), said
        assert said["hang"]["rights"]["connections"], "the kernel is asked without ss"

        now = float(hosts[2].do("cut -d' ' -f1 /proc/uptime"))
        hosts[2].kernel_log(KILLED.format(now - 5))
        _, said = looked(lab)
        assert "; its kernel killed python (pid 4711) " in culprits(said)[0]["summary"]

        hosts[2].do(BOOTED.format(2.0))
        _, said = looked(lab)
        assert "; node3 was started again 2 s ago" in culprits(said)[0]["summary"]
        assert any("journalctl -b -1" in each for each in said["hang"]["commands"])
