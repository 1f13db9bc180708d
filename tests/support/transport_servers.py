"""Real SSH servers on loopback, and servers that misbehave, for the tests of the transports."""

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from doctor.model import Answer, Host, UnreachedHost, UnreachedKind
from doctor.transport import Script, Session, SessionEnd
from doctor.transport.ssh.settings import SshSettings
from doctor.transport.ssh.transport import SshTransport

SSHD = Path("/usr/sbin/sshd")
DONE = b"DONE"


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


def public(path: Path) -> str:
    """Kind and key, as known_hosts and authorized_keys need them."""
    return " ".join(path.with_name(path.name + ".pub").read_text().split()[:2])


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Sshd:
    port: int
    host_key: Path
    key: Path
    log: Path

    def known(self, name: str = "127.0.0.1") -> str:
        return f"[{name}]:{self.port} {public(self.host_key)}"

    def host(self, name: str = "box") -> Host:
        return Host(name, "127.0.0.1", port=self.port)


@contextlib.contextmanager
def sshd(
    folder: Path, options: str = "", host_kinds: Sequence[str] = ("ed25519",), authorized: str = ""
) -> Iterator[Sshd]:
    """A server for the user who runs the tests. `authorized` goes before the key in authorized_keys."""
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / "home"
    home.mkdir()
    keys = [make_key(folder / f"host_{kind}", kind) for kind in host_kinds]
    key = make_key(folder / "login")
    (folder / "authorized").write_text(f"{authorized} {public(key)}\n".lstrip())
    port = free_port()
    lines = [
        *options.splitlines(),
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        *(f"HostKey {k}" for k in keys),
        f"AuthorizedKeysFile {folder}/authorized",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "LogLevel INFO",
        # The login files of the user who runs the tests are not used.
        f"SetEnv HOME={home}",
    ]
    (folder / "sshd_config").write_text("\n".join(lines) + "\n")
    log = folder / "log"
    Path("/run/sshd").mkdir(exist_ok=True)
    with log.open("wb") as words:
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=words)
    try:
        until = time.monotonic() + 10
        while b"Server listening" not in log.read_bytes():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.01)
        yield Sshd(port, keys[0], key, log)
    finally:
        server.terminate()
        server.wait(10)


@contextlib.contextmanager
def listener(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A TCP server that calls `answer` for each connection; yields its port."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)

        def serve(conn: socket.socket) -> None:
            with conn, contextlib.suppress(OSError):
                answer(conn)

        def accept() -> None:
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    conn, _ = server.accept()
                    conn.settimeout(30)
                    threading.Thread(target=serve, args=(conn,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


class Relay:
    """Passes bytes to a server until `cut`, or drops the first `refuse` connections before their banner."""

    def __init__(self, port: int, refuse: int = 0) -> None:
        self._port = port
        self._refuse = refuse
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self.seen = 0

    def __call__(self, conn: socket.socket) -> None:
        with self._lock:
            self.seen += 1
            if self.seen <= self._refuse:
                return
        with socket.create_connection(("127.0.0.1", self._port)) as far:
            self._open += [conn, far]
            back = threading.Thread(target=self._pump, args=(far, conn), daemon=True)
            back.start()
            self._pump(conn, far)
            back.join()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def config(
    folder: Path,
    server: Sshd | None = None,
    more: str = "",
    *,
    key: Path | str | None = "",
    agent: bool = False,
) -> str:
    """An ssh_config that knows `server` and logs in with its key, or with another one or none; the first
    value given counts.
    """
    known = folder / "known_hosts"
    lines = [more, "Host *", f"UserKnownHostsFile {known}", "GlobalKnownHostsFile /dev/null"]
    if server is not None:
        known.write_text(server.known() + "\n")
        key = server.key if key == "" else key
    lines += [f"IdentityFile {key}"] if key else []
    lines += [] if agent else ["IdentityAgent none"]
    file = folder / "ssh_config"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def sh(text: str) -> Script:
    return Script("sh -s", (text + f"\necho {DONE.decode()}\n").encode(), DONE)


def outcomes(
    hosts: Sequence[Host],
    settings: SshSettings,
    scripts: Mapping[str, Script] | None = None,
    timeout: float = 15,
) -> dict[str, Answer | UnreachedHost]:
    transport = SshTransport(hosts, settings)
    try:
        results = transport.run(scripts or {h.name: sh("echo hi") for h in hosts}, timeout)
        return {result.host: result for result in results}
    finally:
        transport.close()


def answer(host: Host, settings: SshSettings, script: Script | None = None, timeout: float = 15) -> Answer:
    result = outcomes([host], settings, {host.name: script} if script else None, timeout)[host.name]
    assert isinstance(result, Answer), result
    return result


def why_ended(session: Session, seconds: float = 10) -> UnreachedKind:
    """Why a program never began, or was lost."""
    end = session.receive(seconds)
    assert isinstance(end, SessionEnd)
    assert end.unreached is not None
    return end.unreached.kind


def failure(host: Host, settings: SshSettings, timeout: float = 15) -> UnreachedHost:
    result = outcomes([host], settings, None, timeout)[host.name]
    assert isinstance(result, UnreachedHost), result
    assert result.summary.endswith(".")
    assert result.remedy.endswith(".")
    assert host.name not in result.summary, "equal faults of many hosts must read alike"
    return result
