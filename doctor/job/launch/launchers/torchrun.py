"""torchrun, `python -m torch.distributed.run` and `python -m torch.distributed.launch`.

It does not read MASTER_ADDR. With the static rendezvous rank 0 waits at the master's address; with c10d the
agent of any host may hold the endpoint.
"""

import re

from doctor.job.launch import launcher
from doctor.job.launch.forms import LaunchForm, LaunchParts, shell_line

STATIC = "29500"
C10D = "29400"


_C10D_DEFAULT = launcher.LaunchNumber(f"{launcher.DEFAULT_OF}c10d", C10D)


def options(*shared: str, **defaults: str) -> launcher.OptionNames:
    """The options of torchrun and its derivatives."""
    return launcher.options_of(
        "torchrun",
        abbreviated=True,
        shared=("nnodes", "master_addr", "master_port", *shared),
        defaults={"nnodes": "1", "nproc_per_node": "1", "master_port": STATIC, **defaults},
        variables="PET_",
    )


def static_master(agent: launcher.LauncherAgent) -> launcher.Master | None:
    if agent.standalone or agent.unknown("master_addr"):
        return None
    given = agent.given("master_addr")
    said = "--master_addr" if given else f"the default of {agent.launcher.name} (--master_addr is not given)"
    port = agent.given("master_port") or ("" if agent.command.options.get("master_port") else STATIC)
    return launcher.Master(given or "127.0.0.1", port, said, "rank 0")


def spans_nodes(agent: launcher.LauncherAgent) -> bool:
    return agent.nodes is not None and agent.nodes[1] > 1 and not agent.standalone


def _master(agent: launcher.LauncherAgent) -> launcher.Master | None:
    backend, endpoint = agent.given("rdzv_backend") or "static", agent.given("rdzv_endpoint")
    unknown = agent.unknown("rdzv_backend", "rdzv_endpoint", "master_addr")
    if agent.standalone or backend not in ("static", "c10d") or (unknown and not endpoint):
        return None  # etcd is not a host of the job
    on: launcher.Meeting = "rank 0" if backend == "static" else "any host"
    if endpoint:
        address, port = _split(endpoint)
        return launcher.Master(address, port or C10D, "--rdzv_endpoint", on)
    if backend == "c10d":
        return launcher.Master("localhost", C10D, "the default of c10d (--rdzv_endpoint is not given)", on)
    return static_master(agent)


def _port(agent: launcher.LauncherAgent) -> launcher.LaunchNumber | None:
    """The port, which may be known even if the address is not."""
    backend, said = agent.given("rdzv_backend"), agent.command.options
    backend = backend or ("" if said.get("rdzv_backend") else "static")
    endpoint = agent.given("rdzv_endpoint") or said.get("rdzv_endpoint", "")
    if agent.standalone or backend not in ("static", "c10d", ""):
        return None
    if endpoint:
        port = re.search(r":(\d{1,5})$", endpoint)
        whole = not port and "$" not in endpoint and "`" not in endpoint
        return launcher.LaunchNumber("--rdzv_endpoint", port[1]) if port else _C10D_DEFAULT if whole else None
    if backend == "c10d":
        return None if agent.unknown("rdzv_endpoint") else _C10D_DEFAULT
    return agent.setting("master_port")


def _split(endpoint: str) -> tuple[str, str]:
    """The host and port in `host:port`, `[::1]:port` or only a host."""
    match = re.fullmatch(r"(\[[^\]]{1,100}\]|[^:\s]{1,255})(?::(\d{1,5}))?", endpoint)
    return (match[1].strip("[]"), match[2] or "") if match else (endpoint, "")


def _line(start: LaunchParts) -> list[str]:
    going = start.going
    words = [*_size(start), f"--node-rank={start.node}"]
    return [shell_line("torchrun", *words, f"--master-addr={going.address}", f"--master-port={going.port}")]


def _rendezvous(start: LaunchParts) -> list[str]:
    """The same line for every host: a host recognises the endpoint by its own name and addresses."""
    going = start.going
    address = f"[{going.address}]" if ":" in going.address else going.address
    words = ["--rdzv-backend=c10d", f"--rdzv-id={start.id}", f"--rdzv-endpoint={address}:{going.port}"]
    return [shell_line("torchrun", *_size(start), *words)]


def _size(start: LaunchParts) -> list[str]:
    return [f"--nnodes={len(start.going.hosts)}", f"--nproc-per-node={start.ranks_here}"]


TORCHRUN = launcher.launcher_of(
    "torchrun",
    options=options("rdzv_backend", "rdzv_endpoint", "rdzv_id", rdzv_backend="static"),
    master=_master,
    port=_port,
    goes_by_node_rank=lambda agent: (
        agent.given("rdzv_backend") in (None, "static")
        and (spans_nodes(agent) or (agent.given("node_rank") or "0").strip("0").isdecimal())
    ),
    forms={"torchrun": LaunchForm(_line, fits=lambda _: True), "rdzv": LaunchForm(_rendezvous)},
)
