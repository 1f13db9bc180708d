"""--deadline limits the whole run, whatever the hosts, the name servers and ssh_config do."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.commands import doctor

HOSTS = 40


@pytest.fixture
def hole() -> Iterator[int]:
    """A port, on every loopback address, whose queue is full: it does not answer a further SYN."""
    with socket.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen(0)
        port: int = server.getsockname()[1]
        callers = [socket.socket() for _ in range(4)]
        for caller in callers:
            caller.setblocking(False)
            with suppress(BlockingIOError):
                caller.connect(("127.0.0.1", port))
        yield port
        for caller in callers:
            caller.close()


def check(inventory: Path, text: str, *options: str) -> tuple[subprocess.CompletedProcess[str], float]:
    inventory.write_text(text)
    began = time.monotonic()
    ran = doctor("check", "--inventory", str(inventory), *options)
    return ran, time.monotonic() - began


def test_hosts_that_drop_packets_do_not_outlast_it(hole: int, tmp_path: Path) -> None:
    text = "hosts:\n" + "".join(f"  b{n}: {{address: 127.1.0.{n}, port: {hole}}}\n" for n in range(1, HOSTS))
    ran, seconds = check(tmp_path / "hosts.yaml", text, "--fanout", "4", "--deadline", "5")
    assert seconds < 80  # ten rounds of ten seconds without it
    assert ran.returncode == 3, ran.stdout
    words = " ".join(ran.stdout.split())
    assert "b[5-39]: Its turn had not come when the time for the whole run was over." in words
    assert "b[1-4]: The time for the whole run was over before it had answered." in words
    assert "FAIL" not in ran.stdout


def test_a_command_in_ssh_config_that_hangs_does_not_outlast_it(hole: int, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(f'Match originalhost b1 exec "sleep 4711.{hole}"\n  User somebody\n')
    text = f"hosts:\n  b1: {{address: 127.1.0.1, port: {hole}}}\n"
    ran, seconds = check(tmp_path / "hosts.yaml", text, "--ssh-config", str(config), "--deadline", "2")
    assert seconds < 60
    assert ran.returncode == 3, ran.stdout
    left = [p.cmdline() for p in psutil.process_iter(["cmdline"]) if f"4711.{hole}" in str(p.info["cmdline"])]
    assert left == []
