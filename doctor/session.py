"""One examination from the command line to the exit code: targets, transport, recording, report, files."""

from __future__ import annotations

import difflib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from doctor.collect import Collection, Order
from doctor.deliver import Outputs, deliver, refuse_unwritable
from doctor.errors import UsageError
from doctor.examination import Syllabus, examine
from doctor.expect import Expect, amend
from doctor.facts.run import MESH
from doctor.inventory import JobWishes, Targets, read_targets
from doctor.model import Backend, Host, Sourced
from doctor.nodeset import check_jump, check_user
from doctor.playbook import MeshMode, exams, load_exam, load_remedies, select
from doctor.progress import Line
from doctor.recording import Recording, load
from doctor.registry import find
from doctor.transport.settings import SshSettings
from doctor.verdict import Rules

if TYPE_CHECKING:
    from doctor.transport import Transport

DEFAULT_EXAM = "preflight"
SHAPES = ("auto", "full", "ring", "none")


@dataclass(frozen=True, slots=True)
class Request:
    """The command line, as typed."""

    command: str
    hosts: tuple[str, ...]
    hostfile: Path | None
    inventory: Path | None
    local: bool
    exclude: tuple[str, ...]
    backend: str
    master_port: int | None
    ranks_per_host: int | None
    user: str | None
    port: int | None
    identities: tuple[str, ...]
    jump: str | None
    ssh_config: str | None
    accept_new: bool
    sudo: bool
    enter: str | None
    transport: str
    fanout: int
    connect_timeout: float | None
    timeout: float
    deadline: float | None
    exam: str | None
    only: tuple[str, ...]
    skip: tuple[str, ...]
    checks: tuple[Path, ...]
    expect: tuple[str, ...]
    strict: bool
    mesh: str | None
    need_hosts: int | None
    replay: Path | None
    outputs: Outputs


def conduct(request: Request) -> int:
    """Run the examination and show it; the exit code is the report's."""
    refuse_unwritable(request.outputs)
    playbook = load_remedies()
    recorded = _load(request)
    syllabus = _syllabus(request, recorded)
    if recorded is None:
        recording = _collect(request, syllabus)
    else:
        recording = replace(recorded, expect={**recorded.expect, **_pairs(request.expect)})
    report = examine(recording, syllabus, playbook, replayed=recorded is not None)
    deliver(report, recording, request.outputs)
    return report.exit_code


def _load(request: Request) -> Recording | None:
    """The recording to judge again; what would change what was asked has no place beside it."""
    if request.replay is None:
        return None
    asks = {
        "HOSTS": request.hosts,
        "--hostfile": request.hostfile,
        "--inventory": request.inventory,
        "--local": request.local,
        "--exclude": request.exclude,
        "--backend": request.backend != "auto",
        "--master-port": request.master_port,
        "--ranks-per-host": request.ranks_per_host,
        "--sudo": request.sudo,
        "--enter": request.enter,
        "--transport": request.transport != "auto",
        "--user": request.user,
        "--port": request.port,
        "--identity": request.identities,
        "--jump": request.jump,
        "--ssh-config": request.ssh_config,
        "--accept-new": request.accept_new,
        "--deadline": request.deadline,
    }
    given = [name for name, value in asks.items() if value]
    if given:
        raise UsageError(
            f"--replay judges what was recorded; {', '.join(given)} cannot change it.",
            "--exam, --only, --skip, --expect and --strict can.",
        )
    return load(request.replay)


def _syllabus(request: Request, recorded: Recording | None) -> Syllabus:
    name = request.exam or (recorded.exam if recorded else DEFAULT_EXAM)
    if recorded and not request.exam and name not in exams():
        raise UsageError(f"It was recorded with the exam {name!r}.", "Name it again with --exam.")
    found = find(request.checks)
    exam = load_exam(name, found.checks)
    shape = _shape(request.mesh or (recorded.mesh_mode if recorded else exam.mesh))
    checks, left_out = select(found.checks, exam, request.only, request.skip, mesh=shape != "none")
    return Syllabus(
        name=name,
        exam=exam,
        checks=checks,
        left_out=left_out,
        expect=amend(Expect(), {key: str(value) for key, value in exam.expect.items()}, f"exam {name}"),
        # What somebody asks for by name is essential to them.
        rules=Rules(
            frozenset((*exam.essential, *(check.id for check in checks if request.only))),
            request.strict,
            request.need_hosts,
        ),
        notes=tuple(f"{broken.origin} could not be used: {broken.reason}" for broken in found.broken),
    )


def _collect(request: Request, syllabus: Syllabus) -> Recording:
    """Ask the hosts; an interruption leaves what is known by then."""
    targets = read_targets(
        request.hosts, request.hostfile, request.inventory, request.local, request.exclude, os.environ
    )
    hosts = _over(targets.hosts, request)
    if request.need_hosts is not None and request.need_hosts > len(hosts):
        raise UsageError(f"--need-hosts {request.need_hosts}: only {len(hosts)} hosts are named.")
    wishes = _wishes(request, targets.wishes)
    expect = wishes.expect
    amend(syllabus.expect, expect, "--expect")  # a typing error is told before any host is asked
    for host in hosts:
        amend(syllabus.expect, host.expected, f"inventory, {host.name}")
    transport = _transport(request, targets, hosts)
    line = Line(not request.outputs.quiet)
    collection = Collection(
        Order(
            command=request.command,
            exam=syllabus.name,
            hosts=hosts,
            wishes=wishes,
            expect=expect,
            facts=syllabus.facts,
            sudo=request.sudo,
            timeout=request.timeout,
            deadline=request.deadline,
            mesh=_shape(request.mesh or syllabus.exam.mesh) if syllabus.asks(MESH) else "none",
        ),
        transport,
        line,
    )
    _stop_on_signals()
    try:
        collection.run()
    except KeyboardInterrupt as stop:
        collection.stopped_by = getattr(stop, "number", int(signal.SIGINT))
    finally:
        line.clear()
        transport.close()
    return collection.recording()


def _identities(paths: Sequence[str]) -> tuple[str, ...]:
    """A key that is named and not there is a mistake, not something to go on without."""
    for path in paths:
        if not Path(path).expanduser().is_file():
            raise UsageError(f"--identity: there is no file {path!r}.")
    return tuple(paths)


def _transport(request: Request, targets: Targets, hosts: Sequence[Host]) -> Transport:
    names = ("auto", "ssh", "local")
    if request.transport not in names:
        raise UsageError(f"--transport: there is no {request.transport!r}; there are {', '.join(names)}.")
    if request.transport == "local" and not targets.local:
        raise UsageError("--transport local examines this machine only.", "Name no hosts, or use --local.")
    if targets.local and request.transport != "ssh":
        from doctor.transport.local import LocalTransport

        return LocalTransport(hosts)
    from doctor.transport.routed import RoutedTransport

    return RoutedTransport(
        hosts,
        SshSettings(
            user=check_user(request.user) if request.user else None,
            port=request.port,
            identities=_identities(request.identities),
            jump=check_jump(request.jump) if request.jump else None,
            config_file=request.ssh_config,
            accept_new=request.accept_new,
            fanout=request.fanout,
            connect_timeout=request.connect_timeout,
        ),
    )


def _over(hosts: tuple[Host, ...], request: Request) -> tuple[Host, ...]:
    """Flags go over what the files say."""
    if request.enter is None:
        return hosts
    return tuple(replace(host, enter=request.enter) for host in hosts)


def _wishes(request: Request, wishes: JobWishes) -> JobWishes:
    """Flags go over the inventory."""
    if request.backend != "auto":
        backends = [backend.value for backend in Backend]
        if request.backend not in backends:
            raise UsageError(
                f"--backend: there is no {request.backend!r}; there are auto, {', '.join(backends)}."
            )
        wishes = replace(wishes, backend=Sourced(Backend(request.backend), "--backend"))
    if request.master_port is not None:
        wishes = replace(wishes, master_port=Sourced(request.master_port, "--master-port"))
    if request.ranks_per_host is not None:
        wishes = replace(wishes, ranks_per_host=Sourced(request.ranks_per_host, "--ranks-per-host"))
    return replace(wishes, expect={**wishes.expect, **_pairs(request.expect)})


def _pairs(texts: Sequence[str]) -> Mapping[str, str]:
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"--expect {text!r} is not KEY=VALUE.", "For example: --expect nofile=100000")
        pairs[key.strip()] = value.strip()
    return pairs


def _shape(name: str) -> MeshMode:
    if name not in SHAPES:
        near = difflib.get_close_matches(name, SHAPES, 1)
        hint = f"Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"--mesh: there is no {name!r}; there are {', '.join(SHAPES)}.", hint)
    return cast('Literal["auto", "full", "ring", "none"]', name)


class _Stopped(KeyboardInterrupt):
    """A signal asked the run to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _stop_on_signals() -> None:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: with what is known, and nothing left behind."""

    def stop(number: int, _frame: object) -> None:
        raise _Stopped(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, stop)
