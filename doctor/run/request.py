"""The command line as typed: who is asked, on which way, for which job, what is asked, what is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from doctor.model import Unreached
from doctor.targets.inventory import Targets
from doctor.transport import Transport


@dataclass(frozen=True, slots=True)
class Who:
    """The hosts, however they are named."""

    hosts: tuple[str, ...] = ()
    hostfile: Path | None = None
    inventory: Path | None = None
    rank_table: Path | None = None
    local: bool = False
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """How to get to them."""

    user: str | None = None
    port: int | None = None
    identities: tuple[str, ...] = ()
    jump: str | None = None
    ssh_config: str | None = None
    accept_new: bool = False
    sudo: bool = False
    enter: str | None = None
    transport: str = "auto"
    fanout: int = 64
    connect_timeout: float | None = None
    timeout: float = 60.0
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """What the flags say of the job."""

    backend: str = "auto"
    master_port: int | None = None
    ranks_per_host: int | None = None
    launch: tuple[Path, ...] = ()
    plan: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class What:
    """What to examine, and how strictly."""

    exam: str | None = None
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    checks: tuple[Path, ...] = ()
    expect: tuple[str, ...] = ()
    strict: bool = False
    mesh: str | None = None
    on_busy: str = "skip"
    need_hosts: int | None = None
    replay: Path | None = None


@dataclass(frozen=True, slots=True)
class Smoke:
    """What the flags say of the smoke run."""

    wanted: bool = False
    python: str | None = None
    steps: int | None = None
    tp: int | None = None
    timeout: float | None = None
    inject: tuple[str, ...] = ()
    refused: bool = False
    """--no-smoke."""


@dataclass(frozen=True, slots=True)
class Request:
    command: str
    who: Who = field(default_factory=Who)
    way: Way = field(default_factory=Way)
    job: Job = field(default_factory=Job)
    what: What = field(default_factory=What)
    smoke: Smoke = field(default_factory=Smoke)
    verbose: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """Hosts that need not be looked for, and the way to them that is there already.

    `absent` asks who is not there any more; those hosts count as unreached whatever they said before.
    """

    targets: Targets
    transport: Transport
    absent: Callable[[], Mapping[str, Unreached]]
