"""Which rank of which job this process is, and where rank 0 may be: by what the launcher told it. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from doctor.errors import UsageError
from doctor.text.nodeset import is_host, unfold

FIRST_PORT, LAST_PORT = 20000, 29999
PORTS = 4
"""So many are tried, in the same order by all ranks."""
MOST_RANKS = 1_000_000
MOST_HEADS = 16
KEY = "DOCTOR_JOB_KEY"
"""A secret of the job, for networks on which others are not trusted."""
OWN = re.compile(
    r"(LOCAL_|GROUP_|ROLE_|NODE_)?(RANK|WORLD_SIZE)|RANK_(ID|SIZE)|MASTER_(ADDR|PORT)|ROLE_NAME|NNODES"
    r"|(TORCHELASTIC|OMPI|PMI|PMIX|MPI|MV2|PET|HYDRA|HYDI)_\w+|ORTE_\w+|TORCH_NCCL_ASYNC_ERROR_HANDLING"
    r"|MS_(ROLE|NODE_ID|WORKER_NUM|SCHED_HOST|SCHED_PORT)|SLURM_(PROCID|LOCALID|TASK_PID)|" + KEY
)
"""What makes a process a rank of the job: no program that we start is one."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A rank's place. `heads` are names and addresses at which rank 0 may be, the most likely first."""

    launcher: str
    rank: int
    world: int
    variable: str
    """Holds the rank's number."""
    heads: tuple[str, ...]
    token: bytes
    ports: tuple[int, ...]
    same: tuple[tuple[str, str], ...]
    """Variables that all ranks of this job have in common."""
    local_world: int | None = None
    certain: bool = True
    """Rank 0 must be at `heads`; otherwise they are a guess."""


@dataclass(frozen=True, slots=True)
class _Way:
    """How one launcher tells. `sign` must be set as well."""

    launcher: str
    rank: str
    world: tuple[str, ...]
    local_world: str
    head: str
    port: str
    identity: tuple[str, ...]
    sign: str = ""


_TORCH = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_ID")
_WAYS = (
    _Way(
        "torchrun",
        "RANK",
        ("WORLD_SIZE",),
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        _TORCH,
        sign="TORCHELASTIC_RUN_ID",
    ),
    _Way(
        "msrun",
        "MS_NODE_ID",
        ("MS_WORKER_NUM",),
        "",
        "MS_SCHED_HOST",
        "MS_SCHED_PORT",
        ("MS_SCHED_HOST", "MS_SCHED_PORT"),
    ),
    _Way(
        "mpirun",
        "OMPI_COMM_WORLD_RANK",
        ("OMPI_COMM_WORLD_SIZE",),
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        ("OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE"),
    ),
    _Way(
        "mpirun",
        "PMI_RANK",
        ("PMI_SIZE",),
        "",
        "MASTER_ADDR",
        "MASTER_PORT",
        (*_SLURM, "MASTER_ADDR", "MASTER_PORT"),
    ),
    _Way("launcher", "RANK", ("WORLD_SIZE",), "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", _TORCH[:2]),
    _Way(
        "srun",
        "SLURM_PROCID",
        ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
        "",
        "MASTER_ADDR",
        "MASTER_PORT",
        _SLURM,
        sign="SLURM_STEP_ID",  # a batch script has the other variables, and is no rank
    ),
)


def is_scheduler(environ: Mapping[str, str]) -> bool:
    """MindSpore's scheduler runs the same command as its workers, and is no rank."""
    return environ.get("MS_ROLE") == "MS_SCHED"


def read_seat(environ: Mapping[str, str]) -> Seat:
    """Raises UsageError: outside of a job, or where nothing says where rank 0 is."""
    for way in _WAYS:
        if environ.get(way.rank) and (not way.sign or environ.get(way.sign)):
            return _seat(way, environ)
    raise UsageError(
        "--in-job: this process is no rank of a job: neither RANK nor OMPI_COMM_WORLD_RANK, PMI_RANK, "
        "MS_NODE_ID or SLURM_PROCID is set.",
        "Start it by torchrun, mpirun, msrun or srun, once for each rank.",
    )


def _seat(way: _Way, environ: Mapping[str, str]) -> Seat:
    world_name = next((name for name in way.world if environ.get(name)), way.world[0])
    rank, world = _number(environ, way.rank), _number(environ, world_name)
    if not (0 <= rank < world <= MOST_RANKS):
        raise UsageError(f"--in-job: {way.rank}={rank} is no rank of {world_name}={world}.")
    heads, certain = _heads(way, environ)
    if world > 1 and not heads:
        raise UsageError(
            f"--in-job: nothing says where rank 0 is ({way.head} is not set).",
            f"Give {way.head} to every rank, as in mpirun -x MASTER_ADDR=node1.",
        )
    same = tuple((name, environ[name]) for name in way.identity if environ.get(name))
    words = (*(f"{name}={value}" for name, value in same), str(world), environ.get(KEY, ""))
    token = hashlib.sha256("\0".join(("cluster-doctor in-job", way.rank, *words)).encode()).digest()
    local = environ.get(way.local_world, "")
    return Seat(
        launcher=way.launcher,
        rank=rank,
        world=world,
        variable=way.rank,
        heads=heads,
        token=token,
        ports=_ports(token, environ),
        same=same,
        local_world=int(local) if re.fullmatch(r"[1-9][0-9]{0,5}", local) else None,
        certain=certain,
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    text = environ.get(name, "")
    if not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII):
        raise UsageError(
            f"--in-job: {name}={text[:40]!r} is no number of ranks.", f"The launcher sets {name}."
        )
    return int(text)


def _ports(token: bytes, environ: Mapping[str, str]) -> tuple[int, ...]:
    """The same for all ranks, and never those of the job itself."""
    taken = {environ.get(name, "") for name in ("MASTER_PORT", "MS_SCHED_PORT")}
    size = LAST_PORT - FIRST_PORT + 1
    drawn = (FIRST_PORT + int.from_bytes(token[at : at + 4], "big") % size for at in range(0, 32, 4))
    return tuple(dict.fromkeys(port for port in drawn if str(port) not in taken))[:PORTS]


def _heads(way: _Way, environ: Mapping[str, str]) -> tuple[tuple[str, ...], bool]:
    said = environ.get(way.head, "").strip()
    if said:
        return ((said,), True) if _is_place(said) else ((), True)
    if way.rank.startswith("OMPI_"):
        found = (*_uri(environ.get("OMPI_MCA_orte_hnp_uri", "")), *_nodes(environ))
        return tuple(dict.fromkeys(found))[:MOST_HEADS], False
    nodes = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or ""
    try:
        return tuple(unfold(nodes)[:1] if nodes else ()), False
    except UsageError:
        return (), False


def _is_place(text: str) -> bool:
    return is_host(text) or re.fullmatch(r"[0-9A-Fa-f:.]{2,45}", text) is not None


def _uri(text: str) -> tuple[str, ...]:
    """The addresses of mpirun's own host: `123.0;tcp://10.0.0.1,10.1.0.1:4711;tcp6://[fd00::1]:4712`."""
    found: list[str] = []
    for addresses in re.findall(r"tcp6?://\[?([0-9A-Fa-f:.,]{2,400}?)\]?:[0-9]{1,5}(?:;|$)", text[:4000]):
        found += addresses.split(",")
    return tuple(address for address in found if _is_place(address))


def _nodes(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The names of mpirun's nodes, as ranks on other hosts than its own are told: `node[1:1-3]@0(3)`.

    Without a folded part a name stands for itself.
    """
    text = environ.get("OMPI_MCA_orte_node_regex", "")[:4000].partition("@")[0]
    names: list[str] = []
    for prefix, width, ranges, suffix, plain in re.findall(
        r"([\w.-]*)\[([0-9]):([0-9,-]+)\]([\w.-]*)|([\w.-]+)", text, re.ASCII
    ):
        if plain:
            names.append(plain)
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            if first.isdecimal():
                upto = min(int(last or first), int(first) + MOST_HEADS)
                names += [f"{prefix}{n:0{int(width)}d}{suffix}" for n in range(int(first), upto + 1)]
    return tuple(name for name in names if is_host(name))
