"""What a host answers about connections to it: real sockets, also in the network of a container."""

import os
import shutil
import socket
import subprocess
import sys

import pytest

from doctor.live.onhost import ends
from tests.support.cases import from_cases

pytestmark = pytest.mark.slow

INSIDE = from_cases(__file__, "INSIDE", str)


@pytest.fixture(autouse=True, params=["ss", "no-such-ss"])
def with_and_without_ss(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "ALL", (request.param, *ends.ALL[1:]))


def place(name: tuple[str, int]) -> str:
    return f"{name[0]}:{name[1]}"


def test_only_connections_that_nobody_has_are_lacking() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=20) as client,
    ):
        here, there = place(server.getsockname()), place(client.getsockname())
        open_one, half_open = (here, there), (here, "10.9.9.9:4711")
        said = ends.asked([open_one, half_open, ("10.9.9.8:1", "10.9.9.9:2")])
    assert said["lacks"] == [" ".join(half_open)], "the last one is no address of this host"
    assert said["uptime"] > 0
    assert os.geteuid() or said["unsure"] == ""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="it needs root and unshare")
def test_a_connection_of_a_container_is_not_lacking() -> None:
    """There, the address of the host may have been translated; the peer is the same."""
    argv = ["unshare", "--net", sys.executable, "-c", INSIDE]
    inner = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert inner.stdout is not None
        _, _, address, port = inner.stdout.readline().split()
        assert ends.asked([("127.0.0.1:9", f"{address}:{port}")])["lacks"] == []
    finally:
        inner.kill()
        inner.communicate(timeout=20)
    assert ends.asked([("127.0.0.1:9", f"{address}:{port}")])["lacks"] != []
