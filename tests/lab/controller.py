"""The controller: where the code under test runs, in namespaces that are also the switch."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.printed import ON_PAGES_OF_LOGS, assert_typable

from . import found
from .errors import LabError
from .spec import CONTROLLER, CONTROLLER6, Cable
from .warm import WARM, Started, Warm, suits

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("controller.sh")
TOUCH_HOSTS = {"accept", "check", "facts", "hang", "slow", "smoke", "preflight", "logs", "fix", "ranktable"}


class Controller:
    """A machine that reaches all hosts and nothing else; its disk is the real one."""

    def __init__(self) -> None:
        self.directory = Path()
        self._holder: subprocess.Popen[str] | None = None
        self._started: list[subprocess.Popen[str] | Started] = []

    @property
    def identity(self) -> Path:
        """The private key for every host."""
        return self.directory / "id_ed25519"

    @property
    def ssh_config(self) -> Path:
        return self.directory / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        return self.directory / "known_hosts"

    @property
    def home(self) -> Path:
        """The home directory of the user who runs programs here."""
        return self.directory / "home"

    def enter(self, argv: Sequence[str], cwd: Path | str = REPOSITORY) -> list[str]:
        """The command line that runs `argv` on the controller; its process id is that of `argv` itself."""
        if self._holder is None:
            raise LabError("the lab is not running")
        inside = ["nsenter", "-t", str(self._holder.pid), "-m", "-n", "--"]
        return [*inside, "env", "-C", str(cwd), *argv]

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """A clean environment: only the PATH is taken from the person who runs the tests."""
        path = os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        plain = {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", "PYTHONPATH": str(REPOSITORY)}
        return {**plain, **(extra or {})}

    def run(
        self,
        argv: Sequence[str],
        *,
        input: str = "",
        timeout: float = 300,
        cwd: Path | str = REPOSITORY,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on the controller to its end; `env` adds to the clean environment."""
        return subprocess.run(
            self.enter(argv, cwd),
            input=input,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env=self.environment(env),
        )

    def popen(self, argv: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program on the controller, its stdin empty; killed when the lab closes.

        Signals sent to it reach the program itself.
        """
        process = subprocess.Popen(
            self.enter(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=self.environment(),
        )
        self._started.append(process)
        return process

    def ssh(self, host: str, command: str, user: str = "root") -> subprocess.CompletedProcess[str]:
        """Log in with the ssh client, as a person would."""
        return self.run(["ssh", "-F", str(self.ssh_config), "-l", user, host, command])

    def doctor_argv(self, *args: str, user: str | None = None) -> list[str]:
        """The command line of `doctor ARGS`, with the lab's SSH configuration if it contacts hosts."""
        argv = [sys.executable, "-m", "doctor", *args]
        if args and args[0] in TOUCH_HOSTS:
            argv += ["--ssh-config", str(self.ssh_config), *(["--user", user] if user else [])]
        return argv

    def doctor(
        self,
        *args: str,
        user: str | None = None,
        timeout: float = 300,
        cwd: Path | str = REPOSITORY,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run `doctor ARGS` on the controller. To send it signals: `start_doctor`."""
        argv = self.doctor_argv(*args, user=user)
        if self._holder is None or not suits(env):
            done = self.run(argv, timeout=timeout, cwd=cwd, env=env)
            found.keep(args, done.returncode, cwd, done.stdout)
            assert_typable(done.stdout, ON_PAGES_OF_LOGS)
            return done
        inside = self._holder.pid
        return WARM.run(argv[3:], env=self.environment(env), cwd=cwd, timeout=timeout, inside=inside)

    def start_doctor(self, *args: str, user: str | None = None, program: Warm = WARM) -> Started:
        """Start `doctor ARGS` on the controller; killed when the lab closes. Signals reach it itself."""
        if self._holder is None:
            raise LabError("the lab is not running")
        argv = self.doctor_argv(*args, user=user)[3:]
        inside = self._holder.pid
        process = program.start(argv, env=self.environment(), cwd=REPOSITORY, inside=inside)
        self._started.append(process)
        return process

    def ip(self, lines: Sequence[str], *, force: bool = False) -> None:
        """Run `ip` commands on the switch in one process; with `force`, continue after those that fail."""
        command = ["ip", *(["-force"] if force else []), "-batch", "-"]
        done = self.run(command, input="\n".join(lines) + "\n")
        if done.returncode and not force:
            raise LabError(f"ip: {done.stderr.strip()}")

    def await_cables(self, cables: Sequence[Cable]) -> None:
        """Wait until the switch forwards on all ports: a busy kernel may take seconds to notice a cable."""
        waiting = {cable.port for cable in cables}
        deadline = time.monotonic() + 15
        while waiting:
            if time.monotonic() > deadline:
                raise LabError(f"no link on {', '.join(sorted(waiting))} after 15 s")
            for line in self.run(["ip", "-br", "link"]).stdout.splitlines():
                name, state, *_ = line.split()
                if state == "UP":
                    waiting.discard(name.partition("@")[0])

    def _switch_on(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "--", "sh", str(SCRIPT), str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "ADDRESS": str(CONTROLLER), "ADDRESS6": str(CONTROLLER6)},
        )
        assert self._holder.stdout is not None
        if not self._holder.stdout.readline().startswith("pid"):
            raise LabError("the controller did not start; it says why on stderr")

    def _switch_off(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()
        self._started.clear()
        if self._holder is not None:
            self._holder.kill()
            self._holder.communicate()
            self._holder = None
