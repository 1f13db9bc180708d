"""A host that keeps stopping its processes makes the training slow, and is named: with two hosts, too."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab import Host, Lab
from tests.lab.found import keep
from tests.lab.warm import Started
from tests.support.smoke.pages import watching

FREEZER = Path("/sys/fs/cgroup/freezer")
PERIOD, STOPPED = 0.04, 0.9
pytestmark = pytest.mark.skipif(not (FREEZER / "cgroup.procs").exists(), reason="needs cgroup v1")


@contextmanager
def frozen_and_thawed(host: Host) -> Iterator[threading.Event]:
    """The sshd of a host in a group that is stopped for most of the time, once the event is set."""
    group = FREEZER / f"cluster-doctor-lab-{os.getpid()}-{host.name}"
    host.do(f"mkdir {group}; cat /run/sshd.pid >{group}/cgroup.procs")
    begin, end = threading.Event(), threading.Event()

    def beat() -> None:
        begin.wait()
        while not end.is_set():
            (group / "freezer.state").write_text("FROZEN")
            time.sleep(PERIOD * STOPPED)
            (group / "freezer.state").write_text("THAWED")
            time.sleep(PERIOD * (1 - STOPPED))

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield begin
    finally:
        end.set()
        begin.set()
        beating.join()
        for pid in (group / "cgroup.procs").read_text().split():
            (FREEZER / "cgroup.procs").write_text(pid)
        group.rmdir()


@pytest.mark.alone
def test_a_frozen_and_thawed_host_is_named(lab: Lab, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ("--python", sys.executable, "--ranks-per-host", "2", "--json", str(report))
    with frozen_and_thawed(lab["node2"]) as begin:
        process: Started = lab.start_doctor("smoke", "node1", "node2", *options)
        with watching(lab) as watch:
            watch.await_phase("train", 0, run=process)
        begin.set()
        process.communicate(timeout=100)
    keep(options, process.returncode or 0, tmp_path, "")
    told = json.loads(report.read_text())
    (found,) = (each for each in told["findings"] if each["status"] in ("fail", "warn"))
    assert (found["check"], found["status"], found["hosts"]) == ("smoke-contention", "fail", ["node2"])
    assert "kept from running" in found["summary"]
    assert process.returncode == 1
    again = lab.doctor("smoke", "node1", "node2", *options)
    assert again.returncode == 0, again.stdout
    assert "Healthy: node[1-2]" in again.stdout
