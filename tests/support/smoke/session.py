"""A simulated cluster of agents: their messages to a smoke run, and when they fall silent.

Ranks go on to the next milestone when all ranks of their cell have entered it, so that a rank that halts
holds up the others as a real one does. Time is counted as real agents count it: a test that gets no CPU time
accuses no rank.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from doctor.smoke.judge.deviation import entries_of
from doctor.smoke.limits import SmokePatience
from doctor.smoke.onhost.page import DTYPES, GROUPS, OPS, PHASES
from doctor.smoke.plan import SmokeWishes, plan_smoke
from doctor.smoke.result import SmokePlan
from doctor.transport import Line, SessionEnd
from tests.support.cases import from_cases
from tests.support.smoke.frozen import so_far
from tests.unit.smoke.test_plan import hosts, job

STEPS = 3
MILESTONES = from_cases(__file__, "MILESTONES", tuple[tuple[str, int], ...])
READY, JOIN, FIRST, SECOND, BANDWIDTH, DONE = 2, 3, 5, 6, 9, 10
TICK = 0.003
MOST = 0.02
QUICK = from_cases(__file__, "QUICK", SmokePatience)


def small(number: int = 2, ranks: int = 2, **wishes: Any) -> SmokePlan:
    seats = hosts(number, ranks)
    return plan_smoke(job(seats), list(seats), SmokeWishes(STEPS, **wishes))


@dataclass
class Script:
    """The faults of a run. Its milestones are those that are never entered."""

    halt: Mapping[int, int] = field(default_factory=dict)
    """Rank -> the milestone that it never enters."""
    resume: float | None = None
    """Seconds after which those that halted go on."""
    mute: Mapping[str, int] = field(default_factory=dict)
    """Host -> the milestone of its first rank from which on nothing of it arrives, nor reaches it."""
    exits: Mapping[int, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    states: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    ends: Mapping[str, tuple[int, SessionEnd]] = field(default_factory=dict)
    says: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    """Lines that were sent after the ranks were spawned."""
    unsaid: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Host -> the messages that its agent never sends."""
    deaf: frozenset[str] = frozenset()
    """Hosts that do not answer a look."""
    shy: frozenset[str] = frozenset()
    """Hosts that only show their pages on request."""
    stays: frozenset[str] = frozenset()
    """Hosts that ignore the request to end."""


class Cluster:
    """See `Session`."""

    def __init__(self, plan: SmokePlan, script: Script | None = None, **changes: Any) -> None:
        self.plan = plan
        self.script = script or Script(**changes)
        self.agents = {host: Agent(self, host) for host in plan.hosts}
        self.reached = {seat.rank: -1 for seat in plan.seats}
        self.version = {seat.rank: 0 for seat in plan.seats}
        self.gone: set[int] = set()
        self.joined = False
        self.reached_at_join: list[int] = []
        self.heard: deque[Line | SessionEnd] = deque()
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.closed = False
        self.ended: set[str] = set()
        self.polled = self.began = time.monotonic()
        self.on_receive: Callable[[Cluster], None] = lambda _: None

    def words(self, host: str) -> list[str]:
        return [what["do"] for name, what in self.told if name == host]

    def send(self, host: str, line: bytes) -> None:
        assert not self.closed
        what = json.loads(line)
        self.told.append((host, what))
        if not self.muted(host):
            self.agents[host].obey(what)

    def receive(self, timeout: float) -> Line | SessionEnd | None:
        self.on_receive(self)
        until = time.monotonic() + timeout
        while True:
            self.poll()
            if self.heard:
                return self.heard.popleft()
            if time.monotonic() >= until:
                return None
            time.sleep(0.001)

    def end(self, host: str) -> None:
        self.ended.add(host)

    def close(self) -> None:
        self.closed = True

    def poll(self) -> None:
        now = time.monotonic()
        if now - self.polled < TICK:
            return
        passed, self.polled = min(now - self.polled, MOST), now
        moved = {self.plan.seat(rank).host for rank in self.reached if self.advance(rank, now)}
        for agent in self.agents.values():
            agent.quiet = 0.0 if agent.host in moved else agent.quiet + passed
            agent.turn(passed)

    def advance(self, rank: int, now: float) -> bool:
        seat = self.plan.seat(rank)
        agent, at = self.agents[seat.host], self.reached[rank]
        halted = self.script.halt.get(rank, DONE + 1)
        if self.script.resume is not None and now - self.began >= self.script.resume:
            halted = DONE + 1
        exits = self.script.exits.get(rank, (DONE + 1, {}))[0]
        if not agent.started or rank in self.gone or at >= DONE or self.muted(seat.host):
            return False
        if at + 1 >= exits and at >= 0:
            self.gone.add(rank)
            agent.say("exit", rank=rank, **self.script.exits[rank][1])
            return False
        if at + 1 >= halted or (at + 1 > READY and not self.joined):
            return False
        if at >= JOIN and any(self.reached[other] < at for other in self.plan.cells[seat.cell]):
            return False
        self.reached[rank] += 1
        self.version[rank] += 2
        phase = MILESTONES[at + 1][0]
        if phase == "done":
            agent.event(rank, {"ev": "done"})
            agent.say("exit", rank=rank, code=0)
            self.gone.add(rank)
        elif at < 0 or MILESTONES[at][0] != phase:
            agent.event(rank, {"ev": "phase", "phase": phase})
        return True

    def muted(self, host: str) -> bool:
        first = self.plan.on(host)[0].rank
        return self.reached[first] + 1 >= self.script.mute.get(host, DONE + 2)

    def page(self, rank: int) -> tuple[int, ...]:
        """The page of a rank: inside the first collective of its milestone, unless it halts."""
        at, version = self.reached[rank], self.version[rank]
        if at < 0:
            return (0,) * 14
        phase, step = MILESTONES[at]
        seat = self.plan.seat(rank)
        entries = entries_of(self.plan.shape(seat.cell), seat.place)
        fitting = [entry for entry in entries if (entry.phase, entry.call.step) == (phase, step)]
        if phase == "bandwidth" and not fitting:  # among hosts only
            phase = "audit"
        if at > READY and not fitting:
            fitting = list(entries[-1:])
        if not fitting:
            return (version, 100 + rank, PHASES.index(phase), step, *(0,) * 10)
        entry = fitting[0]
        call = entry.call
        halts = self.script.halt.get(rank, 0) == at + 1 or phase == "done"
        names = (GROUPS.index(call.group), entry.seq, OPS.index(call.op), DTYPES.index(call.dtype))
        return (
            version,
            100 + rank,
            PHASES.index(phase),
            step,
            entry.position,
            *names,
            call.bytes,
            call.end + 1,
            call.tag,
            so_far(entries[: entry.position]),
            int(not halts),
        )


class Agent:
    """The agent of one host."""

    def __init__(self, cluster: Cluster, host: str) -> None:
        self.cluster = cluster
        self.host = host
        self.started = self.over = False
        self.quiet = self.waited = 0.0

    def obey(self, what: dict[str, Any]) -> None:
        script = self.cluster.script
        if self.over:
            return
        if what["do"] == "start":
            self.start(what)
        elif what["do"] == "join":
            self.cluster.joined = True
            self.cluster.reached_at_join.append(min(self.cluster.reached.values()))
        elif what["do"] == "look" and self.host not in script.deaf:
            self.show(what["id"])
        elif what["do"] == "stacks":
            mine = self.cluster.plan.on(self.host)
            self.say("stacks", stacks={str(seat.rank): f"stack of {seat.rank}" for seat in mine})
        elif what["do"] == "stop" and self.host not in script.stays:
            self.say("memory", peak=1 << 20)
            self.say("bye")
            self.cluster.heard.append(SessionEnd(self.host, 0, b""))
            self.over = True

    def start(self, what: dict[str, Any]) -> None:
        self.say("ready", python="3.11.2", cores=8, load=0.5)
        self.say("imported", path="/usr/bin/python3", torch="2.13.0")
        if what["store"]:
            self.say("store", port=40000)
        self.say("spawned", pids={str(each["rank"]): 100 + each["rank"] for each in what["ranks"]})
        for line in self.cluster.script.says.get(self.host, ()):
            self.cluster.heard.append(Line(self.host, line))
        self.started = "spawned" not in self.cluster.script.unsaid.get(self.host, ())

    def turn(self, passed: float) -> None:
        self.waited += passed
        end = self.cluster.script.ends.get(self.host)
        if end and not self.over and self.cluster.reached[self.cluster.plan.on(self.host)[0].rank] >= end[0]:
            self.over = True
            self.cluster.heard.append(end[1])
        if self.waited >= 0.01 and not self.over and self.host not in self.cluster.script.shy:
            self.waited = 0.0
            self.show(None)

    def show(self, number: int | None) -> None:
        cluster = self.cluster
        alive = [seat.rank for seat in cluster.plan.on(self.host) if seat.rank not in cluster.gone]
        if not alive or not self.started:
            self.quiet = 0.0  # no rank that could move is left
        rows = []
        for rank in alive if self.started else ():
            since, state = cluster.script.states.get(rank, (DONE + 1, "S"))
            rows.append(
                {
                    "rank": rank,
                    "page": cluster.page(rank),
                    "still": round(self.quiet, 3),
                    "state": state if cluster.reached[rank] >= since else "S",
                }
            )
        self.say("pages", id=number, gap=0.0, quiet=round(self.quiet, 3), ranks=rows)

    def event(self, rank: int, event: dict[str, Any]) -> None:
        self.say("event", rank=rank, event=event)

    def say(self, say: str, **words: Any) -> None:
        unsaid = self.cluster.script.unsaid.get(self.host, frozenset())
        if say not in unsaid and not self.over and not self.cluster.muted(self.host):
            line = json.dumps({"say": say, **words}).encode()
            self.cluster.heard.append(Line(self.host, line))
