"""`--in-job` on real hosts: every rank of a job that mpirun or torchrun started ends with the same exit code.

mpirun runs on a machine outside the job, and starts its ranks over SSH.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from tests.lab import Lab
from tests.lab.needs import without
from tests.support.injob import JOINED, await_true, mpirun, pid_of, torchrun

pytestmark = pytest.mark.skipif(without("mpirun"), reason="needs the program 'mpirun'")
SHM = ("check", "--exam", "host", "--only", "shm-*")
ALL = range(6)


@pytest.fixture
def three(lab4: Lab) -> Iterator[Lab]:
    yield lab4
    lab4.reset()


def plain(text: str) -> str:
    """mpirun gives ranks a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\r", "")


def test_mpirun_healthy(three: Lab) -> None:
    hosts = three.hosts[:3]
    before = [host.snapshot() for host in hosts]
    with mpirun(three, hosts, 2, "check") as job:
        codes = job.wait(ALL)
        text = plain(job.text)
        assert codes == dict.fromkeys(ALL, 0), text
        assert "3 hosts · 6 ranks (2 a host, the running job)" in text
        assert text.count("Healthy. 3 hosts: 3 healthy") == 1, "one rank prints"
        assert "WARN" not in text
        assert "FAIL" not in text
        job.starts[0].wait(60)
    assert [host.leftovers(was) for host, was in zip(hosts, before, strict=True) if host.leftovers(was)] == []


def test_mpirun_a_fault_on_one_host_ends_every_rank_alike(three: Lab) -> None:
    three["node2"].shm("16m")
    with mpirun(three, three.hosts[:3], 2, *SHM) as job:
        codes = job.wait(ALL)
        text = plain(job.text)
    assert codes == dict.fromkeys(ALL, 1), text
    assert re.search(r"FAIL +node2 +shm-small", text), text
    assert text.count("FAIL") == 1


def test_mpirun_a_stopped_rank_is_named_on_its_host(three: Lab) -> None:
    """Rank 3 is the second one of node2; the others wait for it no longer than the given time."""
    others = [rank for rank in ALL if rank != 3]
    with mpirun(three, three.hosts[:3], 2, *SHM, "--connect-timeout", "20", STOP="3") as job:
        codes = job.wait(others)
        text = plain(job.text)
    assert codes == dict.fromkeys(others, 1), text
    assert re.search(r"FAIL +node2 +host-unreachable", text), text
    assert re.search(r"Rank 3 \(pid \d+\) never came within 20 s: it is stopped\.", text), text
    assert text.count("FAIL") == 1


def test_mpirun_the_first_rank_of_a_host_stops_after_it_joined(three: Lab) -> None:
    """Rank 2 would run node2's programs; rank 5 is held back until rank 2 is stopped."""
    three["node3"].do("touch /run/held")
    others = [rank for rank in ALL if rank != 2]
    with mpirun(three, three.hosts[:3], 2, *SHM, "-v", HOLD="5") as job:
        await_true(lambda: f"rank 2 {JOINED}" in job.text, lambda: job.text)
        pid = pid_of(three["node2"], 2)
        three["node2"].do('kill -STOP "$1"', str(pid))
        three["node3"].do("rm /run/held")
        codes = job.wait(others)
        text = plain(job.text)
    assert codes == dict.fromkeys(others, 1), text
    assert re.search(rf"Rank 2 \(pid {pid}\) is stopped\.", text), text
    assert re.search(r"FAIL +node2 +host-unreachable", text), text
    assert text.count("FAIL") == 1


def test_mpirun_trains(three: Lab) -> None:
    with mpirun(three, three.hosts[:2], 1, "preflight", "--python", sys.executable) as job:
        codes = job.wait(range(2))
        text = plain(job.text)
    assert codes == {0: 0, 1: 0}, text
    assert "Smoke  2 ranks (2 hosts × 1), gloo" in text
    assert "30 steps, loss" in text


@pytest.mark.long
def test_torchrun_healthy(three: Lab) -> None:
    """Its own store holds MASTER_PORT, which does not count as a port in use."""
    with torchrun(three.hosts[:3], 2, "check") as job:
        codes = job.wait(ALL)
        text = plain(job.text)
    assert codes == dict.fromkeys(ALL, 0), text
    assert "Healthy. 3 hosts: 3 healthy" in text
    assert "WARN" not in text


@pytest.mark.long
def test_torchrun_a_stopped_rank_is_named_on_its_host(three: Lab) -> None:
    others = [rank for rank in ALL if rank != 3]
    with torchrun(three.hosts[:3], 2, *SHM, "--connect-timeout", "40", STOP="3") as job:
        codes = job.wait(others)
        text = plain(job.text)
    assert codes == dict.fromkeys(others, 1), text
    assert re.search(r"FAIL +node2 +host-unreachable", text), text
    assert re.search(r"Rank 3 \(pid \d+\) never came within 40 s: it is stopped\.", text), text
