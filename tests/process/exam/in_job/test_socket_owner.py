"""The owners of sockets, as the kernel reports them: our user, another user, the users of a container."""

import ctypes
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from doctor.exam.in_job.handshake import Stranger
from doctor.exam.in_job.socket_owner import other_holder, peer_is_ours
from tests.support.injob import await_true, free_port
from tests.support.injob_attacks import STRANGER, another_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="starts processes of another user")
CLONE_NEWUSER = 0x10000000


@contextmanager
def connected(to: str = "127.0.0.1", family: int = socket.AF_INET) -> Iterator[tuple[socket.socket, ...]]:
    both = {"dualstack_ipv6": True} if family == socket.AF_INET6 else {}
    with (
        socket.create_server(("", 0), family=family, **both) as server,
        socket.create_connection((to, server.getsockname()[1])) as mine,
        server.accept()[0] as theirs,
    ):
        yield mine, theirs


def talk(member: socket.socket) -> None:
    """Exchange data until the other end is gone."""
    member.sendall(b"here\n")
    while member.recv(100):
        pass


def in_child(do: Callable[[], object]) -> str:
    """What `do` returned or raised in a separate process."""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = repr(do())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(into, said.encode())
        os._exit(0)
    os.close(into)
    os.waitpid(pid, 0)
    with open(out, "rb") as said_there:
        return said_there.read().decode()


@pytest.mark.parametrize(
    ("to", "family"),
    [("127.0.0.1", socket.AF_INET), ("127.0.0.1", socket.AF_INET6), ("::1", socket.AF_INET6)],
)
def test_our_own(to: str, family: int) -> None:
    with connected(to, family) as ends:
        assert [peer_is_ours(end) for end in ends] == [True, True]


def test_of_another_user() -> None:
    port = free_port()
    assert other_holder(port) is None
    with another_user(port, talk), socket.create_connection(("127.0.0.1", port)) as mine:
        assert mine.recv(5) == b"here\n"
        with pytest.raises(Stranger, match=f"it belongs to the user with uid {STRANGER}"):
            peer_is_ours(mine)
        assert other_holder(port) == STRANGER


def test_of_a_user_who_comes_to_us() -> None:
    def come() -> None:
        os.setresuid(STRANGER, STRANGER, STRANGER)
        with socket.create_connection(("127.0.0.1", port)) as socket_of_theirs:
            socket_of_theirs.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        pid = os.fork()
        if pid == 0:
            come()
            os._exit(0)
        connection, _ = server.accept()
        with connection, pytest.raises(Stranger, match=f"uid {STRANGER}"):
            peer_is_ours(connection)
    os.waitpid(pid, 0)


def test_one_that_its_user_has_left_belongs_to_nobody() -> None:
    """The kernel shows such a socket as root's. Data that was sent before still arrives."""

    def leave(member: socket.socket) -> None:
        member.sendall(b"here\n")
        member.close()

    port = free_port()
    with another_user(port, leave), socket.create_connection(("127.0.0.1", port)) as mine:
        assert mine.recv(5) == b"here\n"
        assert mine.recv(5) == b""
        await_true(lambda: not _believed(mine))
        assert not _believed(mine)


def _believed(connection: socket.socket) -> bool:
    try:
        return peer_is_ours(connection) is True
    except Stranger:
        return False


def test_one_that_nobody_has_accepted_belongs_to_nobody() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as mine,
        pytest.raises(Stranger),
    ):
        peer_is_ours(mine)


def test_where_all_users_look_alike_nothing_is_sure() -> None:
    """In a user namespace without any mapped users, as some containers have, everybody is `nobody`."""
    with connected() as (mine, _):

        def look() -> tuple[int, bool | None]:
            assert ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) == 0
            return os.geteuid(), peer_is_ours(mine)

        assert in_child(look) == "(65534, None)"


def test_without_the_tables_nothing_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.exam.in_job.socket_owner._TABLES", ())
    with connected() as (mine, _):
        assert peer_is_ours(mine) is None
