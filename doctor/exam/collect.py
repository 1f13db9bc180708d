"""Collects the answers of the hosts into a recording, which can be judged at any time: probe, mesh, pings."""

import math
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as Names
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from doctor import __version__
from doctor.api import Ask, Fact
from doctor.baseline import Baseline
from doctor.exam.pauses import Pauses
from doctor.exam.scripts import NamesToAsk, Scripts
from doctor.exam.second_round import called_addresses, plan_name_round, plan_ping_round, plan_table_round
from doctor.facts.network import ADDRESSES, LINKS, NAMES
from doctor.facts.software import ENVIRONMENT
from doctor.facts.tables import TABLE_FILES
from doctor.floors import Floor
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.judge.playbook import MeshMode
from doctor.judge.reading import Reading, read_recording
from doctor.mesh import MeshPlan, MeshResult, plan_mesh
from doctor.model import Answer, AnswerEnd, Backend, Capture, Host, MissingFact, UnreachedHost, UnreachedKind
from doctor.probe import HostAnswer, new_token, read, script, through
from doctor.recording import Counted, Recording, with_earlier
from doctor.rules.offers import offers_of, offers_to_try
from doctor.savedrun import SCHEMA
from doctor.smoke.result import SmokeResult
from doctor.smoke.soak import Soak
from doctor.stage import Stage, Tell
from doctor.text.redact import redact, redact_values
from doctor.transport import Script, Transport, errors
from doctor.transport.containers import not_entered
from doctor.transport.way import Way

MOMENT = 0.05
TOO_SLOW = (UnreachedKind.TIMEOUT, UnreachedKind.SILENT, UnreachedKind.BANNER)


@dataclass(frozen=True, slots=True)
class Order:
    """What to ask which hosts, and how long to wait."""

    command: str
    exam: str
    hosts: tuple[Host, ...]
    wishes: JobWishes
    facts: tuple[Fact[Any], ...]
    sudo: bool = False
    timeout: float = 60.0
    until: float = math.inf
    """When the whole run ends, by time.monotonic."""
    mesh: MeshMode = "auto"
    connect: bool = True
    """Whether a check needs to know who reaches whom."""
    also_busy: bool = False
    smoke: bool = False
    """Whether a smoke run follows."""
    quick: bool = False
    """Whether connections between hosts are given little time, as in a smoke run."""
    hosts_from: str = ""
    """Where the hosts were named, if it was not the command line."""
    way: Way | None = None
    """How the hosts are to be reached."""
    pythons: tuple[str, ...] | None = None
    """The user's own interpreters, to look for on the hosts; None: use python3 there if none is named."""
    baseline: Baseline | None = None
    """What the hosts are compared with."""
    floor: Floor | None = None
    """What links must carry at least."""
    earlier: Counted = field(default_factory=dict)
    """What an earlier run had counted."""


@dataclass(slots=True)
class Collection:
    """One run over the hosts; `recording()` is the data collected so far, `read()` its meaning."""

    order: Order
    transport: Transport
    progress: Tell
    began: float = field(default_factory=time.monotonic)
    started: str = field(default_factory=lambda: datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))
    heard: dict[str, HostAnswer] = field(default_factory=dict)
    unreached: dict[str, UnreachedHost] = field(default_factory=dict)
    mesh: MeshResult | None = None
    offered: MeshResult | None = None
    no_mesh: str = ""
    smoke: list[SmokeResult] = field(default_factory=list)
    soak: Soak | None = None
    no_smoke: str = ""
    stopped_by: int | None = None
    pauses: Pauses = field(default_factory=Pauses)
    hosts: tuple[Host, ...] = field(init=False)
    wishes: JobWishes = field(init=False)
    drafted: JobPlan = field(init=False)
    _read: Reading | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Keep the user's secrets out of the recording and the plan."""
        order = self.order
        hosts = tuple(replace(h, enter=redact(h.enter)) if h.enter else h for h in order.hosts)
        wishes = order.wishes
        table = wishes.table and replace(wishes.table, text=redact(wishes.table.text))
        self.hosts, self.wishes = hosts, replace(wishes, env=redact_values(wishes.env), table=table)
        self.drafted = draft(hosts, self.wishes)

    def run(self) -> None:
        try:
            self._probe()
            self._of_running_ranks()
            self._mesh()
            self._try_offers()
            self._follow_up()
        finally:
            self.pauses.close()

    def _show_progress(self, phase: str, answered: int, asked: int, waiting: Names[str]) -> None:
        gone = asked - answered - len(waiting)
        doing = f"{answered}/{asked} answered" + (f", {gone} did not" if gone else "")
        limit = min(self.order.timeout, max(0.0, self.left()))
        self.progress(Stage(phase, doing, asked - len(waiting), asked, waiting=waiting, limit=limit))

    def recording(self) -> Recording:
        order = self.order
        names = [host.name for host in order.hosts]
        done = self.heard.keys() | self.unreached.keys()
        return Recording(
            schema=SCHEMA,
            tool=__version__,
            command=order.command,
            exam=order.exam,
            transport=self.transport.name,
            hosts_from=redact(order.hosts_from),
            way=order.way,
            baseline=order.baseline,
            floor=order.floor,
            started=self.started,
            seconds=round(time.monotonic() - self.began, 2),
            hosts=self.hosts,
            wishes=self.wishes,
            expect=order.wishes.expect,
            heard={name: self.heard[name] for name in names if name in self.heard},
            unreached={name: self.unreached[name] for name in names if name in self.unreached},
            mesh=self.mesh,
            offered=self.offered,
            mesh_mode=order.mesh,
            unfinished=tuple(name for name in names if name not in done),
            stopped_by=self.stopped_by,
            smoke=tuple(self.smoke),
            soak=self.soak,
            smoke_wanted=order.smoke,
            no_smoke=self.no_smoke or ("the run was interrupted before it" if self.stopped_by else ""),
            no_mesh=self.no_mesh or ("the run was interrupted before it ended" if self.stopped_by else ""),
            notes=tuple(map(redact, self.transport.warnings)),
        )

    def read(self) -> Reading:
        self._read = read_recording(self.recording(), self._read, self.drafted)
        return self._read

    def left(self) -> float:
        """Seconds until the deadline of the whole run."""
        return self.order.until - time.monotonic()

    def _probe(self) -> None:
        order, plan = self.order, self.drafted
        facts = [fact for fact in order.facts if not fact.later]
        hosts = {host.name: host for host in order.hosts}
        names = NamesToAsk(tuple(hosts), plan)
        ports = (plan.master_port.value, *plan.hccl_ports)

        def wanted(host: str) -> Ask:
            return Ask(
                host,
                names.of(host),
                ports,
                hosts[host].python or (order.wishes.launch.python if order.wishes.launch else None),
                (*plan.table_paths, *(order.wishes.launch.configs if order.wishes.launch else ())),
                plan.needed_paths,
                folders=tuple(need.path for need in plan.needs),
                read=tuple(need.path for need in plan.needs if need.rate),
                pythons=order.pythons,
                framework=plan.framework.value if plan.framework else None,
            )

        waiting = dict.fromkeys(hosts)
        self._show_progress("hosts", 0, len(hosts), waiting)
        for answer, outcome in self.ask(facts, hosts, wanted):
            if isinstance(outcome, UnreachedHost) and isinstance(answer, Answer):
                outcome = _entry_failure(outcome, answer, hosts[outcome.host])
            if isinstance(outcome, UnreachedHost):
                self.unreached[outcome.host] = self._excused(outcome)
            else:
                self.heard |= with_earlier({outcome.host: outcome}, order.earlier)
            del waiting[outcome.host]
            self._show_progress("hosts", len(self.heard), len(hosts), waiting)

    def ask(
        self, facts: Sequence[Fact[Any]], names: Iterable[str], wanted: Callable[[str], Ask]
    ) -> Iterator[tuple[Answer | UnreachedHost, HostAnswer | UnreachedHost]]:
        """Ask some of the hosts; yields what came from each, and its meaning."""
        order, token = self.order, new_token()
        asked = {*names}
        hosts = {host.name: host for host in order.hosts if host.name in asked}

        def write(host: str) -> Script:
            return through(script(facts, wanted(host), token, sudo=order.sudo), hosts[host])

        answers = self.transport.run(Scripts(hosts, write), order.timeout, order.until) if hosts else ()
        for answer in answers:
            yield answer, answer if isinstance(answer, UnreachedHost) else read(answer, facts, token)

    def _excused(self, why: UnreachedHost) -> UnreachedHost:
        """The reason why a host has no answer; it is not blamed if the run ended early or was paused."""
        pause = self.pauses.longest
        if pause and why.kind in (*TOO_SLOW, UnreachedKind.LOST, UnreachedKind.JUMP):
            seconds = errors.rounded(pause)
            return errors.cannot("paused", errors.quoted(why.summary), seconds=seconds).of(why.host)
        if self.left() <= MOMENT and why.kind in TOO_SLOW:
            return errors.cannot("cut off", errors.quoted(why.summary)).of(why.host)
        return why

    def _mesh(self) -> None:
        """Run the mesh. Only hosts that answered take part, with their data addresses."""
        order = self.order
        if order.mesh == "none" or not order.connect or len(self.heard) < 2:
            return
        if self.left() <= 0:
            self.no_mesh = "the deadline came before it"
            return
        plan = self.read().plan
        mesh = plan_mesh(
            {host.name: plan.data_address(host.name) for host in order.hosts if host.name in self.heard},
            shape=order.mesh,
            head=plan.head.value,
            master_port=plan.master_port.value,
            hccl_port=plan.hccl_base_port.value if plan.backend.value is Backend.HCCL else None,
            mccl_ports={host: ports[0] for host, ports in plan.mccl_ports.items() if ports},
        )
        if len(mesh.nodes) < 2:
            self.mesh = MeshResult(mesh.shape, mesh.head, (), (), (), mesh.left_out, 0.0)
            return
        self.progress(Stage("network", f"starting on {len(mesh.nodes)} hosts"))
        self.mesh = self.connect(mesh, self.progress, quick=order.quick)

    def _try_offers(self) -> None:
        """If ranks would offer or call a different address than the one that was tried, try that one too."""
        if self.mesh is None or not self.mesh.links or self.left() <= 0:
            return
        reading = self.read()
        plan, known = reading.plan, reading.facts.all
        offers = offers_of(plan, known(NAMES), known(ADDRESSES), known(ENVIRONMENT), known(LINKS))
        called = called_addresses(self.wishes.launch, reading.facts, plan)
        wanted = {**called, **offers_to_try(plan, offers)}
        if not wanted:
            return
        addresses = {
            host: wanted.get(host) or plan.data_address(host) for host in plan.names if host in self.heard
        }
        head, port = next(iter(called), None), plan.master_port.value
        mesh = plan_mesh(addresses, shape=self.mesh.shape, head=head, master_port=port)
        mesh = replace(mesh, pairs=tuple(pair for pair in mesh.pairs if pair[1] in wanted))
        if mesh.pairs:
            self.offered = self.connect(mesh, quick=self.order.quick)

    def connect(self, mesh: MeshPlan, progress: Tell | None = None, *, quick: bool) -> MeshResult:
        """Start an agent on each host that takes part, and let them connect to each other."""
        from doctor.mesh.run import QUICK, MeshPatience, mesh_script, run_mesh  # not for a single host

        hosts = {host.name: host for host in self.order.hosts}
        taking_part = [hosts[node.host] for node in mesh.nodes]
        scripts = {h.name: through(mesh_script(h.python), h) for h in taking_part}
        session = self.transport.open(scripts, self.order.until)
        patience = QUICK if quick else MeshPatience()
        return run_mesh(session, mesh, patience, progress or (lambda _: None), self.order.until)

    def _of_running_ranks(self) -> None:
        """Ask for the rank tables and the masters' names of a running job, if the first answers show any."""
        reading = self.read()
        if not reading.running:
            return
        if TABLE_FILES in self.order.facts:
            tables = plan_table_round(reading.running, self.drafted)
            self._ask_more(TABLE_FILES, {host: Ask(host, tables=paths) for host, paths in tables.items()})
        names = NamesToAsk([host.name for host in self.order.hosts], self.drafted)
        more = plan_name_round(reading.running, reading.facts)
        self._ask_more(NAMES, {host: Ask(host, (*names.of(host), *own)) for host, own in more.items()})

    def _ask_more(self, fact: Fact[Any], asks: Mapping[str, Ask]) -> None:
        """A host that does not answer this question keeps its first answer in full."""
        if self.left() <= 0:
            return
        for answer, heard in self.ask([fact], asks, asks.__getitem__):
            if not isinstance(heard, UnreachedHost) and all(each.rc == 0 for each in heard.captures.values()):
                self._add(answer.host, heard.captures, {})

    def _follow_up(self) -> None:
        """The second round, for facts that depend on all hosts' answers; it adds to the first ones."""
        order, reading = self.order, self.read()
        later = [fact for fact in order.facts if fact.later]
        if not later or reading.plan.backend.value is not Backend.HCCL:
            return
        early = "fewer than two hosts answered" if len(self.heard) < 2 else ""
        early = early or ("the deadline came before it" if self.left() <= 0 else "")
        if early:
            for host in self.heard:
                self._add(host, {}, {fact.name: MissingFact(fact.name, early) for fact in later})
            return
        wanted = plan_ping_round(
            reading.facts, reading.plan, everybody=order.mesh == "full", also_busy=order.also_busy
        )
        for host, missing in wanted.without.items():
            self._add(host, {}, {missing.fact: missing})
        pings = wanted.pings
        if not pings:
            return
        for host in pings:
            self._add(
                host, {}, {fact.name: MissingFact(fact.name, "the run ended before it") for fact in later}
            )
        waiting, answered = dict.fromkeys(pings), 0
        self._show_progress("NPU pings", 0, len(pings), waiting)
        for answer, heard in self.ask(later, pings, lambda host: Ask(host, pings=pings[host])):
            if isinstance(heard, UnreachedHost):
                self._add(answer.host, {}, {f.name: MissingFact(f.name, heard.summary) for f in later})
            else:
                self._add(answer.host, heard.captures, heard.missing)
            answered += not isinstance(heard, UnreachedHost)
            del waiting[answer.host]
            self._show_progress("NPU pings", answered, len(pings), waiting)
            gone = _lost_host(answer)
            if gone and self._excused(gone) is gone:
                self.unreached[gone.host] = gone

    def _add(self, host: str, captures: Mapping[str, Capture], missing: Mapping[str, MissingFact]) -> None:
        """Add to a host's answer; new values override what was missing before."""
        known = self.heard[host]
        open_until_now = {name: why for name, why in known.missing.items() if name not in captures}
        self.heard[host] = replace(
            known, captures={**known.captures, **captures}, missing={**open_until_now, **missing}
        )


def _lost_host(answer: Answer | UnreachedHost) -> UnreachedHost | None:
    """A host that answered in the first round and was lost in the second."""
    if isinstance(answer, UnreachedHost):
        return answer
    if answer.end is not AnswerEnd.LOST:
        return None
    return UnreachedHost(
        answer.host,
        UnreachedKind.LOST,
        "it answered at first, and the connection was lost while its NPUs were asked to ping others",
        "See whether the host is still up: it may have restarted or lost its network.",
        (f"ssh {shlex.quote(answer.host)} uptime",),
    )


def _entry_failure(why: UnreachedHost, answer: Answer, host: Host) -> UnreachedHost:
    """The failure of the command that enters the container, if one is used, instead of the login's."""
    if not host.enter or why.kind not in (UnreachedKind.NO_SHELL, UnreachedKind.SILENT):
        return why
    return not_entered(why, host, (answer.stderr or answer.stdout)[:4000].decode("utf-8", "replace"))
