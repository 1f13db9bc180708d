"""One trial: a job fails at a drawn rank and step; `doctor hang` reports on it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab import Host, Lab
from tests.lab.machine import Process
from tests.lab.slurm import Slurm
from tests.support.hang import dead_files
from tests.support.hang.lost import lose_everything
from tests.support.injob import Job
from tests.trials.hang.drawn import Drawn
from tests.trials.hang.held import held
from tests.trials.hang.launchers import FOLDER, LAUNCHERS, Start
from tests.trials.hang.scenes.scene import RUNS_MEMORY
from tests.trials.outcome import Outcome

PATIENCE = 180.0
STANDS = 3.0
"""Seconds after the start of the fault: by then, no rank moves any more."""
DEAD = ("storage", "dstate")
CUT = """
table inet cut {
  chain c { type filter hook input priority 0; ip saddr %s drop; }
}
"""
"""Packets are dropped on arrival: if the sender's own kernel dropped them, the sender would know."""


class NoTrial(Exception):
    """The job did not reach its fault."""


@dataclass(slots=True)
class Site:
    """The place of the trials."""

    lab: Lab
    slurm: Slurm | None
    servers: list[Process] = field(default_factory=list)
    """The file systems that do not answer."""

    def prepare(self, drawn: Drawn) -> None:
        for number, host in enumerate(self.lab.hosts):
            host.do(f"mkdir -p {FOLDER}/dead; mkfifo -m 666 {FOLDER}/fifo; chmod 777 {FOLDER}")
            host.do(RUNS_MEMORY, "2" if number in drawn.without else "0")
        for victim in drawn.victims:
            if victim.fault in DEAD:
                self._mount_dead(self.lab.hosts[drawn.host_of(victim)])

    def _mount_dead(self, host: Host) -> None:
        host.do("[ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229")
        argv = [sys.executable, dead_files.__file__, f"{FOLDER}/dead", "for-all"]
        self.servers.append(host.spawn(argv))
        mounts = Path(f"/proc/{host.pid}/mounts")
        host.await_that(lambda: f"{FOLDER}/dead" in mounts.read_text(), "file system that does not answer")

    def clear(self, job: Job) -> None:
        """End everything that a trial started."""
        job.close()
        for server in self.servers:  # until then, a process that reads from it cannot be killed
            server.stop()
        self.servers.clear()
        for host in self.lab.hosts:
            host.sh(f"umount -l {FOLDER}/dead; nft delete table inet cut")
            host.do(f"pkill -KILL -f '[t]rials/hang/training.py' || :; rm -rf {FOLDER}")
        if self.slurm is not None:
            self.slurm.run(["scancel", "--partition=all"])
            self.slurm.await_nodes(120)


def trial(site: Site, drawn: Drawn) -> Iterator[Outcome]:
    lab, kind, hosts = site.lab, drawn.kind, site.lab.hosts
    env = {
        "MODE": drawn.mode,
        "FAULTS": ",".join(each.fault for each in drawn.victims),
        "VICTIMS": ",".join(str(each.rank) for each in drawn.victims),
        "AT": str(drawn.step),
    }
    start = Start(lab, site.slurm, drawn.ranks, drawn.port, drawn.user, env)
    job, began = Job(), time.monotonic()
    try:
        site.prepare(drawn)
        LAUNCHERS[drawn.launcher](job, start)
        _until(lambda: _begun(drawn, hosts), job, ends=drawn.fault == "lost")
        if drawn.fault == "netdrop":
            one, other = (hosts[drawn.host_of(each)] for each in drawn.victims)
            one.nft(CUT % other.address)
            other.nft(CUT % one.address)
        if drawn.fault == "power":
            lose_everything(hosts[drawn.host_of(drawn.victims[0])], "[t]rials/hang/training.py")
        time.sleep(STANDS if kind.code else 0)
        words = ("hang", f"node[1-{len(hosts)}]", "--limit", f"{kind.limit:g}", "--json", "-")
        for _ in range(kind.looks):
            done = lab.doctor(*words, user=drawn.user)
            said = done.stdout or done.stderr
            outcome = held(drawn, lab.names, done.returncode, said, time.monotonic() - began)
            if not outcome.right:
                break
        yield outcome
    finally:
        site.clear(job)


def _begun(drawn: Drawn, hosts: Sequence[Host]) -> bool:
    if not drawn.kind.hits:
        return _read(hosts[0], "step.0") >= drawn.step
    return all(_read(hosts[drawn.host_of(each)], f"hit.{each.rank}") == 1 for each in drawn.victims)


def _read(host: Host, name: str) -> int:
    with suppress(OSError, ValueError):
        return int(Path(f"/proc/{host.pid}/root{FOLDER}/{name}").read_text())
    return -1


def _until(true: Callable[[], bool], job: Job, *, ends: bool) -> None:
    """`ends`: the launcher on one host may end."""
    end = time.monotonic() + PATIENCE
    while not true():
        over = not ends and any(start.poll() is not None for start in job.starts)
        if time.monotonic() > end or over:
            raise NoTrial(f"the job did not get there:\n{job.text[-2000:]}")
        time.sleep(0.1)
