"""The agent of `doctor hang` on any Python, its end, and ranks without a number in their variables."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from doctor.live.agents import HOME, look_script
from doctor.live.evidence import HostEvidence
from doctor.live.sight import HostsToSee, see
from doctor.model import Host
from doctor.transport.local import LocalTransport
from tests.process.mesh.test_agent import interpreter
from tests.support.cases import from_cases
from tests.support.hang.ranks import RunningJob, make_job
from tests.support.injob import free_port
from tests.support.paths import ROOT

__all__ = ["make_job"]

pytestmark = pytest.mark.slow

STEPS = "import time\nfor step in range(10**9): time.sleep(0.05)\n"
SPAWN = from_cases(__file__, "SPAWN", str)


def seen(python: str | None = None) -> HostEvidence:
    transport = LocalTransport()
    try:
        (host,) = see(HostsToSee([Host("here", "localhost", python=python)], transport), 0.5).evidence.hosts
        return host
    finally:
        transport.close()


@pytest.mark.parametrize("version", ["3.6", "3.8", "3.13"])
def test_every_python_sees_a_rank(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And writes nothing."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    env = {"PATH": "/usr/bin:/bin", "RANK": "1", "WORLD_SIZE": "2", "MASTER_PORT": str(free_port())}
    rank = subprocess.Popen([sys.executable, "-c", STEPS], env=env)
    try:
        time.sleep(0.5)
        host = seen(python)
        (found,) = [member for member in host.members if member.pid == rank.pid]
        assert (found.rank, found.world) == (1, 2)
        assert found.b, host.unread
        assert found.b.state in "SR"
        assert found.b.threads
        if version == "3.6":
            assert any("Python 3.8 is needed" in why for why in host.unread) or "of the host" in host.stacks
        else:
            assert host.stacks.endswith(", brought")
            assert found.b.python[0].frames
        assert list(tmp_path.rglob("*")) == []
    finally:
        rank.kill()
        rank.wait()


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.long)])
def test_ranks_of_multiprocessing_are_found_without_variables(start: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SPAWN)
    argv = [sys.executable, str(tmp_path / "job.py"), str(free_port()), start]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        assert parent.stdout
        assert {parent.stdout.readline(), parent.stdout.readline()} == {b"0\n", b"1\n"}
        host = seen()
        mine = [member for member in host.members if member.parent == parent.pid]
        assert {member.local for member in mine if member.helps is None} == {0, 1}, "said by their stacks"
        assert {member.job for member in mine} == {f"started by process {parent.pid} on here"}
    finally:
        for child in psutil.Process(parent.pid).children(recursive=True):
            child.kill()
        parent.kill()
        parent.communicate()


def test_nothing_is_left_of_a_controller_that_was_killed(make_job: Callable[..., RunningJob]) -> None:
    job = make_job(world=2, FAULT="sleep")
    job.hangs()
    before = {process.pid for process in psutil.process_iter()}
    controller = subprocess.Popen(
        [sys.executable, "-m", "doctor", "hang", "--local", "--for", "30"], cwd=ROOT, stdout=subprocess.PIPE
    )
    time.sleep(3.0)
    controller.send_signal(signal.SIGKILL)
    controller.communicate()
    end = time.monotonic() + 20
    while left := _agents(before):
        assert time.monotonic() < end, left
        time.sleep(0.1)
    assert all(rank.poll() is None for rank in job.ranks)


def _agents(before: set[int]) -> list[str]:
    new = psutil.process_iter(["cmdline"])
    return [str(p) for p in new if p.pid not in before and HOME in " ".join(p.info["cmdline"] or ())]


def test_the_command_goes_through_any_login_shell() -> None:
    for sudo in (False, True):
        command = look_script(sudo=sudo).command
        assert command.startswith("exec sh -c ")
        done = subprocess.run(["sh", "-c", command], input=b"", capture_output=True, timeout=30)
        assert done.returncode in (0, 4), done.stderr
