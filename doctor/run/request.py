"""The command line: each option is a field of one of these groups, and is defined here alone.

Groups and fields stand in the order of --help; `report/formats.py` has the options for outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.option import IN_JOB, REPLAY, option
from doctor.report.formats import Outputs

if TYPE_CHECKING:
    from doctor.model import Unreached
    from doctor.targets.inventory import Targets
    from doctor.transport import Transport

NEITHER = (IN_JOB, REPLAY)


@dataclass(frozen=True, slots=True)
class HostFlags:
    """The hosts, however they are named."""

    hosts: tuple[str, ...] = option(
        "HOSTS", "Node sets: node[01-16,20] gpu7. None: Slurm, else here.", not_with=NEITHER, default=()
    )
    hostfile: Path | None = option(
        "-F, --hostfile FILE", "Hosts from a file (plain, OpenMPI, MPICH).", not_with=NEITHER
    )
    inventory: Path | None = option("--inventory FILE", "Inventory in YAML.", not_with=NEITHER)
    rank_table: Path | None = option(
        "--rank-table FILE", "The job's rank table; its servers are the hosts.", not_with=NEITHER
    )
    local: bool = option("--local", "This machine only.", not_with=NEITHER, default=False)
    exclude: tuple[str, ...] = option("--exclude NODESET", "Take hosts out.", not_with=NEITHER, default=())


@dataclass(frozen=True, slots=True)
class JobFlags:
    """What the flags say of the job."""

    backend: str = option("--backend NAME", "auto, gloo, nccl or hccl.", not_with=(REPLAY,), default="auto")
    master_port: int | None = option(
        "--master-port PORT", "The port of the rendezvous.", not_with=(REPLAY,), min=1, max=65535
    )
    ranks_per_host: int | None = option(
        "--ranks-per-host N",
        "Default: one a device; 2 where there is none.",
        not_with=(REPLAY,),
        min=1,
        max=1024,
    )
    launch: tuple[Path, ...] = option(
        "--launch FILE...",
        "What ranks are told: env or shell files, a dump of each rank.",
        not_with=(REPLAY,),
        default=(),
    )
    plan: tuple[str, ...] = option(
        "--plan KEY=VALUE,...",
        "How the model is spread: dp=4,tp=2,pp=1,...",
        not_with=(REPLAY,),
        default=(),
    )


@dataclass(frozen=True, slots=True)
class WayFlags:
    """How to get to them."""

    user: str | None = option("--user NAME", "Log in as.", not_with=NEITHER)
    port: int | None = option("--port PORT", "SSH port.", not_with=NEITHER, min=1, max=65535)
    identities: tuple[str, ...] = option("-i, --identity FILE", "Private key.", not_with=NEITHER, default=())
    jump: str | None = option("-J, --jump HOST", "Jump host, or several: a,b.", not_with=NEITHER)
    ssh_config: str | None = option("--ssh-config FILE", "Default: ~/.ssh/config.", not_with=NEITHER)
    accept_new: bool = option(
        "--accept-new", "Trust unknown host keys once; never changed ones.", not_with=NEITHER, default=False
    )
    sudo: bool = option(
        "--sudo", "Read what only root may read, by sudo -n.", not_with=(REPLAY,), default=False
    )
    enter: str | None = option("--enter COMMAND", "Look inside: 'docker exec -i NAME'.", not_with=NEITHER)
    transport: str = option("--transport NAME", "auto, ssh, srun or local.", not_with=NEITHER, default="auto")
    fanout: int = option(
        "--fanout N", "Connections being made at once.", not_with=(), default=64, min=1, max=4096
    )
    connect_timeout: float | None = option("--connect-timeout S", "Default: 10 s.", not_with=(), min=0.1)
    timeout: float = option("--timeout S", "For a host's answer.", not_with=(), default=60.0, min=0.1)
    deadline: float | None = option("--deadline S", "For the whole run.", not_with=(REPLAY,), min=0.1)


@dataclass(frozen=True, slots=True)
class ExamFlags:
    """What to examine, and how strictly."""

    exam: str | None = option("--exam NAME|FILE", "What to examine (doctor list).", not_with=())
    only: tuple[str, ...] = option(
        "--only GLOB,...", "Only these checks.", not_with=(), default=(), commas=True
    )
    skip: tuple[str, ...] = option(
        "--skip GLOB,...", "Not these checks.", not_with=(), default=(), commas=True
    )
    checks: tuple[Path, ...] = option("--checks DIR", "More checks, from a folder.", not_with=(), default=())
    expect: tuple[str, ...] = option(
        "--expect KEY=VALUE", "What must be there.", not_with=(), default=(), commas=True
    )
    strict: bool = option("--strict", "A warning counts as a fault.", not_with=(), default=False)
    mesh: str | None = option("--mesh SHAPE", "Who connects to whom: auto, full, ring, none.", not_with=())
    on_busy: str = option(
        "--on-busy skip|run", "Whether devices that are at work are pinged.", not_with=(), default="skip"
    )
    need_hosts: int | None = option(
        "--need-hosts N", "Exit with 0 if at least N healthy hosts remain.", not_with=(), min=1
    )


@dataclass(frozen=True, slots=True)
class SmokeFlags:
    """What the flags say of the smoke run."""

    python: str | None = option(
        "--python PATH", "The job's interpreter on the hosts. Default: python3.", not_with=(REPLAY,)
    )
    steps: int | None = option(
        "--steps N", "Training steps of the smoke run. Default: 30.", not_with=(REPLAY,)
    )
    tp: int | None = option(
        "--tp N", "Ranks that share a model: 1, 2 or 4. Default: 2 if even.", not_with=(REPLAY,)
    )
    timeout: float | None = option(
        "--smoke-timeout S", "For a smoke run. Default: 120; nccl 600, hccl 900.", not_with=(REPLAY,)
    )
    inject: tuple[str, ...] = option(
        "--inject KIND@RANK[:STEP]",
        "A fault on purpose, to see it found; or help.",
        not_with=(REPLAY,),
        default=(),
    )
    refused: bool = option("--no-smoke", "Without the smoke run.", not_with=(REPLAY,), default=False)


@dataclass(frozen=True, slots=True)
class Request:
    command: str
    who: HostFlags = field(default_factory=HostFlags)
    job: JobFlags = field(default_factory=JobFlags)
    way: WayFlags = field(default_factory=WayFlags)
    what: ExamFlags = field(default_factory=ExamFlags)
    smoke: SmokeFlags = field(default_factory=SmokeFlags)
    in_job: bool = option(
        IN_JOB,
        "Inside torchrun, mpirun, msrun or srun: every rank calls it; no SSH.",
        not_with=(REPLAY,),
        default=False,
        alone=("it examines the hosts of the job it runs in", "Without it doctor reaches hosts over SSH."),
    )
    save: Path | None = option("--save FILE", "Keep a recording of the run.", not_with=())
    replay: Path | None = option(
        f"{REPLAY} FILE",
        "Judge a recording; touches no host.",
        not_with=(IN_JOB,),
        alone=(
            "it judges what was recorded",
            "It can be combined with --exam, --only, --skip, --expect and --strict.",
        ),
    )
    outputs: Outputs = field(default_factory=Outputs)


@dataclass(frozen=True, slots=True)
class Ready:
    """Hosts that need not be looked for, and the way to them that is there already.

    `absent` asks who is not there any more; those hosts count as unreached whatever they said before.
    """

    targets: Targets
    transport: Transport
    absent: Callable[[], Mapping[str, Unreached]]
