"""Conducts one smoke run over a session: starts the ranks, watches them, ends them whatever happens.

Control never depends on the data network: agents answer over the session. What it returns is what was seen;
`judge` says what it means.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from doctor.mesh import MeshResult
from doctor.smoke.limits import PATIENCE, WHOLE, Patience
from doctor.smoke.result import Backend, End, Exit, Hiccup, LeftOutOfSmoke, SmokePlan, SmokeResult
from doctor.smoke.watch import Alarm, HostWatch, Watch
from doctor.smoke.words import (
    Bye,
    Dns,
    Exited,
    Imported,
    Memory,
    Pages,
    Ready,
    Said,
    Spawned,
    Stacks,
    Store,
    Told,
    Trouble,
    parse,
)
from doctor.transport import Ended, Session

TICK = 0.05
BEFORE_BACKEND = ("spawned", "start", "ready", "join")
MOST_NOISE = 200
Meet = Callable[[], MeshResult | None]
"""Lets the hosts connect to each other, while their ranks hang."""
Progress = Callable[[str], None]


class SmokeRun:
    """One run over a session whose hosts were started with `smoke_script`.

    `timeout` is the limit of the whole run, `until` another, of time.monotonic. `conduct` always closes the
    session; `result` is what is known by then, also of a run that was interrupted.
    """

    def __init__(
        self,
        session: Session,
        plan: SmokePlan,
        *,
        pythons: Mapping[str, str | None],
        env: Mapping[str, str],
        timeout: float | None = None,
        until: float = math.inf,
        meet: Meet = lambda: None,
        progress: Progress = lambda _: None,
        patience: Patience | None = None,
    ) -> None:
        self.began = time.monotonic()
        self.until = min(until, self.began + (timeout or WHOLE[plan.backend]))
        self.session = session
        self.plan = plan
        self.pythons = pythons
        self.env = env
        self.patience = patience or PATIENCE[plan.backend]
        self.progress = progress
        self.meet = meet
        self.watch = Watch(plan, self.patience, self.began)
        self.end: End | None = None
        self.store_port: int | None = None
        self.mesh: MeshResult | None = None
        self.looks = 0
        self.stacks_of: set[str] = set()
        self.beat_at = 0.0
        self.shown = ""
        self.stopping = False

    # The course of a run.

    def conduct(self) -> None:
        try:
            for host in self.plan.hosts:
                self._send(host, self._start(host))
            alarm = self._watch_on()
            self.end = self._ended_by(alarm)
            self._take_evidence(alarm)
        except BaseException:
            self.end = self.end or self._ended_by(Alarm("interrupted"))
            raise
        finally:
            try:
                self._stop()
            finally:
                self.session.close()

    def _watch_on(self) -> Alarm:
        while True:
            self._hear(time.monotonic() + TICK)
            self._join_when_ready()
            self._show()
            if self.watch.finished:
                return Alarm("done")
            now = time.monotonic()
            alarm = self.watch.alarm(now)
            if alarm is None and now >= self.until:
                alarm = Alarm("deadline")
            if alarm is not None and (alarm.sure or self._confirmed(alarm)):
                return alarm

    def _ended_by(self, alarm: Alarm) -> End:
        now = time.monotonic()
        disturbed = [rank.disturbed_at for rank in self.watch.ranks if rank.disturbed_at is not None]
        return End(
            kind=alarm.kind,
            seconds=round(now - self.began, 3),
            cell=alarm.cell,
            limit=None if alarm.limit is None else round(alarm.limit, 2),
            latency=round(now - min(disturbed), 3) if disturbed and alarm.kind != "done" else None,
        )

    def _stop(self) -> None:
        """Tell every agent to stop, and hear that it did: only then is nothing of the run left."""
        self.stopping = True
        for host in self._live():
            self._send(host.host, {"do": "stop"})
        deadline = time.monotonic() + self.patience.stop
        while self._live() and time.monotonic() < deadline:
            self._hear(deadline)

    def result(self, left_out: Sequence[LeftOutOfSmoke] = ()) -> SmokeResult:
        end = self.end or self._ended_by(Alarm("interrupted"))
        ended = self.began + end.seconds
        ranks = tuple(rank.seen(ended) for rank in self.watch.ranks)
        phases = dict.fromkeys(phase for rank in ranks for phase in rank.seconds)
        return SmokeResult(
            plan=self.plan,
            end=end,
            ranks=ranks,
            hosts=tuple(host.seen(self.began) for host in self.watch.hosts.values()),
            hiccups=tuple(self.watch.hiccups),
            mesh=self.mesh,
            left_out=tuple(left_out),
            seconds={phase: max(rank.seconds.get(phase, 0.0) for rank in ranks) for phase in phases},
            total=round(time.monotonic() - self.began, 3),
        )

    def _start(self, host: str) -> dict[str, Any]:
        plan = self.plan
        seats = plan.on(host)
        cells = sorted({seat.cell for seat in seats})
        return {
            "do": "start",
            "ranks": [
                {key: getattr(seat, key) for key in ("place", "cell", "local", "device", "rank")}
                for seat in seats
            ],
            "shapes": {str(cell): self.watch.shapes[cell]._asdict() for cell in cells},
            "python": self.pythons.get(host),
            "env": dict(self.env),
            "timeout": 3600.0,
            "inject": {
                str(cell): [
                    {"kind": each.kind, "rank": plan.seat(each.rank).place, "step": each.step}
                    for each in plan.injected
                    if plan.seat(each.rank).cell == cell
                ]
                for cell in cells
            },
            "address": plan.addresses[host],
            "head": plan.addresses[plan.head],
            "store": host == plan.head,
            "lease": self.patience.lease,
        }

    def _join_when_ready(self) -> None:
        if self.store_port is None or not self.watch.all_ready:
            return
        for host in self._live():
            if not host.told:
                host.told = True
                where = {"address": self.plan.addresses[self.plan.head], "port": self.store_port}
                self._send(host.host, {"do": "join", **where})

    def _confirmed(self, alarm: Alarm) -> bool:
        """Look twice, apart: where a rank has moved meanwhile, nothing hangs."""
        assert alarm.cell is not None
        self._look()
        before = self.watch.versions()
        time.sleep(self.patience.again)
        self._look()
        if not self.watch.moved(alarm.cell, before) and self.watch.alarm(time.monotonic()) is not None:
            return True
        quiet = max(self.watch.hosts[host].quiet for host in self.plan.hosts)
        if quiet >= self.patience.hiccup:
            rank = self.watch.ranks[self.plan.cells[alarm.cell][0]]
            self.watch.hiccups.append(Hiccup(rank.seat.rank, rank.phase, round(quiet, 2)))  # type: ignore[arg-type]
        return False

    def _take_evidence(self, alarm: Alarm) -> None:
        """Before anything is ended: pages, stacks, and whether the hosts still reach each other."""
        if alarm.kind == "done":
            return
        if alarm.kind != "still":
            self._look()
        if alarm.kind in ("still", "deadline", "stopped", "mismatch"):
            self._ask_all({"do": "stacks"}, self._told_all)
        if alarm.kind in ("still", "deadline", "lost", "trouble") or self._only_connections_broke():
            self.progress("something hangs; connecting the hosts to each other")
            self.mesh = self.meet()

    def _only_connections_broke(self) -> bool:
        """Nobody was killed and nobody erred: ranks that ended say only that they lost each other."""
        ended = [rank for rank in self.watch.ranks if rank.ended_badly]
        return bool(ended) and all(rank.exit and rank.exit.code == 3 for rank in ended)

    # The conversation.

    def _told_all(self, host: HostWatch) -> bool:
        """Stacks, and where there is a backend that knows something, its words."""
        joined = [
            rank
            for rank in (self.watch.ranks[seat.rank] for seat in self.plan.on(host.host))
            if self.plan.backend != "gloo" and rank.exit is None and rank.phase not in BEFORE_BACKEND
        ]
        return host.host in self.stacks_of and all(rank.events[Backend] for rank in joined)

    def _look(self) -> None:
        self.looks += 1
        wanted = self.looks
        self._ask_all({"do": "look", "id": wanted}, lambda host: host.looked >= wanted)

    def _ask_all(self, what: dict[str, Any], answered: Callable[[HostWatch], bool]) -> None:
        for host in self._live():
            self._send(host.host, what)
        deadline = time.monotonic() + self.patience.look
        while not all(answered(host) for host in self._live()) and time.monotonic() < deadline:
            self._hear(deadline)

    def _live(self) -> list[HostWatch]:
        return [host for host in self.watch.hosts.values() if not host.gone]

    def _send(self, host: str, what: dict[str, Any]) -> None:
        self.session.send(host, msgspec.json.encode(what))

    def _show(self) -> None:
        """A line for each phase, when its last rank has entered it."""
        phases = [rank.phase for rank in self.watch.ranks]
        names = dict.fromkeys(phases)
        text = "starting Python and torch" if names == {"spawned": None} else ", ".join(names)
        if text != self.shown:
            self.shown = text
            self.progress(text)

    def _hear(self, deadline: float) -> None:
        """Keep the leases alive and take in what is said, until `deadline` or the first silence before it."""
        now = time.monotonic()
        if now >= self.beat_at:
            self.beat_at = now + self.patience.beat
            for host in self._live():
                self._send(host.host, {"do": "beat"})
        event = self.session.receive(max(0.0, min(deadline, self.beat_at) - now))
        while event is not None:
            host_of = self.watch.hosts.get(event.host)
            if host_of is not None and not host_of.gone:
                host_of.heard_at = time.monotonic()
                if isinstance(event, Ended):
                    self._ended(event, host_of)
                else:
                    self._line(event.text, host_of)
            event = self.session.receive(0.0) if time.monotonic() < deadline else None

    def _line(self, text: bytes, host: HostWatch) -> None:
        said = parse(text)
        if said is not None:
            self._said(said, host)
        elif text.strip():
            host.noise.append(text[:200].decode("utf-8", "replace"))
            if len(host.noise) > MOST_NOISE:
                host.trouble = f"it printed more than {MOST_NOISE} lines that are no answer"
                host.gone = True

    def _ended(self, event: Ended, host: HostWatch) -> None:
        host.gone = True
        if self.stopping:
            return
        if event.unreached is not None:
            host.lost = event.unreached
            return
        words = event.stderr.decode("utf-8", "replace").strip().splitlines()[-3:] or host.noise[-3:]
        said = f": {' | '.join(words)}" if words else ""
        host.trouble = host.trouble or f"its agent ended early (exit status {event.rc}){said}"

    def _said(self, said: Said, host: HostWatch) -> None:
        now = time.monotonic()
        if isinstance(said, Told | Exited):
            ranks = self.watch.ranks
            if said.rank >= len(ranks) or ranks[said.rank].seat.host != host.host:
                return
            rank = ranks[said.rank]
            if isinstance(said, Told):
                rank.take(said.event, now)
            elif rank.exit is None and not self.stopping:
                after = round(now - self.began, 3)
                rank.exit = Exit(said.code, said.signal, after, said.words)
        elif isinstance(said, Pages):
            self.watch.pages(host, said, now)
        elif isinstance(said, Ready):
            host.ready, host.cores, host.load = True, said.cores, said.load
        elif isinstance(said, Imported):
            host.imported_at, host.python, host.torch = now, said.path, said.torch
        elif isinstance(said, Store):
            if host.host == self.plan.head:
                self.store_port = said.port
        elif isinstance(said, Spawned):
            for seat in self.plan.on(host.host):
                self.watch.ranks[seat.rank].pid = said.pids.get(str(seat.rank))
        elif isinstance(said, Stacks):
            self.stacks_of.add(host.host)
            for seat in self.plan.on(host.host):
                self.watch.ranks[seat.rank].stack = said.stacks.get(str(seat.rank), "")
        elif isinstance(said, Dns):
            host.reverse_dns = said.seconds
        elif isinstance(said, Memory):
            host.peak_memory = said.peak
        elif isinstance(said, Trouble):
            if not self.stopping or not host.trouble:
                host.trouble = said.text
        elif isinstance(said, Bye):
            host.gone = True
            if not self.stopping and not host.trouble:
                host.trouble = "its agent ended early"
