"""The shipped agent itself: loopback addresses stand in for hosts, each with its own agent."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from doctor.agents.bootstrap import LAST_LINE
from doctor.agents.onhost import segments
from doctor.mesh.run import mesh_script
from doctor.transport import SessionEnd
from tests.support.cases import cases, from_cases
from tests.support.mesh_session import LocalSession

TOKEN = "c0ffee"


def interpreter(version: str) -> str | None:
    """A Python of this version on this machine; some shims may point nowhere."""
    found = [shutil.which(f"python{version}")]
    found += map(
        str,
        Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob(f"versions/{version}.*/bin/python"),
    )
    for path in found:
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path
    return None


@pytest.fixture
def sessions() -> Iterator[list[LocalSession]]:
    opened: list[LocalSession] = []
    yield opened
    for session in opened:
        session.close()


def start(
    sessions: list[LocalSession], lease: float = 10, python: str | None = None, **options: Any
) -> LocalSession:
    session = LocalSession({"a": mesh_script(python)}, **options)
    sessions.append(session)
    session.send("a", f"hello {TOKEN} 7 {lease:g}".encode())
    return session


def ask(session: LocalSession, command: str, reply: str) -> dict[str, Any]:
    session.send("a", command.encode())
    said: dict[str, Any] = json.loads(session.lines_until(f'"{reply}"'.encode())[-1])
    return said


def listen(session: LocalSession, address: str = "127.0.0.2") -> int:
    return int(ask(session, f"listen 1 0 {address}", "listener")["port"])


def connect(
    session: LocalSession, port: int, address: str = "127.0.0.2", peer: int = 7, load: int = 65536
) -> dict[str, Any]:
    return ask(session, f"connect 5 0.4 0.4 2 {peer} {port} {address} {load}", "link")


def ended(session: LocalSession, seconds: float) -> SessionEnd:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        event = session.receive(0.1)
        if isinstance(event, SessionEnd):
            return event
    raise AssertionError(f"still running after {seconds} s")


def can_bind(address: str, port: int) -> bool:
    with socket.socket() as sock:
        try:
            sock.bind((address, port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def full_backlog() -> Iterator[int]:
    """A port whose queue is full: the kernel drops new connections, as a firewall would."""
    with (
        socket.create_server(("127.0.0.2", 0), backlog=0) as server,
        socket.create_connection(server.getsockname()),
    ):
        yield server.getsockname()[1]


def test_programs_are_plain_ascii_because_bash_counts_characters() -> None:
    assert mesh_script().stdin.isascii()


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_an_agent_reaches_itself_on_every_python(sessions: list[LocalSession], version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    session = start(sessions, python=python)
    ready = json.loads(session.lines_until(b'"ready"')[-1])
    assert ready["agent"].startswith(f"python {version}.")
    said = connect(session, listen(session))
    assert (said["outcome"], said["carried"]) == ("ok", "both")
    assert 0 < said["ms"] < 1000
    assert said["segments"][0] >= 2
    session.send("a", b"stop")
    assert session.lines_until(b"bye")[-1] == LAST_LINE
    assert ended(session, 5) == SessionEnd("a", 0, b"")


@cases
def test_an_agent_starts_from_any_login_shell(sessions: list[LocalSession], shell: tuple[str, ...]) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"no {shell[0]} on this machine")
    assert listen(start(sessions, shell=shell)) > 0


def test_an_old_or_broken_interpreter_is_skipped(sessions: list[LocalSession], tmp_path: Path) -> None:
    broken = tmp_path / "py thon"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert listen(start(sessions, python=str(broken))) > 0


def test_ipv6(sessions: list[LocalSession]) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    session = start(sessions)
    assert connect(session, listen(session, "::1"), "::1")["carried"] == "both"


def test_no_port_is_left_in_time_wait(sessions: list[LocalSession]) -> None:
    session = start(sessions)
    port = listen(session)
    assert connect(session, port)["outcome"] == "ok"
    session.send("a", b"stop")
    ended(session, 5)
    assert can_bind("127.0.0.2", port)


def test_refused(sessions: list[LocalSession]) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.2", 0))
        said = connect(start(sessions), sock.getsockname()[1])
    assert (said["outcome"], said["detail"]) == ("refused", "Connection refused")


def test_a_listener_that_never_answers_is_silent(sessions: list[LocalSession]) -> None:
    with socket.create_server(("127.0.0.2", 0)) as mute:
        said = connect(start(sessions), mute.getsockname()[1])
    assert said["outcome"] == "silent"
    assert said["ms"] is not None


def test_a_full_backlog_is_dropped_after_every_try(sessions: list[LocalSession]) -> None:
    with full_backlog() as port:
        said = connect(start(sessions), port)
    assert (said["outcome"], said["tries"]) == ("dropped", 2)


class Swallow(Thread):
    """A peer that greets, and then reads `takes` bytes of the load and returns `gives` bytes at most."""

    def __init__(self, takes: int, gives: int, visits: int = 1) -> None:
        super().__init__(daemon=True)
        self.takes, self.gives, self.visits = takes, gives, visits
        self.server = socket.create_server(("127.0.0.2", 0))
        self.port = self.server.getsockname()[1]

    def run(self) -> None:
        with self.server:
            for _ in range(self.visits):
                self.serve(self.server.accept()[0])

    def serve(self, peer: socket.socket) -> None:
        with peer:
            peer.recv(100)
            peer.sendall(b"doctor-mesh OK 7\n")
            left = self.takes
            with contextlib.suppress(OSError):
                while left and (data := peer.recv(left)):
                    left -= len(data)
                if left:
                    return
                if self.gives:
                    peer.sendall(b"doctor-mesh GOT\n" + b" " * self.gives)
                peer.settimeout(5)
                peer.recv(1)


@cases
def test_what_became_of_the_load(sessions: list[LocalSession], takes: int, gives: int, outcome: str) -> None:
    peer = Swallow(takes, gives)
    peer.start()
    said = connect(start(sessions), peer.port)
    assert f"{said['outcome']} {said['carried']}" == outcome


def test_no_load_is_carried_unless_asked_for(sessions: list[LocalSession]) -> None:
    session = start(sessions)
    assert connect(session, listen(session), load=0)["carried"] == ""


def test_a_listener_takes_no_load_without_end(sessions: list[LocalSession]) -> None:
    port = listen(start(sessions))
    with socket.create_connection(("127.0.0.2", port), timeout=5) as peer:
        peer.sendall(f"doctor-mesh {TOKEN} 3\n".encode())
        assert peer.recv(100) == b"doctor-mesh OK 7\n"
        with pytest.raises(ConnectionError):
            peer.sendall(b" " * 65536 * 500)


def test_another_service_answers(sessions: list[LocalSession]) -> None:
    session = start(sessions)
    port = listen(session)
    assert connect(session, port, peer=8)["outcome"] == "wrong-answer"


@pytest.mark.parametrize(
    "words", [b"doctor-mesh wrong 1\n", b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 4000, b"\n"]
)
def test_a_listener_sends_nothing_without_the_token(sessions: list[LocalSession], words: bytes) -> None:
    port = listen(start(sessions))
    with socket.create_connection(("127.0.0.2", port), timeout=5) as stranger:
        stranger.sendall(words)
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(100) == b""


def test_a_listener_recovers_from_a_crowd_of_strangers(sessions: list[LocalSession]) -> None:
    session = start(sessions)
    port = listen(session)
    with contextlib.ExitStack() as crowd:
        for _ in range(300):
            crowd.enter_context(socket.create_connection(("127.0.0.2", port), timeout=5))
    assert connect(session, port)["outcome"] == "ok"


def test_a_port_in_use_is_reported_and_left_alone(sessions: list[LocalSession]) -> None:
    with socket.create_server(("0.0.0.0", 0)) as other:
        port = other.getsockname()[1]
        said = ask(start(sessions), f"listen 1 {port} 127.0.0.2", "listener")
        assert said["error"] == "in-use"
        other.settimeout(0.2)
        with pytest.raises(TimeoutError):
            other.accept()


def test_an_address_of_another_host(sessions: list[LocalSession]) -> None:
    assert ask(start(sessions), "listen 1 0 192.0.2.1", "listener")["error"] == "not-here"


def test_the_end_of_stdin_ends_an_agent_at_once(sessions: list[LocalSession]) -> None:
    session = start(sessions)
    port = listen(session)
    assert session.processes["a"].stdin is not None
    session.processes["a"].stdin.close()
    ended(session, 1)
    assert can_bind("127.0.0.2", port)


def test_silence_ends_an_agent(sessions: list[LocalSession]) -> None:
    session = start(sessions, lease=1)
    port = listen(session)
    for _ in range(3):
        time.sleep(0.5)
        session.send("a", b"beat")
    assert not can_bind("127.0.0.2", port)
    ended(session, 2)
    assert can_bind("127.0.0.2", port)


def test_its_lease_ends_an_agent_even_when_its_answers_are_not_read() -> None:
    script = mesh_script()
    process = subprocess.Popen(["sh", "-c", script.command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    calls = b"".join(b"connect %d 1 1 1 7 1 127.0.0.2 0\n" % n for n in range(2000))
    process.stdin.write(script.stdin + f"hello {TOKEN} 7 1\n".encode() + calls)
    process.stdin.flush()
    assert process.wait(10) != 0
    process.stdin.close()
    process.stdout.close()


def without_python(folder: Path, tools: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    for tool in tools:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return {"a": ("env", "-i", f"PATH={folder}")}


def test_bash_connects_where_there_is_no_python(sessions: list[LocalSession], tmp_path: Path) -> None:
    if Path("/usr/libexec/platform-python").exists():
        pytest.skip("this machine always has a platform Python")
    session = start(sessions, prefix=without_python(tmp_path, ("sh", "bash", "timeout", "tr")))
    assert b'"bash ' in session.lines_until(b'"ready"')[-1]
    assert ask(session, "listen 1 0 127.0.0.2", "listener")["error"] == "cannot-listen"
    with socket.socket() as sock:
        sock.bind(("127.0.0.2", 0))
        assert connect(session, sock.getsockname()[1])["outcome"] == "refused"
    with socket.create_server(("127.0.0.2", 0)) as mute:
        assert connect(session, mute.getsockname()[1])["outcome"] == "silent"
    with full_backlog() as port:
        assert connect(session, port)["outcome"] == "dropped"
    python = LocalSession({"a": mesh_script()})
    sessions.append(python)
    python.send("a", f"hello {TOKEN} 3 10".encode())
    port = listen(python)
    said = connect(session, port, peer=3)
    assert (said["outcome"], said["carried"]) == ("ok", "both")
    for takes, gives, carried in ((65536, 40000, "back"), (1000, 0, "out")):
        peer = Swallow(takes, gives, visits=2)  # it greets, and comes back with the load
        peer.start()
        said = connect(session, peer.port)
        assert (said["outcome"], said["carried"]) == ("ok", carried)
    assert connect(session, port, peer=4)["outcome"] == "wrong-answer"
    session.send("a", b"stop")
    session.lines_until(b"bye")
    assert ended(session, 5).stderr == b""


def test_a_host_without_python_and_bash_is_reported(sessions: list[LocalSession], tmp_path: Path) -> None:
    if Path("/usr/libexec/platform-python").exists():
        pytest.skip("this machine always has a platform Python")
    session = start(sessions, prefix=without_python(tmp_path, ("sh",)))
    assert b"neither Python 3.6 or later nor bash" in session.lines_until(b'"none"')[-1]


COUNT = from_cases(__file__, "COUNT", str)


@pytest.mark.parametrize("version", ["3.8", "3.12"])
def test_segments_are_counted_on_the_oldest_python_of_a_rank(version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    command = [python, "-c", COUNT, segments.__file__]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "True 0\n", "the second number is what it leaves open"
