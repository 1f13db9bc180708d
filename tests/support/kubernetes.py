"""A stand-in for the API server of Kubernetes: it lists pods, and runs commands in them over WebSockets, as
the documented protocol says (v4.channel.k8s.io and v5). A pod is a place where programs of this machine run.
"""

import base64
import contextlib
import hashlib
import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.paths import ROOT

TOKEN = "not-for-anybody-else-4711"
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
Words = Sequence[str]


def pod(name: str, labels: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A pod that runs. `more`: its node, its owner as (kind, name), and its status."""
    owner = (
        [{"kind": more["owner"][0], "name": more["owner"][1], "controller": True}] if "owner" in more else []
    )
    running = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}
    return {
        "metadata": {
            "name": name,
            "labels": dict(labels or {}),
            "ownerReferences": owner,
            **more.get("metadata", {}),
        },
        "spec": {"nodeName": more.get("node", "gpu07"), "containers": [{"name": "main"}, {"name": "proxy"}]},
        "status": more.get("status", running),
    }


@dataclass
class StandIn:
    pods: list[dict[str, Any]]
    enter: Callable[[str], Words] = lambda _: ()
    """The words that run a program in a pod, before the program's own."""
    speaks: Words = (V5, V4)
    page: int = 500
    nodes: list[dict[str, Any]] = field(default_factory=list)
    says: dict[str, tuple[int, str]] = field(default_factory=dict)
    """list, nodes, or exec -> an answer instead: the code and the message."""
    asked: list[str] = field(default_factory=list)
    silent: str = ""
    """A pod that is never entered, as behind a node that is away."""
    port: int = 0
    authority: Path | None = None
    """The certificate of the server, if it speaks TLS."""
    sessions: set[subprocess.Popen[bytes]] = field(default_factory=set)

    connections: set[socket.socket] = field(default_factory=set)

    def cut(self) -> None:
        """Break all connections of programs."""
        for connection in list(self.connections):
            connection.shutdown(socket.SHUT_RDWR)

    def config(self, folder: Path, context: str = "lab", namespace: str = "team", token: str = TOKEN) -> Path:
        """A kubeconfig, which names the namespace of its context."""
        file = folder / f"kubeconfig-{context}"
        cluster = {"server": f"http{'s' if self.authority else ''}://127.0.0.1:{self.port}"}
        if self.authority:
            cluster["certificate-authority"] = str(self.authority)
        file.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": context,
                    "contexts": [
                        {"name": context, "context": {"cluster": "c", "user": "u", "namespace": namespace}}
                    ],
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": {"token": token}}],
                }
            )
        )
        return file


@contextlib.contextmanager
def stand_in(server: StandIn) -> Iterator[StandIn]:
    class Handler(_Handler):
        it = server

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        http.request_queue_size = 512
        server.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            for session in list(server.sessions):
                session.kill()


OPENSSL = (
    "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=lab -addext subjectAltName=IP:127.0.0.1"
)


@contextlib.contextmanager
def by_tls(server: StandIn, folder: Path) -> Iterator[StandIn]:
    """The same server behind TLS, as all real ones are. Each connection is passed on to it."""
    key, crt = folder / "tls.key", folder / "tls.crt"
    make = [*OPENSSL.split(), "-keyout", str(key), "-out", str(crt)]
    subprocess.run(make, check=True, capture_output=True)
    front = [sys.executable, "-m", "tests.support.tls_front", str(server.port), str(crt), str(key)]
    with subprocess.Popen(front, stdout=subprocess.PIPE, text=True, cwd=ROOT) as running:
        assert running.stdout is not None
        server.port, server.authority = int(running.stdout.readline()), crt
        try:
            yield server
        finally:
            running.kill()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    it: StandIn

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        asked = parse_qs(address.query)
        *_, namespace, pods, name, what = ["", "", "", *address.path.split("/")]
        kind = what if what in ("exec", "nodes") else "list"
        if kind == "list":
            namespace = name
        self.it.asked.append(f"{kind} {namespace} {self.path}")
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            self._refuse(401, "Unauthorized")
        elif kind in self.it.says:
            self._refuse(*self.it.says[kind])
        elif kind in ("list", "nodes"):
            self._list(asked, self.it.pods if kind == "list" else self.it.nodes)
        else:
            assert pods == "pods"
            self._exec(name, asked)

    def _send(self, code: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, code: int, message: str) -> None:
        self._send(code, {"kind": "Status", "status": "Failure", "message": message, "code": code})

    def _list(self, asked: Mapping[str, Words], every: Sequence[dict[str, Any]]) -> None:
        wanted = [each.split("=", 1) for each in ",".join(asked.get("labelSelector", [])).split(",") if each]
        found = [each for each in every if all(_has(each, *label) for label in wanted)]
        start = int(asked.get("continue", ["0"])[0])
        some = found[start : start + self.it.page]
        more = str(start + self.it.page) if found[start + self.it.page :] else ""
        self._send(200, {"kind": "PodList", "metadata": {"continue": more}, "items": some})

    def _exec(self, name: str, asked: Mapping[str, Words]) -> None:
        if name not in [each["metadata"]["name"] for each in self.it.pods]:
            self._refuse(404, f'pods "{name}" not found')
            return
        if name == self.it.silent:
            self.rfile.read()
            return
        offered = [each.strip() for each in (self.headers["sec-websocket-protocol"] or "").split(",")]
        version = next(each for each in self.it.speaks if each in offered)
        key = (self.headers["sec-websocket-key"] or "").encode()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key + GUID).digest()).decode())
        self.send_header("Sec-WebSocket-Protocol", version)
        self.end_headers()
        self.close_connection = True
        program = subprocess.Popen(
            [*self.it.enter(name), *asked["command"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.it.sessions.add(program)
        self.it.connections.add(self.connection)
        try:
            with program:
                _Talk(self, program).run()
        finally:
            self.it.sessions.discard(program)
            self.it.connections.discard(self.connection)


class _Talk:
    """One program and its WebSocket."""

    def __init__(self, handler: _Handler, program: subprocess.Popen[bytes]) -> None:
        self._read, self._program = handler.rfile, program
        self._socket = handler.connection
        self._lock = threading.Lock()

    def run(self) -> None:
        readers = [
            threading.Thread(target=self._pass_on, args=(channel, stream), daemon=True)
            for channel, stream in ((1, self._program.stdout), (2, self._program.stderr))
        ]
        for reader in readers:
            reader.start()
        listener = threading.Thread(target=self._listen, daemon=True)
        listener.start()
        for reader in readers:
            reader.join()
        code = self._program.wait()
        said: dict[str, Any] = {"metadata": {}, "status": "Success"}
        if code:
            cause = {"reason": "ExitCode", "message": str(code)}
            said |= {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]}}
        with contextlib.suppress(OSError):
            self._send(2, b"\x03" + json.dumps(said).encode())
            self._send(8, struct.pack("!H", 1000))
        listener.join(5)

    def _pass_on(self, channel: int, stream: Any) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := stream.read1(32 * 1024):
                self._send(2, bytes([channel]) + data)

    def _send(self, kind: int, data: bytes) -> None:
        size = len(data)
        short = struct.pack("!B", size) if size < 126 else b""
        length = short or (struct.pack("!BH", 126, size) if size < 65536 else struct.pack("!BQ", 127, size))
        with self._lock:
            self._socket.sendall(bytes([0x80 | kind]) + length + data)

    def _listen(self) -> None:
        """Until the connection ends, or the end of stdin is told: then the program's stdin is closed."""
        assert self._program.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            while (frame := self._receive()) is not None:
                if frame[:1] == b"\0":
                    self._program.stdin.write(frame[1:])
                    self._program.stdin.flush()
                elif frame == b"\xff\0":
                    self._program.stdin.close()
        with contextlib.suppress(OSError):
            self._program.stdin.close()

    def _receive(self) -> bytes | None:
        head = self._read.read(2)
        if len(head) < 2 or head[0] & 0xF == 8:
            return None
        size = head[1] & 0x7F
        if size > 125:
            size = int.from_bytes(self._read.read(2 if size == 126 else 8), "big")
        mask = self._read.read(4)
        data = self._read.read(size)
        number = int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        return number.to_bytes(size, "big")


def _has(found: Mapping[str, Any], label: str, value: str = "") -> bool:
    labels = found["metadata"]["labels"]
    return label in labels and (not value or labels[label] == value)
