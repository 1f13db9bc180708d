"""A real Slurm across the hosts of a lab: slurmctld on the controller, a slurmd on each host."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.cases import from_cases

from .controller import REPOSITORY
from .errors import LabError
from .host import Host
from .lab import Lab
from .machine import listening
from .needs import without
from .spec import CONTROLLER

PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "scontrol", "scancel", "munged")
SHARED = "/run/cluster-doctor-lab/shared"
PLACE = "/etc/slurm/slurm.conf"
CONTROL, DAEMON = 6817, 6818

CONFIG = from_cases(__file__, "CONFIG", str)


def missing() -> str | None:
    """Why no Slurm can be booted here; None if one can."""
    absent = [program for program in PROGRAMS if without(program)]
    return f"a lab with Slurm needs the program {absent[0]!r}" if absent else None


class Slurm:
    """Boots with `start`; `close` ends its daemons, which also die with their hosts.

    After `patience` seconds slurmctld considers a silent slurmd dead.
    """

    def __init__(self, lab: Lab, *, cpus: int = 4, patience: int = 300) -> None:
        if reason := missing():
            raise LabError(reason)
        self.lab = lab
        self._cpus = cpus
        self._patience = patience
        self._shared = lab.directory / "shared"
        self._state = lab.directory / "slurm"
        self._daemons: list[subprocess.Popen[bytes]] = []

    def start(self) -> Slurm:
        """Returns when every node is idle."""
        self._state.mkdir()
        try:
            self._munge()
            (self._state / "slurm.conf").write_text(self._config(str(self._shared / "munge.socket")))
            control = ["unshare", "--uts", "sh", "-c", "hostname control; exec slurmctld -D -i"]
            self._daemon(self.lab.enter(control), {"SLURM_CONF": self.config})
            self._await(lambda: CONTROL in listening(self._daemons[-1].pid), f"listener on port {CONTROL}")
            for host in self.lab:
                self._configure(host)
            self._start(self.lab.hosts)
            self.await_nodes()
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in reversed(self._daemons):
            _ended(daemon)
        self._daemons.clear()

    @property
    def config(self) -> str:
        """slurm.conf as the controller's programs see it."""
        return str(self._state / "slurm.conf")

    def start_node(self, host: Host) -> None:
        """Start slurmd on a host without one, for example after a boot."""
        self._configure(host)
        self._start([host])

    def _configure(self, host: Host) -> None:
        host.write(PLACE, self._config(f"{SHARED}/munge.socket"))

    def _start(self, hosts: Sequence[Host]) -> None:
        for host in hosts:
            host.do('mkdir -p /var/spool/slurmd; slurmd -N "$1"', host.name)
        for host in hosts:
            host.await_listener(DAEMON)
            host.dirty = False

    def stop_node(self, host: Host) -> None:
        """Kill slurmd: the host stays up, and connections to its port are refused."""
        host.do('kill -9 "$(cat /run/slurmd.pid)"')
        host.await_that(lambda: DAEMON not in listening(host.pid), f"closed port {DAEMON}")

    def reset(self) -> None:
        """Reboot changed hosts, start their slurmd, and end every job."""
        self.run(["scancel", "--user=root"])
        self.lab.reset()
        gone = [host for host in self.lab if DAEMON not in listening(host.pid)]
        for host in gone:
            # A completing job would hold the node for minutes.
            self.run(["scontrol", "update", f"nodename={host.name}", "state=down", "reason=lab"])
            self.start_node(host)
        self.run(["scontrol", "update", f"nodename={','.join(self.lab.names)}", "state=resume"])
        self.await_nodes()

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on the controller, where users log in; it is configured for the cluster."""
        return self.lab.run(argv, env={"SLURM_CONF": self.config, **(env or {})}, timeout=timeout)

    def await_nodes(self, seconds: float = 30) -> None:
        """Wait until every node is idle, with no job running or completing."""
        deadline = time.monotonic() + seconds
        while True:
            said = self.run(["sinfo", "-h", "-N", "-o", "%N %T"]).stdout.split("\n")
            states = dict(line.split(" ", 1) for line in said if line)
            if len(states) == len(self.lab.names) and set(states.values()) == {"idle"}:
                return
            if time.monotonic() > deadline:
                raise LabError(f"nodes are not idle: {states or said}")
            time.sleep(0.05)

    def _munge(self) -> None:
        key = self._state / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self._state.chmod(0o755)
        munged = [
            "munged",
            "--foreground",
            "--force",
            f"--key-file={key}",
            f"--socket={self._shared / 'munge.socket'}",
            f"--pid-file={self._state / 'munged.pid'}",
            f"--log-file={self._state / 'munged.log'}",
            f"--seed-file={self._state / 'munged.seed'}",
            "--num-threads=2",
        ]
        self._daemon(munged, {})
        self._await((self._shared / "munge.socket").exists, "munged")

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 15
        while not holds():
            if time.monotonic() > deadline or self._daemons[-1].poll() is not None:
                raise LabError(f"there is no {what}: {self._consoles()}")
            time.sleep(0.01)

    def _consoles(self) -> str:
        consoles = sorted(self._state.glob("*.console"))
        return " | ".join(f"{path.name}: {path.read_text(errors='replace')[-400:]}" for path in consoles)

    def _daemon(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        with (self._state / f"{Path(argv[0]).name}.console").open("ab") as console:
            self._daemons.append(
                subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", "--", *argv],  # no daemon outlives the tests
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    env={**self.lab.environment(), **env},
                    start_new_session=True,
                    cwd=REPOSITORY,
                )
            )

    def _config(self, socket: str) -> str:
        nodes = "\n".join(
            f"NodeName={host.name} NodeAddr={host.address} CPUs={self._cpus} State=UNKNOWN"
            for host in self.lab
        )
        return CONFIG.format(
            control=CONTROLLER.ip,
            socket=socket,
            ctld=CONTROL,
            slurmd=DAEMON,
            state=self._state,
            patience=self._patience,
            nodes=nodes,
        )


def _ended(daemon: subprocess.Popen[bytes]) -> None:
    try:
        daemon.wait(5)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
