"""A run that was stopped (SIGSTOP) and continued blames no host for time limits that passed meanwhile."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from doctor.exam.pauses import PAUSE
from tests.support.commands import DOCTOR, environment
from tests.support.transport_servers import SSHD, config, sshd


@pytest.mark.long
@pytest.mark.skipif(not SSHD.exists(), reason="needs an SSH server to talk to")
def test_a_run_that_was_stopped_blames_no_host(tmp_path: Path) -> None:
    hangs = 'command="exec sleep 60"'
    with sshd(tmp_path / "sshd", authorized=hangs) as server:
        inventory = tmp_path / "hosts.yaml"
        inventory.write_text(f"hosts:\n  node1: {{address: 127.0.0.1, port: {server.port}}}\n")
        way = ("--inventory", str(inventory), "--ssh-config", config(tmp_path, server), "--timeout", "2")
        command = [*DOCTOR, "check", "-v", *way]
        run = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        while "Accepted publickey" not in server.log.read_text():
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(signal.SIGSTOP)
        time.sleep(PAUSE + 1)
        run.send_signal(signal.SIGCONT)
        out, _ = run.communicate(timeout=30)
    assert run.returncode == 3, out
    assert "FAIL" not in out
    assert "was stopped for" in out
