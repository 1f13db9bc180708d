"""One host as a running thing: boot, halt, and run something inside all of its namespaces."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError
from .files import USERS
from .spec import CONTROLLER, CONTROLLER6, Spec

BOOT = Path(__file__).with_name("boot.sh")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Machine:
    """A host, switched on or off.

    `dirty` means that something may have changed it: `Lab.reset` reboots such a host.
    """

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.name = spec.name
        self.address = spec.address
        self.address6 = spec.address6
        self.data_address = spec.data_address
        self.dirty = False
        self.pid = 0
        self._outer: subprocess.Popen[str] | None = None

    def __repr__(self) -> str:
        return f"<{self.name} {self.address}>"

    # Boot and halt. A boot has three steps, so that the lab can do each of them for all hosts at once.

    def switch_on(self) -> None:
        """Start PID 1 and return at once; it waits for its cable."""
        spec = self.spec
        (spec.directory / "disk").mkdir(exist_ok=True)
        # PID 1 has the name that it has on a real host, unlike that of a container whose PID 1 is the job.
        init = spec.directory / "init"
        if not init.is_symlink():
            init.symlink_to("/bin/sh")
        environment = {
            "PATH": PATH,
            "DISK": spec.disk,
            "KEEP": ":".join(map(str, spec.keep)),
            "ADDRESS": f"{spec.address}/{CONTROLLER.network.prefixlen}",
            "ADDRESS6": f"{spec.address6}/{CONTROLLER6.network.prefixlen}",
            "DATA": f"{spec.data_address}/{CONTROLLER.network.prefixlen}" if spec.data else "",
            "GATEWAY": str(CONTROLLER.ip),
        }
        unshare = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--net", "--fork", "--kill-child"]
        with (spec.directory / "console").open("w") as console:
            self._outer = subprocess.Popen(
                [*unshare, "--", str(init), str(BOOT), str(spec.directory), spec.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=console,
                text=True,
                env=environment,
            )

    def await_namespaces(self) -> int:
        """Wait until the host's namespaces exist; return the machine's process id of its PID 1."""
        assert self._outer is not None
        assert self._outer.stdout is not None
        words = self._outer.stdout.readline().split()
        if words[:1] != ["pid"]:
            raise self._broken("did not start")
        self.pid = int(words[1])
        return self.pid

    def plugged_in(self) -> None:
        """Tell the host that its cable is connected: it configures its network and starts sshd."""
        assert self._outer is not None
        assert self._outer.stdin is not None
        try:
            self._outer.stdin.write("go\n")
            self._outer.stdin.flush()
        except BrokenPipeError:
            raise self._broken("stopped while booting") from None

    def await_sshd(self) -> None:
        self.await_listener(22)
        self.dirty = False

    def halt(self) -> None:
        """Switch the host off: all its processes have ended when this returns."""
        outer, self._outer = self._outer, None
        if outer is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid or outer.pid, signal.SIGKILL)
        # The lifeline may hold an unread "go" of a host that died while booting.
        with contextlib.suppress(BrokenPipeError):
            outer.communicate()
        self.pid = 0

    @property
    def running(self) -> bool:
        return self._outer is not None and self._outer.poll() is None

    # Programs inside the host.

    def enter(self, argv: Sequence[str], user: str = "root") -> list[str]:
        """The command line that runs `argv` inside this host."""
        if not self.running:
            raise LabError(f"{self.name} is switched off")
        become: list[str] = []
        if user != "root":
            uid = str(USERS[user].uid)
            become = ["setpriv", "--reuid", uid, "--regid", uid, "--init-groups", "--reset-env"]
        return ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "--", *become, *argv]

    def ask(
        self, text: str, *args: str, user: str = "root", stdin: str = "", timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell text that only reads; `args` become $1, $2, …"""
        return subprocess.run(
            self.enter(["sh", "-c", text, "sh", *args], user),
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            umask=0o022,
            env={"PATH": PATH, "HOME": "/root", "USER": "root", "LC_ALL": "C"},
        )

    def sh(
        self, text: str, *args: str, user: str = "root", stdin: str = "", timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell text that may change the host, which `Lab.reset` will then reboot."""
        self.dirty = True
        return self.ask(text, *args, user=user, stdin=stdin, timeout=timeout)

    def do(self, text: str, *args: str, user: str = "root", stdin: str = "") -> str:
        """Run a shell text as `sh` does; it has to succeed. Returns its output."""
        done = self.sh(f"set -e\n{text}", *args, user=user, stdin=stdin)
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise LabError(f"{self.name}: {text.strip()!r} {args} gave {done.returncode}: {said}")
        return done.stdout

    def spawn(self, argv: Sequence[str], user: str = "root") -> Process:
        """Start a process that belongs to the host, like a service: a child of its PID 1."""
        script = 'setsid "$@" </dev/null >/dev/null 2>&1 & echo $!'
        return Process(self, int(self.do(script, *argv, user=user)))

    def await_listener(self, port: int) -> None:
        """Wait until a process listens on `port`."""
        self.await_that(lambda: port in listening(self.pid), f"listener on port {port}")

    def await_that(self, holds: Callable[[], bool], what: str, timeout: float = 60) -> None:
        """Poll for a condition that no event announces."""
        deadline = time.monotonic() + timeout
        while not holds():
            if not self.running:
                raise self._broken("stopped")
            if time.monotonic() > deadline:
                raise self._broken(f"has no {what} after {timeout:g} s")
            time.sleep(0.005)

    def _broken(self, what: str) -> LabError:
        console = (self.spec.directory / "console").read_text(errors="replace").strip()
        return LabError(f"{self.name} {what}: {console or 'nothing on its console'}")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a host, by its id there."""

    host: Machine
    pid: int

    @property
    def alive(self) -> bool:
        return self.host.running and self.host.ask('kill -0 "$1"', str(self.pid)).returncode == 0

    def stop(self) -> None:
        """Kill it; when this returns it has ended and its ports are free."""
        self.host.sh('kill -9 "$1"; while kill -0 "$1"; do sleep 0.01; done', str(self.pid))


def listening(pid: int) -> set[int]:
    """The TCP ports with a listener in the network namespace of process `pid`."""
    ports = set()
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                if state == "0A":
                    ports.add(int(local.rpartition(":")[2], 16))
    return ports
