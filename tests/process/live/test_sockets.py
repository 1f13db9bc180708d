"""Connections with ss and without it: the kernel says the same of real sockets, also in a container."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from doctor.live.onhost import sockets
from tests.support.cases import from_cases

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("ss") is None, reason="needs ss to compare with"),
]
INSIDE = from_cases(__file__.replace("test_sockets", "test_ends"), "INSIDE", str)
AGES = {"last_sent", "last_received", "last_acknowledged"}


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=20) as client,
        server.accept()[0] as accepted,
    ):
        yield client, accepted


def both(inodes: set[str], monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Any], dict[str, Any]]:
    """By ss, and then by the kernel."""
    by_ss, why = sockets.connections(lambda inode, _: inode in inodes)
    assert why == ""
    monkeypatch.setattr(sockets, "WAYS", (["no-such-ss"],))
    by_kernel, why = sockets.connections(lambda inode, _: inode in inodes)
    assert why == ""
    return by_ss, by_kernel


def inode(one: socket.socket) -> str:
    return str(os.fstat(one.fileno()).st_ino)


def assert_alike(by_ss: dict[str, Any], by_kernel: dict[str, Any]) -> None:
    assert set(by_ss) == set(by_kernel)
    for key, said in by_ss.items():
        mine = by_kernel[key]
        assert {name: mine[name] for name in said if name not in AGES} == {
            name: value for name, value in said.items() if name not in AGES
        }
        assert all(abs(mine[name] - said[name]) < 2000 for name in AGES)


def test_an_idle_connection(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, accepted = pair
    client.sendall(b"x" * 1000)
    assert accepted.recv(1000)
    time.sleep(0.3)
    by_ss, by_kernel = both({inode(client), inode(accepted)}, monkeypatch)
    assert len(by_kernel) == 2
    assert by_kernel[inode(accepted)]["received"] == 1000
    assert by_kernel[inode(client)]["last_sent"] >= 200
    assert_alike(by_ss, by_kernel)


def test_a_peer_that_does_not_read(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _ = pair
    client.settimeout(1.0)
    with pytest.raises(TimeoutError):
        client.sendall(bytes(64 << 20))
    time.sleep(0.5)
    by_ss, by_kernel = both({inode(client)}, monkeypatch)
    assert by_kernel[inode(client)]["persist"]
    assert by_ss[inode(client)]["persist"]


def test_a_peer_that_has_closed(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, accepted = pair
    accepted.close()
    time.sleep(0.2)
    by_ss, by_kernel = both({inode(client)}, monkeypatch)
    assert by_kernel[inode(client)]["state"] == "CLOSE-WAIT"
    assert_alike(by_ss, by_kernel)


def test_listeners_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        by_ss, by_kernel = both({inode(server)}, monkeypatch)
    assert by_ss == by_kernel == {}


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="it needs root and unshare")
def test_a_connection_in_the_network_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "WAYS", (["no-such-ss"],))
    own = os.readlink("/proc/self/ns/net")
    argv = ["unshare", "--net", sys.executable, "-c", INSIDE]
    inner = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert inner.stdout is not None
        _, _, address, port = inner.stdout.readline().split()
        found, why = sockets.connections(lambda *_: True, ["nsenter", "-t", str(inner.pid), "-n", "--"])
        assert why == ""
        assert f"{address}:{port}" in {one["local"] for one in found.values()}
    finally:
        inner.kill()
        inner.communicate(timeout=20)
    assert os.readlink("/proc/self/ns/net") == own
    gone, why = sockets.connections(lambda *_: True, ["nsenter", "-t", str(inner.pid), "-n", "--"])
    assert gone == {}
    assert why, "nothing is said of a container that is gone"
