"""Which ranks are the command's: those that it started, as the kernel shows, and what is bound to them.

Others may run on the same hosts, also of the same user and at the same port. Nothing is said of these.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doctor.live.onhost.origin import BELOW, CAME, IN_STEP, JOB, NAMES, STEP, boot, identity, plain_end
from doctor.run.placeholders import is_here

if TYPE_CHECKING:
    import psutil

    from doctor.live.evidence import JobMember, LiveEvidence
    from doctor.model import Host

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """What the kernel says of a command here, so that a host can tell whether a process is of it."""

    processes: tuple[list[Any], ...]
    """The identities of itself and all below it."""
    ends: tuple[str, ...]
    """Its connections: the end here, and the other one, as in SSH_CONNECTION."""
    sruns: tuple[tuple[str, str], ...]
    """Where its processes listen: this host, and the port."""
    uid: int
    here: frozenset[str]
    """The hosts that are this machine."""
    homes: Mapping[str, frozenset[str]]
    """The hosts that have an address."""
    environ: Mapping[str, str]

    def told(self, host: str) -> dict[str, Any] | None:
        """What this host is to know. It must not claim what leads to another one."""
        ends = [each for each in self.ends if host in self.homes.get(each.split()[2], (host,))]
        processes = self.processes if host in self.here else ()
        slurm = self._slurm()
        if not (ends or processes or slurm):
            return None
        about = {"boot": boot(), "processes": processes, "ends": ends, "uid": self.uid, "slurm": slurm}
        return {**about, "names": NAMES}

    def _slurm(self) -> dict[str, Any] | None:
        """Its Slurm job, its step if that starts it on each host, and where it may be the srun of a step."""
        job = self.environ.get(JOB, "")
        shared = self.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1"
        step = self.environ.get(IN_STEP, "") if shared else ""
        return {"job": job, "step": step, "sruns": self.sruns} if job else None

    def started(self, member: JobMember) -> bool:
        """Whether its host shows that the command started it, by what the host was told."""
        told = self.told(member.host) or {}
        by = {BELOW: "processes", CAME: "ends", STEP: "slurm"}.get(member.started)
        return by is not None and bool(told.get(by))


def own_command(pid: int, hosts: Sequence[Host], local: bool, environ: Mapping[str, str]) -> OwnCommand:
    from doctor.run.ended import below

    tree = below(pid)
    listening, ends = set[int](), dict[str, None]()
    for each in tree:
        _sort_connections(each, listening, ends)
    here = frozenset(host.name for host in hosts if local or is_here(host.address or host.name))
    homes = {address: {*here} for address in {each.split()[2] for each in ends} if is_here(address)}
    for host in hosts if ends else ():
        for address in _addresses(host.address or host.name):
            homes.setdefault(address, set()).add(host.name)
    identities = (identity(each.pid) for each in tree)
    own_names = {socket.gethostname(), environ.get("SLURMD_NODENAME", "")} - {""}
    return OwnCommand(
        processes=tuple(each for each in identities if each),
        ends=tuple(ends),
        sruns=tuple((name, str(port)) for name in sorted(own_names) for port in sorted(listening)),
        uid=os.getuid(),
        here=here,
        homes={address: frozenset(names) for address, names in homes.items()},
        environ=environ,
    )


def _sort_connections(process: psutil.Process, listening: set[int], ends: dict[str, None]) -> None:
    import psutil

    with contextlib.suppress(psutil.Error):
        for one in getattr(process, "net_connections", process.connections)("tcp"):  # before 6.0 the latter
            if one.status == psutil.CONN_LISTEN:
                listening.add(one.laddr.port)
            elif one.raddr:
                ends[f"{plain_end(*one.laddr[:2])} {plain_end(*one.raddr[:2])}"] = None


def _addresses(name: str) -> set[str]:
    with contextlib.suppress(OSError, UnicodeError, ValueError):
        found = socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM)
        return {plain_end(str(each[4][0]), 0).split()[0] for each in found}
    return set()


def own_pids(evidence: LiveEvidence, started: Callable[[JobMember], bool]) -> dict[str, list[int]]:
    """Whom to look at on each host: ranks of the names that the command's have, launchers without ranks."""
    from doctor.live.jobs.find import find_jobs

    names = {rank.job for job in find_jobs(evidence) for rank in job.ranks if started(rank)}
    found: dict[str, list[int]] = {}
    for host in evidence.hosts:
        ranks = [each.pid for each in host.members if each.helps is None and each.job in names]
        found[host.host] = [*ranks, *(each.pid for each in host.starters)]
    return {host: pids for host, pids in found.items() if pids}


def own_part(evidence: LiveEvidence, started: Callable[[JobMember], bool]) -> LiveEvidence:
    """The evidence without processes that are not the command's."""
    from msgspec.structs import replace

    from doctor.live.jobs.find import find_jobs
    from doctor.live.jobs.starting import starting_jobs

    jobs = find_jobs(evidence)
    kept = {each for job in jobs for each in _bound(job.ranks, started)}
    for start in starting_jobs(evidence, jobs):
        if any(started(each.member) for each in start.starters):
            kept |= {(each.host, each.member.pid) for each in start.starters}
    hosts = (
        replace(
            host,
            members=tuple(each for each in host.members if (host.host, each.helps or each.pid) in kept),
            starters=tuple(each for each in host.starters if (host.host, each.pid) in kept),
        )
        for host in evidence.hosts
    )
    return replace(evidence, hosts=tuple(hosts))


def _bound(ranks: Sequence[JobMember], started: Callable[[JobMember], bool]) -> set[Key]:
    """The ranks that the command started, those that are connected to them, and on hosts without such ones
    those with other numbers. In containers, one host may have several jobs of one name.
    """
    from doctor.live.wires import key, wires

    own = {key(each) for each in ranks if started(each)}
    if not own:
        return set()
    own = _connected(own, [(w.of, w.to) for first in (True, False) for w in wires(ranks, first=first)])
    hosts, numbers = {host for host, _ in own}, {each.rank for each in ranks if key(each) in own} - {None}
    more = (each for each in ranks if each.host not in hosts and each.rank not in numbers)
    return own | {key(each) for each in more}


def _connected(own: Iterable[Key], pairs: Collection[tuple[Key, Key]]) -> set[Key]:
    found, new = set[Key](), {*own}
    while new:
        found |= new
        new = {other for one, other in pairs if one in new} - found
    return found
