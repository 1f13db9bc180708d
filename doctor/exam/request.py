"""The command line: each option is a field of one of these groups, in the order of --help."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from doctor.report.out.formats import Outputs
from doctor.text.option import IN_JOB, LIVE, NO_SMOKE, REPLAY, any_option, host_option, live_option, option

if TYPE_CHECKING:
    from doctor.model import UnreachedHost
    from doctor.targets.inventory import Targets

BACKENDS = ("auto", "gloo", "nccl", "hccl")
FRAMEWORK_NAMES = ("auto", "torch", "mindspore")
TRANSPORTS = ("auto", "ssh", "openssh", "srun", "local")
SHAPES = ("auto", "full", "ring", "none")
SECONDS: Mapping[str, Any] = {"min": 0.1, "max": 86_400.0}


@dataclass(frozen=True, slots=True)
class HostFlags:
    """The hosts, however they are named."""

    PANEL: ClassVar[str] = "Hosts"

    hosts: tuple[str, ...] = host_option("HOSTS", default=())
    hostfile: Path | None = host_option("-F, --hostfile FILE")
    inventory: Path | None = host_option("--inventory FILE")
    rank_table: Path | None = host_option("--rank-table FILE")
    slurm_job: str | None = host_option("--job ID")
    pods: str | None = host_option("--pods SELECTOR")
    nodes: str | None = host_option("--on-nodes SELECTOR")
    namespace: str | None = host_option("-n, --namespace NAME")
    container: str | None = host_option("--container NAME")
    context: str | None = host_option("--context NAME")
    local: bool = host_option("--local", default=False)
    exclude: tuple[str, ...] = host_option("--exclude NODESET", default=())

    @property
    def of_cluster(self) -> bool:
        return self.pods is not None or self.nodes is not None

    @property
    def named(self) -> bool:
        """Whether an option names the hosts themselves; an inventory may only add to them."""
        return bool(self.hosts or self.hostfile or self.local or self.rank_table or self.of_cluster)


@dataclass(frozen=True, slots=True)
class JobFlags:
    """What the flags say about the job."""

    PANEL: ClassVar[str] = "The job"

    backend: str = live_option("--backend NAME", default="auto", values=BACKENDS)
    master_port: int | None = live_option("--master-port PORT", min=1, max=65535)
    ranks_per_host: int | None = live_option("--ranks-per-host N", min=1, max=1024)
    launch: tuple[str, ...] = live_option("--launch FILE...", default=())
    plan: tuple[str, ...] = live_option("--plan KEY=VALUE,...", default=())

    needs: tuple[str, ...] = live_option("--needs PATH[:rw][:SIZE][:RATE]", default=())

    @property
    def launch_files(self) -> tuple[Path, ...]:
        return tuple(Path(each) for each in self.launch if each != LIVE)


@dataclass(frozen=True, slots=True)
class WayFlags:
    """How the hosts are reached."""

    PANEL: ClassVar[str] = "Reaching the hosts"

    user: str | None = host_option("--user NAME")
    port: int | None = host_option("--port PORT", min=1, max=65535)
    identities: tuple[str, ...] = host_option("-i, --identity FILE", default=())
    jump: str | None = host_option("-J, --jump HOST")
    via: str | None = host_option("--via GATEWAYS")
    ssh_config: str | None = host_option("--ssh-config FILE")
    accept_new: bool = host_option("--accept-new", default=False)
    sudo: bool = live_option("--sudo", default=False)
    enter: str | None = host_option("--enter COMMAND")
    transport: str = host_option("--transport NAME", default="auto", values=TRANSPORTS)
    allocate: bool = host_option("--allocate", default=False)
    fanout: int = any_option("--fanout N", default=64, min=1, max=4096)
    connect_timeout: float | None = any_option("--connect-timeout S", **SECONDS)
    timeout: float = any_option("--timeout S", default=60.0, **SECONDS)
    deadline: float | None = live_option("--deadline S", **SECONDS)
    trace: bool = live_option("--trace", default=False)

    by_default: frozenset[str] = frozenset()
    """Fields set by the user's defaults: nobody typed them for this run."""

    @property
    def logs_in(self) -> bool:
        """Whether an option asks for SSH or Slurm, which may lead to a different machine from this one."""
        return self.asks_for_ssh("ssh_config", "accept_new") or self.transport in ("ssh", "openssh", "srun")

    def asks_for_ssh(self, *more: str) -> bool:
        """Whether an option was typed that only SSH has."""
        names = {"user", "port", "identities", "jump", "via", *more} - self.by_default
        return any(getattr(self, name) for name in names)


@dataclass(frozen=True, slots=True)
class ExamFlags:
    """What to examine, and how strictly."""

    PANEL: ClassVar[str] = "What to examine"

    exam: str | None = any_option("--exam NAME|FILE")
    only: tuple[str, ...] = any_option("--only GLOB,...", default=(), commas=True)
    skip: tuple[str, ...] = any_option("--skip GLOB,...", default=(), commas=True)
    waivers: Path | None = any_option("--waivers FILE")
    no_waivers: bool = any_option("--no-waivers", default=False)
    checks: tuple[Path, ...] = any_option("--checks DIR", default=())
    expect: tuple[str, ...] = any_option("--expect KEY=VALUE", default=(), commas=True)
    baseline: Path | None = any_option("--baseline FILE")
    strict: bool = any_option("--strict", default=False)
    mesh: str | None = any_option("--mesh SHAPE", values=SHAPES)
    on_busy: str = any_option("--on-busy skip|run", default="skip", values=("skip", "run"))
    need_hosts: int | None = any_option("--need-hosts N", min=1)


@dataclass(frozen=True, slots=True)
class SmokeFlags:
    """What the flags say about the smoke run."""

    PANEL: ClassVar[str] = "Training"

    python: str | None = live_option("--python PATH")
    framework: str = live_option("--framework NAME", default="auto", values=FRAMEWORK_NAMES)
    steps: int | None = live_option("--steps N")
    tp: int | None = live_option("--tp N")
    timeout: float | None = live_option("--smoke-timeout S")
    inject: tuple[str, ...] = option("--inject KIND@RANK[:STEP]", not_with=(REPLAY, NO_SMOKE), default=())
    refused: bool = live_option(
        NO_SMOKE,
        default=False,
        alone=("without a smoke run nothing is broken on purpose", "Leave one of them out."),
    )


@dataclass(frozen=True, slots=True)
class Request:
    command: str
    who: HostFlags = field(default_factory=HostFlags)
    job: JobFlags = field(default_factory=JobFlags)
    way: WayFlags = field(default_factory=WayFlags)
    what: ExamFlags = field(default_factory=ExamFlags)
    smoke: SmokeFlags = field(default_factory=SmokeFlags)
    essential: tuple[str, ...] = ()
    """Globs of the checks that a command cannot do without, if the command itself chose with `only`."""
    in_job: bool = option(
        IN_JOB,
        not_with=(REPLAY,),
        default=False,
        panel=HostFlags.PANEL,
        alone=("it examines the hosts of the job it runs in", "Without it doctor reaches hosts over SSH."),
    )
    save: Path | None = any_option("--save FILE", panel=Outputs.PANEL)
    replay: Path | None = option(
        f"{REPLAY} FILE",
        not_with=(IN_JOB,),
        panel=HostFlags.PANEL,
        alone=(
            "it judges what was recorded",
            "Options that say what is judged, how strictly, and what is written can be combined with it.",
        ),
    )
    floor: Any = None
    """The Floor that links are to reach; an option of `accept` alone."""
    ready: Ready | None = None
    """The hosts, if a way to them exists already."""
    soak: float | None = None
    """For how many seconds an acceptance test is repeated."""
    paths: tuple[str, ...] = ()
    """The folders in which hosts are to store something; an option of `accept` alone."""
    hosts_at_once: int | None = None
    """The most hosts that send to each other at the same time; an option of `accept` alone."""
    outputs: Outputs = field(default_factory=Outputs)
    typed: frozenset[str] = frozenset()
    """The names of the options that were typed."""
    defaults: str = ""
    """The file that set options which nobody typed, and these options."""

    def inputs(self) -> Iterator[tuple[str, Path]]:
        """The files that are read: the name of the option, and the file."""
        exam, ssh_config = self.what.exam, self.way.ssh_config
        named = {
            "--hostfile": self.who.hostfile,
            "--inventory": self.who.inventory,
            "--rank-table": self.who.rank_table,
            "--replay": self.replay,
            "--exam": Path(exam) if exam else None,
            "--waivers": self.what.waivers,
            "--baseline": self.what.baseline,
            "--ssh-config": Path(ssh_config) if ssh_config else None,
        }
        yield from ((option, path) for option, path in named.items() if path is not None)
        yield from (("--launch", path) for path in self.job.launch_files)


@dataclass(frozen=True, slots=True)
class Ready:
    """Hosts and an existing way to them. Those that `absent` finds are unreached, whatever they said."""

    targets: Targets
    absent: Callable[[], Mapping[str, UnreachedHost]] = dict
