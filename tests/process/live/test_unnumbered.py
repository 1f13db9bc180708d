"""Ranks without a number in their variables, and launchers without ranks."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests.support.hang.named import culprits
from tests.support.hang.ranks import PATIENCE
from tests.support.injob import TORCHRUN, free_port
from tests.support.paths import ROOT

FORKED = ROOT / "tests" / "support" / "hang" / "forked.py"
SPAWNED = ROOT / "tests" / "support" / "hang" / "spawned.py"

pytestmark = pytest.mark.slow

Start = Callable[[Sequence[str]], psutil.Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program; it is ended with everything that it started."""
    started: list[subprocess.Popen[bytes]] = []

    def make(argv: Sequence[str]) -> psutil.Process:
        env = {
            "PATH": os.defpath,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        }
        started.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env))
        return psutil.Process(started[-1].pid)

    yield make
    for process in started:
        below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        for each in below:
            each.kill()
        process.kill()
        process.wait()


def hang(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "doctor", "hang", "--local", "--for", "1", "--limit", "1", *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=100)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_the_rank_of_multiprocessing_that_sleeps_is_named(method: str, start: Start, tmp_path: Path) -> None:
    hit = tmp_path / "hit"
    parent = start([sys.executable, str(SPAWNED), method, "4", "2", str(free_port()), str(hit)])
    until(hit.exists)
    time.sleep(2.0)
    done = hang("--pid", str(parent.pid), "--json", "-")
    said = json.loads(done.stdout)
    assert (done.returncode, said["hang"]["state"]) == (1, "hang"), said
    assert (said["hang"]["job"]["found"], said["hang"]["job"]["missing"]) == (4, [])
    (culprit,) = culprits(said)
    assert (culprit["rank"], culprit["cause"]) == (2, "sleeps")
    assert culprit["hang"]["stack"][0]["function"] == "work"


@pytest.mark.parametrize("title", [pytest.param("", marks=pytest.mark.long), "ray::Worker.train"])
def test_a_rank_that_forks_the_others_is_one_itself(title: str, start: Start, tmp_path: Path) -> None:
    """It was dropped for its children, and the network was blamed. A title hides none of them."""
    hit = tmp_path / "hit"
    parent = start([sys.executable, str(FORKED), "3", "0", str(free_port()), str(hit), title])
    until(lambda: hit.exists() and hit.read_text() != "")
    time.sleep(2.0)
    done = hang("--pid", str(parent.pid), "--json", "-")
    said = json.loads(done.stdout)
    assert (done.returncode, said["hang"]["state"]) == (1, "hang"), said
    (culprit,) = culprits(said)
    assert (culprit["pid"], culprit["cause"]) == (parent.pid, "sleeps")
    assert said["hang"]["job"]["found"] == 3


def test_a_launcher_that_waits_for_another_host_is_said(start: Start) -> None:
    words = ["--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    launcher = start([TORCHRUN, *words, str(SPAWNED)])
    until(lambda: len(launcher.net_connections()) > 0)
    done = hang("--pid", str(launcher.pid))
    assert done.returncode == 3, done.stdout
    assert "waits for 1 more: nobody has node rank 1; no other host was asked." in " ".join(
        done.stdout.split()
    )
    assert "--node-rank=1" in done.stdout


@pytest.mark.parametrize("elsewhere", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_launcher_that_calls_nobody_is_accused_only_in_our_own_network(
    elsewhere: bool, start: Start
) -> None:
    """In another network namespace, as in a container, the addresses of this host say nothing about it."""
    words = ["--nnodes=2", "--master-addr=192.0.2.77", f"--master-port={(port := free_port())}"]
    enter = ["unshare", "--net"] if elsewhere else []
    launchers = [start([*enter, TORCHRUN, *words, f"--node-rank={node}", str(SPAWNED)]) for node in (0, 1)]
    until(lambda: all(any("torchrun" in word for word in each.cmdline()[:3]) for each in launchers))
    done = hang("--master-port", str(port), "--json", "-")
    said = json.loads(done.stdout)
    assert {each["cause"] for each in culprits(said)} == (set() if elsewhere else {"calls another address"})
    assert done.returncode == (3 if elsewhere else 1), said
