"""Conducts one smoke run over a session: starts the ranks, watches them, and ends them whatever happens.

Control never depends on the data network: agents answer over the session. The result is what was seen;
`judge` decides what it means.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from doctor.agents.session import LAST_PATIENCE
from doctor.mesh import MeshResult
from doctor.mesh.result import OmittedHost
from doctor.smoke.agents import SmokeAgents
from doctor.smoke.headway import SMOKE, headway, with_those_behind
from doctor.smoke.judge.exits import ended_badly, way_of
from doctor.smoke.limits import PATIENCE, SmokePatience, whole_limit
from doctor.smoke.live import LiveHost
from doctor.smoke.messages import JoinCommand, SeatCommand, StartCommand
from doctor.smoke.result import Hiccup, RunEnd, SmokePlan, SmokeResult
from doctor.smoke.watch import Alarm, Watch
from doctor.stage import Stage, Tell
from doctor.transport import Session

TICK = 0.05
EVIDENCE = 6.0
"""Seconds reserved at the end of a run that is cut short, to see which ranks stand still, and why."""
SHOWN, STOOD = 0.2, 2.0
"""Seconds between two reports of progress: while something moves, and while nothing does."""
MOST_UNANSWERED = 3
"""After this many unanswered looks in a row an agent is given up, even if it still sends messages."""
Meet = Callable[[], MeshResult | None]
"""A function that lets the hosts connect to each other while their ranks hang."""


class SmokeRun:
    """One run over a session whose hosts were started with `smoke_script`.

    `env` is for the ranks of all hosts, `own_env` for those of single ones.
    `timeout` limits the training, in seconds. `until` limits everything, by time.monotonic(); its last
    seconds are for evidence. `conduct` always closes the session. `result` is what is known so far, even if
    the run was interrupted.
    """

    def __init__(
        self,
        session: Session,
        plan: SmokePlan,
        *,
        pythons: Mapping[str, str | None],
        env: Mapping[str, str],
        own_env: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        timeout: float | None = None,
        until: float = math.inf,
        meet: Meet = lambda: None,
        progress: Tell = lambda _: None,
        patience: SmokePatience | None = None,
    ) -> None:
        self.began = time.monotonic()
        own = self.began + (timeout or whole_limit(plan))
        enough = until - min(EVIDENCE, (until - self.began) / 4)
        self.until, self.cut_short = min(enough, own), enough < own
        self.overtime = False
        self.last = until - LAST_PATIENCE
        self.session = session
        self.plan = plan
        self.pythons = pythons
        self.env, self.own_env = env, own_env
        self.patience = patience or PATIENCE[plan.backend]
        self.progress = progress
        self.meet = meet
        self.watch = Watch(plan, self.patience, self.began)
        self.agents = SmokeAgents(session, self.watch, self.began, until)
        self.end: RunEnd | None = None
        self.mesh: MeshResult | None = None
        self.shown = Stage(SMOKE, "")
        self.shown_at = -math.inf

    # The course of a run.

    def conduct(self) -> None:
        try:
            for host in self.plan.hosts:
                self.agents.send(host, self._start(host))
            alarm = self._watch_on()
            self.end = self._ended_by(alarm)
            self._take_evidence(alarm)
        except BaseException:
            self.end = self.end or self._ended_by(Alarm("interrupted"))
            raise
        finally:
            try:
                self.agents.stop()
            finally:
                self.session.close()

    def _watch_on(self) -> Alarm:
        self._show()
        while True:
            heard_all = self.agents.hear(time.monotonic() + TICK)
            self._join_when_ready()
            self._show()
            if self.watch.finished:
                return Alarm("done")
            alarm = self.watch.alarm(time.monotonic()) if heard_all else None
            if alarm is not None and not alarm.sure:
                alarm = self._confirmed(alarm)
            if alarm is not None:
                return Alarm("interrupted") if self.agents.excused else alarm
            if time.monotonic() >= self.until and (alarm := self._out_of_time()):
                return alarm

    def _out_of_time(self) -> Alarm | None:
        """The alarm when time is up. If the run was cut short, ranks that still move were not too slow."""
        still = any(self.watch.quiet(cell) >= self.patience.floor for cell in range(len(self.plan.cells)))
        if self.agents.excused or self.overtime:
            return Alarm("interrupted")
        if still or not self.cut_short:
            return Alarm("deadline")
        self.overtime, self.until = True, max(self.until, self.last)  # it may still end by itself
        return None

    def _ended_by(self, alarm: Alarm) -> RunEnd:
        now = time.monotonic()
        disturbed = [rank.disturbed_at for rank in self.watch.ranks if rank.disturbed_at is not None]
        return RunEnd(
            kind=alarm.kind,
            seconds=round(now - self.began, 3),
            cell=alarm.cell,
            limit=None if alarm.limit is None else round(alarm.limit, 2),
            latency=round(now - min(disturbed), 3) if disturbed and alarm.kind != "done" else None,
        )

    def result(self, left_out: Sequence[OmittedHost] = ()) -> SmokeResult:
        end = self.end or self._ended_by(Alarm("interrupted"))
        ended = self.began + end.seconds
        ranks = tuple(rank.seen(ended) for rank in self.watch.ranks)
        phases = dict.fromkeys(phase for rank in ranks for phase in rank.seconds)
        return SmokeResult(
            plan=self.plan,
            end=end,
            ranks=ranks,
            hosts=tuple(
                replace(host.seen(self.began), asked=self.pythons.get(name) or "")
                for name, host in self.watch.hosts.items()
            ),
            hiccups=tuple(self.watch.hiccups),
            mesh=self.mesh,
            left_out=tuple(left_out),
            seconds={phase: max(rank.seconds.get(phase, 0.0) for rank in ranks) for phase in phases},
            total=round(time.monotonic() - self.began, 3),
        )

    def _start(self, host: str) -> StartCommand:
        """The command that starts the ranks of a host, all of which are in one cell."""
        plan, seats = self.plan, self.plan.on(host)
        cell = next((seat.cell for seat in seats), 0)
        return StartCommand(
            ranks=tuple(
                SeatCommand(s.place, s.local, s.device if s.index is None else s.index, s.rank) for s in seats
            ),
            cell=cell,
            shape=self.watch.shapes[cell],
            python=self.pythons.get(host),
            env={**self.env, **self.own_env.get(host, {})},
            timeout=3600.0,
            inject=tuple(
                replace(each, rank=plan.seat(each.rank).place)
                for each in plan.injected
                if plan.seat(each.rank).cell == cell
            ),
            address=plan.addresses[host],
            head=plan.addresses[plan.head],
            store=host == plan.head,
            lease=self.patience.lease,
            framework=plan.framework,
            worlds=tuple(map(len, plan.cells)),
        )

    def _join_when_ready(self) -> None:
        if not self.watch.all_ready:
            return
        for host in self.agents.live():
            port = self.agents.port(self.plan.on(host.host)[0].cell)
            if port is not None and not host.told:
                host.told = True
                self.agents.send(host.host, JoinCommand(self.plan.addresses[self.plan.head], port))

    def _confirmed(self, alarm: Alarm) -> Alarm | None:
        """Look twice, with some time in between: if a rank has moved, nothing hangs."""
        cell = alarm.cell or 0
        stood, ranks = self.watch.quiet(cell), self.watch.together(cell)
        if (gone := self._look_at(cell)) is not None or self._missing(cell):
            return gone
        before = self.watch.versions(ranks)
        time.sleep(self.patience.again)
        if (gone := self._look_at(cell)) is not None or self._missing(cell):
            return gone
        again = self.watch.alarm(time.monotonic())
        if again is not None and again.sure:
            return again
        if self.watch.versions(ranks) == before:
            return alarm if again is not None else None
        if stood >= self.patience.hiccup:
            rank = self.watch.ranks[self.plan.cells[cell][0]]
            self.watch.hiccups.append(Hiccup(rank.seat.rank, rank.phase, round(stood, 2)))  # type: ignore[arg-type]
        return None

    def _look_at(self, cell: int) -> Alarm | None:
        """Look, and return an alarm if an agent that was silent for long does not answer."""
        dumb = [host for host in self.watch.waiting(cell) if host.silence >= self.patience.mute]
        self.agents.look()
        given_up = [one for one in self._missing(cell) if one in dumb or one.unanswered >= MOST_UNANSWERED]
        _give_up(given_up)
        return Alarm("trouble") if given_up else None

    def _missing(self, cell: int) -> list[LiveHost]:
        """Live hosts of the cell that did not answer the last look."""
        return [one for one in self.watch.waiting(cell) if not one.gone and one.looked < self.agents.looks]

    def _take_evidence(self, alarm: Alarm) -> None:
        """Before anything is ended, collect pages, stacks, and whether the hosts still reach each other."""
        if alarm.kind in ("done", "interrupted"):
            return
        silent = self.agents.look() if alarm.kind != "still" else []
        self.watch.frozen = True  # a stopped rank is woken to take its stack
        if alarm.kind in ("still", "deadline", "stopped", "mismatch"):
            self.agents.take_stacks()
        broke = alarm.kind == "exit" and self._only_connections_broke()
        if broke and 0 < len(silent) < len(self.agents.live()):
            _give_up([host for host in self.agents.look() if host in silent])
        if broke and (gone := self._lost_host()):
            self.end = replace(self._ended_by(alarm), kind=gone, cell=None)
        elif broke or alarm.kind in ("still", "deadline"):
            self._try_network()

    def _only_connections_broke(self) -> bool:
        """Whether the ranks that ended only lost each other: none was killed, none failed by itself."""
        ended = [one.seen(time.monotonic()) for one in self.watch.ranks if ended_badly(one.exit, one.done)]
        return bool(ended) and all(way_of(seen) == "connection" for seen in ended)

    def _lost_host(self) -> Literal["lost", "trouble"] | None:
        """How a host was lost, if that is why the other ranks ended; None if no host was lost."""
        hosts = self.watch.hosts.values()
        if any(host.lost for host in hosts):
            return "lost"
        return "trouble" if any(host.trouble for host in hosts) else None

    def _try_network(self) -> None:
        """Try it only if ranks had connections. If that, or its report, fails, other evidence is kept."""
        if len(self.plan.hosts) < 2 or not self.watch.any_joined:
            return
        with suppress(Exception):
            self.progress(Stage(SMOKE, "something hangs; connecting the hosts to each other"))
        with suppress(Exception):
            self.mesh = self.meet()

    def _show(self) -> None:
        """Report what has moved, or who is waited for. A failure to report does not end the run."""
        now = time.monotonic()
        if now - self.shown_at < SHOWN:
            return
        with suppress(Exception):
            stage = headway(self.watch)
            still = stage == self.shown
            if still and now - self.shown_at < STOOD:
                return
            self.shown, self.shown_at = stage, now
            self.progress(with_those_behind(stage, self.watch) if still else stage)


def _give_up(hosts: Iterable[LiveHost]) -> None:
    for host in hosts:
        host.mute, host.trouble = True, host.trouble or "its agent stopped answering"
