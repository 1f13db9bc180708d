"""One trial of a fault of `kinds.yaml`: a job fails at a drawn rank and step; `doctor hang` reports on it."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.lab import Host, Lab
from tests.lab.machine import Process
from tests.lab.slurm import Slurm
from tests.support.cases import from_cases
from tests.support.hang.dead_mount import mount_dead
from tests.support.hang.lost import lose_everything
from tests.trials.hang.answer import Answer
from tests.trials.hang.drawn import Drawn
from tests.trials.hang.held import held
from tests.trials.hang.launchers import LAUNCHERS
from tests.trials.hang.place import FOLDER, Place, allow_memory
from tests.trials.outcome import Outcome
from tests.trials.runner import Key

STANDS = 3.0
"""Seconds after the start of the fault: by then, no rank moves any more."""
DEAD = ("storage", "dstate")
OURS = "[t]rials/hang/training.py"
CUT = from_cases(__file__, "CUT", str)
"""Packets are dropped on arrival: if the sender's own kernel dropped them, the sender would know."""


@dataclass(slots=True)
class Site:
    """The place of the trials."""

    lab: Lab
    slurm: Slurm | None
    servers: list[Process] = field(default_factory=list)
    """The file systems that do not answer."""

    def prepare(self, drawn: Drawn) -> None:
        for number, host in enumerate(self.lab.hosts):
            host.do(f"mkdir -p {FOLDER}/dead; mkfifo -m 666 {FOLDER}/fifo")
            allow_memory([host], number not in drawn.without)
        for victim in drawn.victims:
            if victim.fault in DEAD:
                host = self.lab.hosts[drawn.host_of(victim)]
                self.servers.append(mount_dead(host, f"{FOLDER}/dead"))

    def clear(self, place: Place) -> None:
        """End everything that a trial started."""
        place.job.close()
        for server in self.servers:  # until then, a process that reads from it cannot be killed
            server.stop()
        self.servers.clear()
        for host in self.lab.hosts:
            host.sh(f"umount -l {FOLDER}/dead; nft delete table inet cut")
            host.do(f"pkill -KILL -f '{OURS}' || :; rm -rf {FOLDER}")
        if self.slurm is not None:
            self.slurm.run(["scancel", "--partition=all"])
            self.slurm.await_nodes(120)


def trial(site: Site, drawn: Drawn, keys: Sequence[Key]) -> Iterator[Outcome]:
    del keys  # it has one
    began, place = time.monotonic(), Place(site.lab, drawn.user, drawn.port, drawn.step)
    env = {
        "MODE": drawn.mode,
        "FAULTS": ",".join(each.fault for each in drawn.victims),
        "VICTIMS": ",".join(str(each.rank) for each in drawn.victims),
        "AT": str(drawn.step),
    }
    try:
        site.prepare(drawn)
        LAUNCHERS[drawn.launcher](place, drawn.ranks, env)
        place.until(lambda: _begun(place, drawn), ends=drawn.fault == "lost")
        _strike(drawn, place.hosts)
        time.sleep(STANDS if drawn.kind.code else 0)
        for _ in range(drawn.kind.looks):
            outcome = _looked(site.lab, drawn, began)
            if not outcome.right:
                break
        yield outcome
    finally:
        site.clear(place)


def _strike(drawn: Drawn, hosts: Sequence[Host]) -> None:
    if drawn.fault == "netdrop":
        one, other = (hosts[drawn.host_of(each)] for each in drawn.victims)
        one.nft(CUT % other.address)
        other.nft(CUT % one.address)
    if drawn.fault == "power":
        lose_everything(hosts[drawn.host_of(drawn.victims[0])], OURS)


def _looked(lab: Lab, drawn: Drawn, began: float) -> Outcome:
    limit = ("--limit", f"{drawn.kind.limit:g}")
    done = lab.doctor("hang", f"node[1-{len(lab.hosts)}]", *limit, "--json", "-", user=drawn.user)
    said, seconds = done.stdout or done.stderr, time.monotonic() - began
    answer = Answer(drawn.name, drawn.number, drawn.place, done.returncode, said, seconds)
    return held(drawn, lab.names, answer)


def _begun(place: Place, drawn: Drawn) -> bool:
    if not drawn.kind.hits:
        return place.number(place.hosts[0], "step.0") >= drawn.step
    return all(
        place.number(place.hosts[drawn.host_of(each)], f"hit.{each.rank}") == 1 for each in drawn.victims
    )
