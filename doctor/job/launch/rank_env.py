"""What a process was told of its place in the job: which rank of how many, on which node, who is the master.

Each launcher has rules of its own: torchrun does not read MASTER_ADDR, MindSpore's scheduler is no rank,
and what WORLD_SIZE means where torchrun itself was told one depends on the platform.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal

from doctor.job.launch.command import LAUNCHERS, Command, read_command
from doctor.job.launch.options import NOT_GIVEN
from doctor.job.launch.process_env import Told, Way
from doctor.job.launch.variables import ONLY_TOGETHER, RANK_VARIABLES

Role = Literal["agent", "rank", "scheduler", "server"]
MINDSPORE_ROLES = ("MS_SCHED", "MS_WORKER", "MS_PSERVER")
TORCH: tuple[Way, ...] = ("torchrun", "torch_npu_run")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was told: `said` is the variable or option. `value` is None where it is none."""

    said: str
    text: str

    @property
    def value(self) -> int | None:
        return int(self.text) if re.fullmatch(r"-?\d{1,9}", self.text) else None


@dataclass(frozen=True, slots=True)
class Master:
    """Where the ranks meet. `on` is who has to be there; `said` is the variable or option that says so."""

    address: str
    port: str
    said: str
    on: Literal["rank 0", "scheduler", "any host"]


def launcher(told: Told) -> Command | None:
    """The command of an agent; None for a process that starts no ranks."""
    command = read_command(told.command)
    return command if command is not None and command.way is not None else None


def role_of(told: Told) -> Role:
    if launcher(told):
        return "agent"
    role = told.env.get("MS_ROLE")
    return "scheduler" if role == "MS_SCHED" else "server" if role == "MS_PSERVER" else "rank"


def rank_of(told: Told) -> Number | None:
    return _place(told, 0)


def world_of(told: Told) -> Number | None:
    """How many ranks there are, by what its own rank is counted in."""
    command = launcher(told)
    if command is None:
        return _place(told, 1)
    if command.way == "msrun":
        return _option(told, command, "worker_num")
    if command.way in TORCH:
        nodes, each = nodes_of(told), _option(told, command, "nproc_per_node")
        if nodes and each and nodes[0] == nodes[1] and each.value is not None:
            return Number("nnodes × nproc_per_node", str(nodes[0] * each.value))
        return None
    ranks = command.option("ranks")
    return Number("the number of processes", ranks) if ranks else None


def local_world_of(told: Told) -> Number | None:
    """How many ranks run on its host."""
    command = launcher(told)
    if command is not None:
        name = {"msrun": "local_worker_num"}.get(command.way or "", "nproc_per_node")
        return _option(told, command, name)
    names = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
    return next((Number(name, told.env[name]) for name in names if told.env.get(name)), None)


def node_rank_of(told: Told) -> Number | None:
    """Of an agent, or of a file that speaks for a node."""
    command = launcher(told)
    if command is not None:
        return _option(told, command, "node_rank") if command.way != "deepspeed" else None
    if rank_of(told) is None and told.env.get("NODE_RANK"):
        return Number("NODE_RANK", told.env["NODE_RANK"])
    return None


def nodes_of(told: Told) -> tuple[int, int] | None:
    """The fewest and the most hosts; torchrun takes a range."""
    command = launcher(told)
    said = _option(told, command, "nnodes") if command else None
    text = said.text if said else told.env.get("NNODES", "") if command is None else ""
    match = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", text)
    return (int(match[1]), int(match[2] or match[1])) if match else None


def master_of(told: Told) -> Master | None:
    """None where nothing is said, it is not known, or it is no host of the job (etcd)."""
    command = launcher(told)
    if command is not None and command.way in TORCH:
        return _torchrun_master(told, command)
    if command is not None and command.way == "msrun":
        given, port = command.option("master_addr"), _option(told, command, "master_port")
        if given is None and (command.partly or command.options.get("master_addr")):
            return None
        said = "--master_addr" if given else "the default of msrun (--master_addr is not given)"
        return Master(given or "127.0.0.1", port.text if port else "", said, "any host")
    if command is not None and command.way in ("deepspeed", "accelerate"):
        given, port_text = command.option("master_addr"), command.option("master_port") or ""
        return Master(given, port_text, spelled(command, "master_addr"), "rank 0") if given else None
    env = told.env
    if env.get("MS_SCHED_HOST"):
        return Master(env["MS_SCHED_HOST"], env.get("MS_SCHED_PORT", ""), "MS_SCHED_HOST", "scheduler")
    if env.get("MASTER_ADDR"):
        # Ranks of torchrun get the address of its rendezvous, which their agents were told.
        on: Literal["rank 0", "any host"] = "any host" if "TORCHELASTIC_RUN_ID" in env else "rank 0"
        return Master(env["MASTER_ADDR"], env.get("MASTER_PORT", ""), "MASTER_ADDR", on)
    return None


def shared_options(told: Told) -> dict[str, str]:
    """The options that all agents of a job have to share, as they are spelled; only what is known."""
    command = launcher(told)
    if command is None:
        return {}
    known = LAUNCHERS.get(command.way or "")
    found: dict[str, str] = {}
    for name in known.shared if known else ():
        value = _option(told, command, name)
        if value is not None:
            found[spelled(command, name)] = value.text
        elif not command.partly and not command.options.get(name):
            found[spelled(command, name)] = NOT_GIVEN
    return found


def starts_its_ranks(told: Told) -> bool:
    """Whether it is a program that does so by itself, and was not told of any other host."""
    numbers = (rank_of(told), world_of(told), nodes_of(told), node_rank_of(told))
    return launcher(told) is None and numbers == (None,) * 4 and "MS_ROLE" not in told.env


def is_standalone(told: Told) -> bool:
    command = launcher(told)
    return command is not None and command.options.get("standalone") == "true"


def said_by(told: Told, name: str) -> str | None:
    """An option of a launcher, or the variable in its place that torchrun reads; no default."""
    command = launcher(told)
    if command is None:
        return None
    value = command.option(name)
    if value is None and name not in command.options and command.way in TORCH:
        value = told.env.get(f"PET_{name.upper()}")
    return value


def is_loopback_name(address: str) -> bool:
    """Whether every host means itself by it."""
    name = address.strip("[]").partition("%")[0].lower()
    if re.fullmatch(r"(?:ip6-)?(?:localhost|loopback)(?:\d)?(?:\.localdomain\d?)?", name):
        return True
    try:
        found = ipaddress.ip_address(name)
    except ValueError:
        return False
    return found.is_loopback or found.is_unspecified


def _torchrun_master(told: Told, command: Command) -> Master | None:
    """torch_npu_run knows no other rendezvous than the static one."""
    if is_standalone(told):
        return None
    static = command.way == "torch_npu_run"
    backend = "static" if static else said_by(told, "rdzv_backend") or "static"
    endpoint = None if static else said_by(told, "rdzv_endpoint")
    names = ("master_addr",) if static else ("rdzv_backend", "rdzv_endpoint", "master_addr")
    unknown = command.partly or any(command.options.get(n) and command.option(n) is None for n in names)
    if backend not in ("static", "c10d") or (unknown and not endpoint):
        return None
    on: Literal["rank 0", "any host"] = "rank 0" if backend == "static" else "any host"
    if endpoint:
        address, port = _split(endpoint)
        return Master(address, port or "29400", "--rdzv_endpoint", on)
    if backend == "c10d":
        return Master("localhost", "29400", "the default of c10d (--rdzv_endpoint is not given)", on)
    given = said_by(told, "master_addr")
    said = "--master_addr" if given else f"the default of {command.way} (--master_addr is not given)"
    port = said_by(told, "master_port") or ("" if command.options.get("master_port") else "29500")
    return Master(given or "127.0.0.1", port, said, on)


def _split(endpoint: str) -> tuple[str, str]:
    """`host:port`, `[::1]:port` or only a host."""
    match = re.fullmatch(r"(\[[^\]]{1,100}\]|[^:\s]{1,255})(?::(\d{1,5}))?", endpoint)
    return (match[1].strip("[]"), match[2] or "") if match else (endpoint, "")


def _place(told: Told, which: int) -> Number | None:
    """The rank or the world size, out of the first pair of variables that numbers a rank."""
    if launcher(told) is not None:
        return None
    pairs = [
        (rank, size)
        for rank, size in RANK_VARIABLES
        if told.env.get(rank) and (rank != ONLY_TOGETHER or told.env.get(size))
    ]
    if "MS_ROLE" in told.env:
        pairs = [("MS_NODE_ID", "MS_WORKER_NUM")]
    if not pairs:
        sizes = [size for _, size in RANK_VARIABLES if told.env.get(size)] if which else []
        return Number(sizes[0], told.env[sizes[0]]) if sizes else None
    name = pairs[0][which]
    return Number(name, told.env[name]) if told.env.get(name) else None


def _option(told: Told, command: Command, name: str) -> Number | None:
    """An option or its default, where that is certain."""
    given = said_by(told, name)
    if given is not None:
        return Number(spelled(command, name), given)
    known = LAUNCHERS.get(command.way or "")
    default = known.defaults.get(name) if known else None
    if default is None or command.partly or command.options.get(name):
        return None
    return Number(f"the default of {command.way}", default)


def spelled(command: Command, name: str) -> str:
    """An option as this launcher calls it."""
    known = LAUNCHERS.get(command.way or "")
    own = (option for option, called in known.values.items() if called == name) if known else iter(())
    return f"--{next(own, name)}"
