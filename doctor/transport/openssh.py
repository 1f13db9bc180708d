"""Scripts and sessions through the system's `ssh`: a master for each host, and sessions through it.

Whatever `ssh` has (Kerberos, tokens, any ssh_config) is left to it; nothing prompts. A shell of our own, the
keeper, starts the masters in a session of its own, and ends them and removes their folder when its input
ends, so that nothing of them outlives us. A master of the user's own that is alive is used, and never ended.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from doctor.errors import UsageError
from doctor.model import Host, UnreachedKind
from doctor.transport import errors
from doctor.transport.errors import CannotReach, Destination, quoted
from doctor.transport.local import LocalProgram
from doctor.transport.ssh import errors as ssh_errors
from doctor.transport.ssh.config import ssh_options
from doctor.transport.ssh.settings import DEFAULT_CONNECT_TIMEOUT, SshSettings
from doctor.transport.threads import ThreadedTransport, Turn

KEEPER = 'trap "" INT HUP; while read -r line; do eval "$line"; done; trap "" TERM; kill -TERM 0; rm -rf {}'
MASTER = "{{ {command} 2>{at}.err & echo $! >{at}.pid; wait $!; echo $? >{at}.end; }} </dev/null &\n"
QUIET = ("-o", "BatchMode=yes", "-o", "ControlMaster=no", "-T")
CONNECTING = "ssh was connecting"
LOST = 255
"""The exit status of `ssh` itself."""
PREFIX = "doctor-ssh-"
LONGEST_FOLDER = 60
"""The path of a socket has at most 107 characters, of which `ssh` needs 17 behind its name."""
TRIES = 4
ASK_SECONDS = 20.0
LOOK_SECONDS = 0.02
EARLY = ("kex_exchange_identification", "ssh_exchange_identification", "Connection closed by")
CLOSE_SECONDS = 3.0


class OpensshTransport(ThreadedTransport):
    """See `Transport`. Raises UsageError if there is no `ssh`."""

    name = "openssh"
    descriptors_each = 5
    before = CONNECTING

    def __init__(self, hosts: Sequence[Host], settings: SshSettings) -> None:
        if shutil.which("ssh") is None:
            missing = "--transport openssh: there is no ssh on the PATH."
            raise UsageError(missing, "--transport ssh needs none.")
        super().__init__(len(hosts), settings.fanout)
        self._settings = settings
        self._keeper = _Keeper()
        self._doors = {host.name: _Door(host.name, ssh_words(host, settings)) for host in hosts}
        self._starts = threading.Semaphore(self.descriptors.starts)

    def program(self, host: str, command: str, turn: Turn) -> LocalProgram:
        door = self._doors[host]
        with door.lock:
            if not door.is_open():
                with self._starts:
                    door.through = self._connect(door, turn)
        try:
            begun = _Through(f"exec {shlex.join([*door.through, command])}")
        except OSError as error:
            raise errors.not_started(error) from None
        self._stops[host].append(begun.stop)
        return begun

    def _connect(self, door: _Door, turn: Turn) -> Sequence[str]:
        """The words before a command. Raises CannotReach."""
        turn.begin()
        asked = self._ask(door, turn)
        to = Destination(
            door.name,
            asked["hostname"],
            int(asked["port"]),
            asked["user"],
            ssh_options(self._settings, int(asked["port"])),
        )
        own = ["ssh", *door.options, *QUIET]
        if asked.get("controlpath", "none") != "none" and _succeeds([*own, "-O", "check", door.name]):
            return [*own, door.name]
        named = asked.get("connecttimeout", "")
        seconds = self._settings.connect_timeout or (
            float(named) if named.isdigit() else DEFAULT_CONNECT_TIMEOUT
        )
        limit = ("-o", f"ConnectTimeout={max(1, round(seconds))}")
        for attempt in range(TRIES):
            door.master = master = self._keeper.start(door.name, (*door.options, *limit))
            if (said := master.await_login(turn)) is None:
                # ssh could otherwise connect by itself if the master is gone.
                alone = ("-F", "none", "-o", "ProxyCommand=false", "-S", str(master.at))
                return ["ssh", *alone, *QUIET, door.name]
            if not any(word in said for word in EARLY) or attempt == TRIES - 1:
                raise _refused(to, said, seconds)
            time.sleep(min(random.uniform(0.1, 0.4) * 2**attempt, max(turn.left(), 0.0)))
        raise AssertionError

    def _ask(self, door: _Door, turn: Turn) -> Mapping[str, str]:
        """What ssh_config says about the host. Raises UsageError if it is broken."""
        command = ["ssh", *door.options, "-G", door.name]
        seconds = min(ASK_SECONDS, max(turn.left(), 0.1))
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise errors.too_slow(seconds, "ssh -G evaluated ssh_config") from None
        except OSError as error:
            raise errors.not_started(error) from None
        if done.returncode:
            raise UsageError(f"ssh_config cannot be evaluated for {door.name}: {quoted(done.stderr, 400)}")
        rows = (line.partition(" ") for line in done.stdout.decode("utf-8", "replace").splitlines())
        said: dict[str, str] = {}
        for name, _, value in rows:
            said.setdefault(name, value)
        return said

    def give_up(self, host: str) -> str:
        doing = super().give_up(host)
        if (master := self._doors[host].master) is not None:
            master.kill()
        return doing

    def close(self) -> None:
        super().close()
        self._keeper.close()


@dataclass(slots=True)
class _Door:
    name: str
    options: tuple[str, ...]
    through: Sequence[str] = ()
    master: _Master | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_open(self) -> bool:
        return bool(self.through) and (self.master is None or self.master.ended() is None)


class _Through(LocalProgram):
    """A session: `ssh` itself ends with 255 if the connection broke."""

    def broken(self) -> bool:
        return self.status(0.1) == LOST


@dataclass(frozen=True, slots=True)
class _Master:
    at: Path
    """Its socket, which is there once it has logged in."""

    def await_login(self, turn: Turn) -> str | None:
        """What it said before it ended; None once it is logged in. Raises CannotReach if its time is over."""
        while not self.at.exists():
            if (said := self.ended()) is not None:
                return said
            if turn.left() <= 0:
                self.kill()
                raise errors.too_slow(turn.seconds, CONNECTING)
            time.sleep(LOOK_SECONDS)
        return None

    def ended(self) -> str | None:
        if not self._file("end").exists():
            return None
        with contextlib.suppress(OSError):
            return self._file("err").read_bytes()[-errors.MOST_SAID :].decode("utf-8", "replace")
        return ""

    def kill(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            if self.ended() is None:
                os.kill(int(self._file("pid").read_text()), signal.SIGTERM)

    def _file(self, kind: str) -> Path:
        return self.at.with_name(f"{self.at.name}.{kind}")


class _Keeper:
    """The shell that starts the masters; it ends with us."""

    def __init__(self) -> None:
        usual = tempfile.gettempdir()
        folder = usual if len(usual) <= LONGEST_FOLDER else "/tmp"
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", KEEPER.format(shlex.quote(str(self._folder)))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def start(self, name: str, options: Sequence[str]) -> _Master:
        master = _Master(self._folder / str(next(self._numbers)))
        own = ("-o", "BatchMode=yes", "-o", "ControlMaster=yes", "-o", "ControlPersist=no", "-N", "-T")
        command = shlex.join(["ssh", *options, *own, "-S", str(master.at), name])
        line = MASTER.format(command=command, at=shlex.quote(str(master.at)))
        with self._lock, contextlib.suppress(OSError):
            assert self._shell.stdin is not None
            self._shell.stdin.write(line.encode())
            self._shell.stdin.flush()
        return master

    def close(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            assert self._shell.stdin is not None
            self._shell.stdin.close()
        try:
            self._shell.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()


def ssh_words(host: Host, settings: SshSettings) -> tuple[str, ...]:
    """The options of `ssh` for a host: the command line's, else the inventory's, else those of ssh_config."""
    given = (
        ("-F", settings.config_file),
        ("-l", settings.user or host.user),
        ("-p", settings.port or host.port),
        ("-J", settings.jump or host.jump),
        ("-o", f"HostName={host.address}" if host.address != host.name else None),
        ("-o", "StrictHostKeyChecking=accept-new" if settings.accept_new else None),
        *(("-i", identity) for identity in settings.identities),
    )
    return tuple(word for letter, value in given if value for word in (letter, str(value)))


def _succeeds(command: Sequence[str]) -> bool:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        quiet = subprocess.DEVNULL
        return not subprocess.run(command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=5).returncode
    return False


def _refused(to: Destination, said: str, seconds: float) -> CannotReach:
    """Why `ssh` did not log in, by its own words."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = re.sub(r"^\S+@\S+: |\.$", "", lines[-1]) if lines else "it says nothing"
    if "Could not resolve hostname" in last:
        return errors.not_connected(to, socket.gaierror(socket.EAI_NONAME, last), seconds)
    for words, error in _TCP.items():
        if words in last:
            return errors.not_connected(to, error, seconds)
    if any(word in said for word in EARLY):
        return errors.closed_at_once(to, TRIES, b"")
    if "IDENTIFICATION HAS CHANGED" in said:
        return ssh_errors.ssh_refused(to, UnreachedKind.KEY_CHANGED, last)
    if "Host key verification failed" in last:
        return ssh_errors.ssh_refused(to, UnreachedKind.KEY_UNKNOWN, last)
    kind = UnreachedKind.AUTH if "Permission denied" in last else UnreachedKind.OTHER
    return ssh_errors.ssh_refused(to, kind, last)


_TCP = {
    "Connection refused": ConnectionRefusedError(),
    "timed out": TimeoutError(),
    "No route to host": OSError(113, "No route to host"),
    "Network is unreachable": OSError(101, "Network is unreachable"),
}
