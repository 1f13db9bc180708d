"""A session over local processes: the agents of several loopback addresses stand in for hosts."""

import queue
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import IO

from doctor.transport import Line, Script, SessionEnd


class LocalSession:
    """Each host's command runs under `shell` here; `prefix` may put it into a network namespace."""

    def __init__(
        self,
        scripts: Mapping[str, Script],
        shell: tuple[str, ...] = ("sh", "-c"),
        prefix: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.heard: queue.Queue[Line | SessionEnd] = queue.Queue()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.threads: list[threading.Thread] = []
        self.closed = False
        for host, script in scripts.items():
            before = (prefix or {}).get(host, ())
            process = subprocess.Popen(
                [*before, *shell, script.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
            self.processes[host] = process
            self.write(process, script.stdin)
            thread = threading.Thread(target=self.listen, args=(host, process), daemon=True)
            thread.start()
            self.threads.append(thread)

    @staticmethod
    def write(process: subprocess.Popen[bytes], data: bytes) -> None:
        stdin = stream(process.stdin)
        try:
            while data:
                data = data[stdin.write(data) :]
        except (BrokenPipeError, ValueError):
            pass

    def listen(self, host: str, process: subprocess.Popen[bytes]) -> None:
        for line in stream(process.stdout):
            self.heard.put(Line(host, line.rstrip(b"\n")))
        errors = stream(process.stderr).read()
        self.heard.put(SessionEnd(host, process.wait(), errors))

    def send(self, host: str, line: bytes) -> None:
        self.write(self.processes[host], line + b"\n")

    def receive(self, timeout: float) -> Line | SessionEnd | None:
        try:
            return self.heard.get(timeout=timeout)
        except queue.Empty:
            return None

    def end(self, host: str) -> None:
        stream(self.processes[host].stdin).close()

    def close(self) -> None:
        self.closed = True
        for process in self.processes.values():
            stream(process.stdin).close()
        for process in self.processes.values():
            self.reap(process)
        for thread in self.threads:
            thread.join(5)
        for process in self.processes.values():
            stream(process.stdout).close()
            stream(process.stderr).close()

    @staticmethod
    def reap(process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def lines_until(self, needle: bytes, seconds: float = 10.0) -> list[bytes]:
        """The lines up to one that contains `needle`; fails the test if it never comes."""
        deadline = time.monotonic() + seconds
        said: list[bytes] = []
        while time.monotonic() < deadline:
            event = self.receive(0.2)
            if isinstance(event, Line):
                said.append(event.text)
                if needle in event.text:
                    return said
            elif isinstance(event, SessionEnd):
                raise AssertionError(f"ended {event} after {said}")
        raise AssertionError(f"{needle!r} was never said, only {said}")


def stream(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
