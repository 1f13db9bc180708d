"""examples/ray with the real Ray, a node on each of two hosts of the lab."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.hosts.hang.test_torchrun import step, torchrun, until
from tests.lab import Host, Lab
from tests.support.injob import environment
from tests.support.paths import ROOT

PYTHON = os.environ.get("RAY_PYTHON", "")
"""An interpreter with Ray."""
SCRIPT = str(ROOT / "examples/ray/doctor_on_ray.py")
PATIENCE = 120

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PYTHON, reason="no interpreter with Ray: RAY_PYTHON=/path/to/python"),
]


def start(host: Host, *words: str) -> "subprocess.Popen[bytes]":
    small = ("--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", "--block")
    ray = [PYTHON, "-m", "ray.scripts.scripts", "start", f"--node-ip-address={host.address}", *small, *words]
    quiet = subprocess.DEVNULL
    host.dirty = True
    return subprocess.Popen(host.enter(ray), stdin=quiet, stdout=quiet, stderr=quiet, env=environment())


def on_ray(lab: Lab, *words: str) -> "subprocess.CompletedProcess[str]":
    doctor = f'#!/bin/sh\nexec {sys.executable} -m doctor "$@"\n'
    for host in lab.hosts[:2]:
        host.do('printf %s "$1" >/usr/local/bin/doctor; chmod 755 /usr/local/bin/doctor', doctor)
    argv = lab["node1"].enter([PYTHON, SCRIPT, *words])
    env = environment(DOCTOR="/usr/local/bin/doctor")
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, env=env, check=False)


@pytest.fixture
def ray(lab: Lab) -> Iterator[Lab]:
    first, second = lab.hosts[:2]
    nodes = [start(first, "--head", "--port=6379", "--include-dashboard=false")]
    try:
        first.await_listener(6379)
        nodes.append(start(second, f"--address={first.address}:6379"))
        alive = "import ray; ray.init(address='auto'); print(sum(n['Alive'] for n in ray.nodes()))"
        count = first.enter([PYTHON, "-c", alive])

        def both() -> bool:
            done = subprocess.run(count, capture_output=True, text=True, env=environment(), check=False)
            return done.stdout.strip() == "2"

        first.await_that(both, "two nodes", PATIENCE)
        yield lab
    finally:
        for node in nodes:
            node.terminate()
            node.wait()


def test_one_task_on_each_node_is_a_rank(ray: Lab) -> None:
    facts = on_ray(ray, "facts")
    assert facts.returncode == 0, facts.stdout + facts.stderr
    assert "2 hosts reported" in facts.stdout
    ray["node2"].shm("16m")
    check = on_ray(ray, "check", "--exam", "host", "--only", "shm-*")
    assert check.returncode == 1, check.stdout + check.stderr
    assert "FAIL  node2" in check.stdout


def test_a_job_that_hangs_is_looked_at_from_beside_it(ray: Lab) -> None:
    hosts = [ray["node1"], ray["node2"]]
    with torchrun(hosts, 1, FAULT="stop", VICTIM="1") as job:
        until(lambda: step(hosts, 1, "hit") == 1, job)
        hang = on_ray(ray, "hang")
    assert hang.returncode == 1, hang.stdout + hang.stderr
    assert "rank 1 on node2" in hang.stdout


def test_a_node_without_doctor_is_a_finding(ray: Lab) -> None:
    ray["node2"].do("rm -f /usr/local/bin/doctor")
    argv = ray["node1"].enter([PYTHON, SCRIPT, "check", "--exam", "host", "--connect-timeout", "8"])
    env = environment(DOCTOR="/usr/local/bin/doctor")
    ray["node1"].do(f"printf '#!/bin/sh\nexec {sys.executable} -m doctor \"$@\"\n' >/usr/local/bin/doctor")
    ray["node1"].do("chmod 755 /usr/local/bin/doctor")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, env=env, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "rank 1 never came within 8 s" in " ".join(done.stdout.split())
