"""Servers that speak SSH with bad intent, or do not speak it."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import paramiko
import pytest
from paramiko.common import AUTH_SUCCESSFUL, OPEN_SUCCEEDED

from doctor.model import Answer, AnswerEnd, Host, UnreachedHost, UnreachedKind
from doctor.transport import Script
from doctor.transport.program import OUTPUT_CAP
from doctor.transport.ssh.settings import SshSettings
from doctor.transport.ssh.transport import SshTransport
from tests.support.transport_servers import DONE, config, listener, make_key, sh, why_ended

Act = Callable[[paramiko.Channel], None]


class Stub(paramiko.ServerInterface):
    """Accepts every login; calls `act` for each channel once a command was requested."""

    def __init__(self, act: Act | None, stall: float = 0) -> None:
        self._act = act
        self._stall = stall

    def get_allowed_auths(self, _username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, _username: str, _key: paramiko.PKey) -> int:
        return AUTH_SUCCESSFUL

    def check_channel_request(self, _kind: str, _channel: int) -> int:
        return OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, _command: bytes) -> bool:
        time.sleep(self._stall)
        if self._act is None:
            return False
        threading.Thread(target=self._act, args=(channel,), daemon=True).start()
        return True


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., SshTransport]]:
    host_key = paramiko.Ed25519Key.from_private_key_file(str(make_key(tmp_path / "host")))
    mine = make_key(tmp_path / "mine")
    ends: list[Callable[[], object]] = []

    def start(act: Act | None, stall: float = 0) -> SshTransport:
        def answer(conn: socket.socket) -> None:
            wire = paramiko.Transport(conn)
            wire.add_server_key(host_key)
            with suppress(EOFError, paramiko.SSHException):  # a client that left before it was served
                wire.start_server(server=Stub(act, stall))
            wire.join(20)

        server = listener(answer)
        port = server.__enter__()
        settings = SshSettings(config_file=config(tmp_path), accept_new=True, identities=(str(mine),))
        transport = SshTransport([Host("box", "127.0.0.1", port=port)], settings)
        ends.extend([transport.close, lambda: server.__exit__(None, None, None)])
        return transport

    yield start
    for end in ends:
        end()


def one(transport: SshTransport, timeout: float) -> Answer | UnreachedHost:
    [got] = transport.run({"box": sh("echo hi")}, timeout)
    return got


def test_an_exec_that_is_refused(serve: Callable[..., SshTransport]) -> None:
    got = one(serve(None), 5)
    assert isinstance(got, UnreachedHost)
    assert got.kind is UnreachedKind.NO_SHELL
    assert "refuses to run a command" in got.summary


def test_an_exec_that_is_never_answered(serve: Callable[..., SshTransport]) -> None:
    begun = time.monotonic()
    got = one(serve(None, stall=8), 2)
    assert isinstance(got, UnreachedHost)
    assert got.kind is UnreachedKind.TIMEOUT
    assert "start of the command" in got.summary
    assert time.monotonic() - begun < 30


def test_a_channel_closed_without_a_word(serve: Callable[..., SshTransport]) -> None:
    def close(channel: paramiko.Channel) -> None:
        time.sleep(0.2)
        channel.close()

    got = one(serve(close), 5)
    assert isinstance(got, Answer)
    assert (got.stdout, got.rc, got.end) == (b"", None, AnswerEnd.DONE)


def test_a_peer_that_ignores_the_window(serve: Callable[..., SshTransport]) -> None:
    def flood(channel: paramiko.Channel) -> None:
        try:
            for _ in range(3000):
                channel.out_window_size = 1 << 30
                channel.send(b"x" * 30_000)
        except (OSError, EOFError, paramiko.SSHException):
            return

    got = one(serve(flood), 10)
    assert isinstance(got, Answer)
    assert (len(got.stdout), got.end) == (OUTPUT_CAP, AnswerEnd.FLOOD)


def test_a_peer_that_never_reads(serve: Callable[..., SshTransport]) -> None:
    transport = serve(lambda _: None)
    [got] = transport.run({"box": Script("x", b"y" * 8_000_000, DONE)}, 2.5)
    assert isinstance(got, Answer)
    assert got.end is AnswerEnd.TIMEOUT


def test_a_session_that_is_refused(serve: Callable[..., SshTransport]) -> None:
    session = serve(None).open({"box": Script("cat", b"", b"")})
    assert why_ended(session) is UnreachedKind.NO_SHELL
