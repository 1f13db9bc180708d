"""Which rank of which job this process is, and where rank 0 may be, from its variables and the job's key."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from doctor.errors import UsageError
from doctor.exam.in_job.job_key import VARIABLE, JobKey, read_job_key
from doctor.job.launch import launchers
from doctor.job.launch.launcher import RankVariables
from doctor.job.launch.launchers import LAUNCHERS, PORTS, ROLES
from doctor.text.nodeset import is_host

FIRST_PORT, LAST_PORT = 20000, 29999
TRIED = 4
"""The number of ports to try, in the same order on all ranks."""
MOST_RANKS = 1_000_000
OWN = re.compile(f"{launchers.OWN}|{VARIABLE}")
"""Variables that make a process a rank of the job; the programs that we start are not ranks."""


@dataclass(frozen=True, slots=True)
class JobRank:
    """A rank's place. `heads` are names and addresses at which rank 0 may be, the most likely first."""

    rank: int
    world: int
    variable: str
    """The variable that holds the rank's number."""
    heads: tuple[str, ...]
    token: bytes
    ports: tuple[int, ...]
    key: JobKey
    same: tuple[tuple[str, str], ...]
    """Variables that all ranks of this job have in common."""
    local_world: int | None = None
    secret: str = ""
    """The name of the part of `token` that only this user can read; empty if others can compute the token."""


_KNOWN = [(launcher, ranks) for launcher in LAUNCHERS for ranks in launcher.ranks if ranks.identity]


def is_scheduler(environ: Mapping[str, str]) -> bool:
    """Whether this is a scheduler, such as MindSpore's, which runs the same command as the ranks."""
    return any(roles.get(environ.get(name, "")) == "scheduler" for name, roles in ROLES.items())


def read_job_rank(environ: Mapping[str, str]) -> JobRank:
    """The place of this process. Raises UsageError outside a job, or if nothing says where rank 0 is."""
    for _, ranks in _KNOWN:
        if ranks.number_in(environ):
            return _seat(ranks, environ, read_job_key(environ))
    first, *others = dict.fromkeys(ranks.rank for _, ranks in _KNOWN)
    names = list(dict.fromkeys(launcher.commands[0] for launcher, _ in _KNOWN if launcher.commands))
    raise UsageError(
        f"--in-job: this process is not a rank of a job: neither {first} nor {_either(others)} is set.",
        f"Start it by {_either(names)}, once for each rank.",
    )


def _either(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _seat(way: RankVariables, environ: Mapping[str, str], key: JobKey) -> JobRank:
    world_name = next((name for name in way.world if environ.get(name)), way.world[0])
    rank, world = _number(environ, way.rank), _number(environ, world_name)
    if not (0 <= rank < world <= MOST_RANKS):
        raise UsageError(f"--in-job: {way.rank}={rank} is not a rank of {world_name}={world}.")
    heads = _heads(way, environ)
    if world > 1 and not heads:
        raise UsageError(
            f"--in-job: nothing says where rank 0 is ({way.master} is not set).",
            f"Give {way.master} to every rank{way.give_master and f', as in {way.give_master}'}.",
        )
    same = tuple((name, environ[name]) for name in way.identity if environ.get(name))
    words = (*(f"{name}={value}" for name, value in same), str(world), key.text)
    token = hashlib.sha256("\0".join(("cluster-doctor in-job", way.rank, *words)).encode()).digest()
    local = environ.get(way.local_world, "")
    return JobRank(
        rank=rank,
        world=world,
        variable=way.rank,
        heads=heads,
        token=token,
        ports=_ports(token, environ),
        same=same,
        local_world=int(local) if re.fullmatch(r"[1-9][0-9]{0,5}", local) else None,
        key=key,
        secret=key.source or next((name for name in way.secret if environ.get(name)), ""),
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "")
    if not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII):
        raise UsageError(
            f"--in-job: {name}={text[:40]!r} is not a valid number.", f"The launcher sets {name}."
        )
    return int(text)


def _ports(token: bytes, environ: Mapping[str, str]) -> tuple[int, ...]:
    """The same ports for all ranks, and never those of the job itself."""
    taken = {environ.get(name, "") for name in PORTS}
    size = LAST_PORT - FIRST_PORT + 1
    drawn = (FIRST_PORT + int.from_bytes(token[at : at + 4], "big") % size for at in range(0, 32, 4))
    return tuple(dict.fromkeys(port for port in drawn if str(port) not in taken))[:TRIED]


def _heads(way: RankVariables, environ: Mapping[str, str]) -> tuple[str, ...]:
    said = environ.get(way.master, "").strip()
    if said:
        return (said,) if is_host(said) else ()
    return way.heads(environ)
