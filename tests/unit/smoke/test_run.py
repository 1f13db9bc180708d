"""A smoke run reaches its end whatever the agents do, and its result names the right culprit."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from doctor.mesh import MeshResult
from doctor.model import UnreachedHost, UnreachedKind
from doctor.smoke.agents import SmokeAgents
from doctor.smoke.judge import SmokeCharge, judge
from doctor.smoke.limits import SmokePatience
from doctor.smoke.plan import MOST_STEPS
from doctor.smoke.result import SmokePlan, SmokeResult
from doctor.smoke.run import SmokeRun
from doctor.smoke.watch import Watch
from doctor.stage import Stage
from doctor.transport import SessionEnd
from tests.support.cases import cases, from_cases
from tests.support.smoke.session import (
    BANDWIDTH,
    DONE,
    FIRST,
    QUICK,
    READY,
    SECOND,
    Cluster,
    Script,
    small,
)

pytestmark = pytest.mark.slow

ENDS = 30.0
"""Seconds within which even a starved run of some tenths of a second ends."""
LOST = UnreachedHost("node2", UnreachedKind.LOST, "The connection broke.", "", (), "")


class Meeting:
    """Counts how often the hosts were connected to each other."""

    def __init__(self, result: MeshResult | Exception | None = None) -> None:
        self.result = result
        self.times = 0

    def __call__(self) -> MeshResult | None:
        self.times += 1
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def prepared(cluster: Cluster, meet: Meeting | None = None, **changes: Any) -> SmokeRun:
    options: dict[str, Any] = {"pythons": {}, "env": {}, "patience": QUICK, "meet": meet or Meeting()}
    return SmokeRun(cluster, cluster.plan, **{"timeout": 5.0, **options, **changes})


def conducted(cluster: Cluster, meet: Meeting | None = None, **changes: Any) -> SmokeResult:
    run = prepared(cluster, meet, **changes)
    run.conduct()
    assert cluster.closed
    return run.result()


def when_looked_at(cluster: Cluster, do: Callable[[Cluster], None]) -> None:
    """Do this once the agents have been asked for a look."""

    def receive(cluster: Cluster) -> None:
        if any(what["do"] == "look" for _, what in cluster.told):
            do(cluster)

    cluster.on_receive = receive


def go_on(cluster: Cluster) -> None:
    """The ranks that halted go on."""
    cluster.script.halt = {}


def faults(result: SmokeResult) -> list[SmokeCharge]:
    return [charge for charge in judge(result) if charge.is_fault]


def named(result: SmokeResult) -> set[str]:
    return {host for charge in faults(result) for host in charge.culprit_hosts(result.plan)}


def test_a_healthy_course() -> None:
    told: list[Stage] = []
    meet = Meeting()
    cluster = Cluster(small())
    result = conducted(cluster, meet, progress=told.append)
    assert result.end.kind == "done"
    assert all(seen.done and seen.phase == "done" for seen in result.ranks)
    assert result.hiccups == ()
    assert meet.times == 0
    assert [host.peak_memory for host in result.hosts] == [1 << 20] * 2
    assert told[0] == Stage("smoke", "starting Python and torch on 0/2 hosts", of=2, part="import")
    assert told[0].waiting == ["node1", "node2"]
    for host in cluster.plan.hosts:
        words = [word for word in cluster.words(host) if word != "beat"]
        assert words == ["start", "join", "stop"]


def test_only_the_head_opens_the_store_and_all_get_its_address() -> None:
    cluster = Cluster(small(3))
    conducted(cluster)
    starts = {host: what for host, what in cluster.told if what["do"] == "start"}
    assert {host: what["store"] for host, what in starts.items()} == {
        "node1": True,
        "node2": False,
        "node3": False,
    }
    joins = [what for _, what in cluster.told if what["do"] == "join"]
    assert joins == [{"do": "join", "address": "192.0.2.1", "port": 40000}] * 3


def test_no_rank_joins_before_all_are_ready() -> None:
    cluster = Cluster(small(), halt={3: READY}, resume=0.1)
    conducted(cluster, patience=replace(QUICK, first=2.0))
    assert cluster.reached_at_join == [READY, READY]


@cases
def test_a_rank_that_halts_is_named(halt: dict[int, int], check: str, words: str) -> None:
    result = conducted(Cluster(small(), halt=halt))
    assert result.end.kind == "still"
    (charge,) = faults(result)
    assert (charge.check, charge.ranks) == (check, tuple(halt))
    assert words in charge.summary
    assert all(seen.stack == f"stack of {seen.rank}" for seen in result.ranks)


def test_a_stall_is_reported_soon_after_its_limit() -> None:
    cluster = Cluster(small(), halt={3: SECOND})
    stood: list[float] = []
    result = conducted(cluster, progress=lambda _: stood.append(time.monotonic()))
    assert result.end.limit is not None
    assert result.end.seconds - (stood[-2] - cluster.began) < result.end.limit + 1.0


def test_the_mesh_is_tried_once_while_ranks_hang() -> None:
    mesh = MeshResult("full", "node1", (), (), (), (), 0.1)
    meet = Meeting(mesh)
    result = conducted(Cluster(small(), halt={3: SECOND}), meet)
    assert meet.times == 1
    assert result.mesh is mesh


@pytest.mark.parametrize(
    ("plan", "script", "kind"),
    [
        (small(1), Script(halt={1: SECOND}), "still"),
        (small(), Script(halt={3: READY}), "still"),
        (small(), Script(exits={3: (SECOND, {"signal": 9})}), "exit"),
        (small(), Script(states={3: (FIRST, "T")}, halt={3: SECOND}), "stopped"),
        (small(), Script(ends={"node2": (SECOND, SessionEnd("node2", 1, b"killed"))}), "trouble"),
        (small(), Script(ends={"node2": (SECOND, SessionEnd("node2", None, b"", LOST))}), "lost"),
    ],
)
def test_the_mesh_is_not_tried_where_it_would_prove_nothing(
    plan: SmokePlan, script: Script, kind: str
) -> None:
    """With one host, with ranks that were not yet connected, and for stalls with another cause."""
    meet = Meeting()
    result = conducted(Cluster(plan, script), meet)
    assert result.end.kind == kind
    assert meet.times == 0


BROKEN = {"code": 3, "words": "RuntimeError: Connection closed by peer [192.0.2.2]:4000"}
OWN = {"code": 3, "words": "ValueError: no such thing"}


@pytest.mark.parametrize(("how", "times"), [(BROKEN, 1), (OWN, 0)])
def test_the_mesh_is_tried_when_only_connections_broke(how: dict[str, Any], times: int) -> None:
    meet = Meeting()
    assert conducted(Cluster(small(), exits={1: (SECOND, how)}), meet).end.kind == "exit"
    assert meet.times == times


def test_connections_that_broke_because_a_host_is_gone() -> None:
    """Its ranks' peers end first; the loss of the host is noticed while evidence is collected."""
    cluster = Cluster(small(3), exits={0: (SECOND, BROKEN), 1: (SECOND, BROKEN)})

    def lose(cluster: Cluster) -> None:
        if not cluster.agents["node2"].over:
            cluster.agents["node2"].over = True
            cluster.heard.append(SessionEnd("node2", None, b"", LOST))

    when_looked_at(cluster, lose)
    result = conducted(cluster)
    assert result.end.kind == "lost"
    assert named(result) == {"node2"}


@pytest.mark.parametrize("broken", [Meeting(OSError("no route")), Meeting(RuntimeError("bug"))])
def test_a_failed_mesh_loses_no_evidence(broken: Meeting) -> None:
    result = conducted(Cluster(small(), halt={3: SECOND}), broken)
    assert (result.end.kind, result.mesh, named(result)) == ("still", None, {"node2"})


def test_a_closed_terminal_does_not_end_the_run() -> None:
    def broken(_: str) -> None:
        raise BrokenPipeError

    assert conducted(Cluster(small()), progress=broken).end.kind == "done"


@pytest.mark.parametrize("after", [0.0, 0.05])
def test_an_interrupted_run_is_kept_and_ended(after: float) -> None:
    cluster = Cluster(small(), halt={3: SECOND})
    began = time.monotonic()

    def interrupt(cluster: Cluster) -> None:
        if time.monotonic() - began >= after:
            cluster.on_receive = lambda _: None
            raise KeyboardInterrupt

    cluster.on_receive = interrupt
    run = prepared(cluster)
    with pytest.raises(KeyboardInterrupt):
        run.conduct()
    assert cluster.closed
    assert all("stop" in cluster.words(host) for host in cluster.plan.hosts)
    result = run.result()
    assert result.end.kind == "interrupted"
    assert judge(result) == ()


def test_an_interrupt_while_evidence_is_taken_keeps_the_verdict() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    cluster = Cluster(small(), halt={3: SECOND})
    run = prepared(cluster, meet=interrupted)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        run.conduct()
    assert run.result().end.kind == "still"
    assert all("stop" in cluster.words(host) for host in cluster.plan.hosts)


@cases
def test_out_of_time(cut_short: bool, halt: dict[int, int], kind: str) -> None:
    """A run that was ended by the time limit of the whole examination was not too slow."""
    cluster = Cluster(small(), halt=halt)
    patient = replace(QUICK, first=9.0, floor=0.05 if halt else 9.0, gaps=1e9)
    if not halt:

        def back(cluster: Cluster) -> None:
            for rank, at in cluster.reached.items():
                cluster.reached[rank] = min(at, SECOND)

        cluster.on_receive = back
    changes: dict[str, Any] = {"patience": patient}
    if halt:  # nothing that is already known is awaited for so long
        cluster.script.halt = {3: READY}
    until = time.monotonic() + 0.25
    changes |= {"until": until} if cut_short else {"timeout": 0.25}
    result = conducted(cluster, **changes)
    assert result.end.kind == kind
    assert result.end.seconds < ENDS


@pytest.mark.parametrize("where", [SECOND, SECOND + 1])
def test_a_stall_that_ends_is_a_hiccup(where: int) -> None:
    """It stalled for the limit, and went on between two samples."""
    cluster = Cluster(small(1), halt={1: where})
    when_looked_at(cluster, go_on)
    result = conducted(cluster)
    assert result.end.kind == "done"
    assert len(result.hiccups) == 1
    assert result.hiccups[0].seconds >= QUICK.floor
    (charge,) = (charge for charge in judge(result) if charge.kind == "hiccup")
    assert not charge.is_fault


def test_a_short_stall_is_not_reported() -> None:
    cluster = Cluster(small(1), halt={1: SECOND})
    when_looked_at(cluster, go_on)
    result = conducted(cluster, patience=replace(QUICK, hiccup=5.0))
    assert (result.end.kind, result.hiccups) == ("done", ())


def test_a_rank_that_died_while_the_stall_was_confirmed() -> None:
    """The stall is then a consequence, not a pause that ended by itself."""
    cluster = Cluster(small(), halt={3: SECOND})

    def die(cluster: Cluster) -> None:
        cluster.script.exits = {3: (SECOND, {"signal": 9})}

    when_looked_at(cluster, die)
    result = conducted(cluster, patience=replace(QUICK, grace=0.3))
    assert (result.end.kind, result.hiccups) == ("exit", ())
    assert named(result) == {"node2"}


@pytest.mark.parametrize(("number", "since"), [(2, SECOND), (3, SECOND), (4, BANDWIDTH)])
def test_a_host_whose_connection_died_silently(number: int, since: int) -> None:
    """No line from it arrives any more, and the others hang in a collective: the run does not wait for its
    lease to run out, and no other host is blamed.
    """
    patient = replace(QUICK, silent=60.0)
    result = conducted(Cluster(small(number), mute={"node2": since}), patience=patient)
    assert result.end.kind == "trouble"
    assert result.host("node2").trouble == "its agent stopped answering"  # type: ignore[union-attr]
    assert result.end.seconds < ENDS
    (charge,) = faults(result)
    assert (charge.check, charge.hosts, charge.ranks) == ("smoke-crash", ("node2",), ())


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_silent_host_that_answers_a_request(goes_on: bool) -> None:
    """It is not lost: if a rank has stopped, that rank is what hangs."""
    cluster = Cluster(small(), halt={0: SECOND}, shy=frozenset({"node2"}))
    if goes_on:
        when_looked_at(cluster, go_on)
    result = conducted(cluster, patience=replace(QUICK, silent=60.0))
    assert result.end.kind == ("done" if goes_on else "still")
    assert named(result) == (set() if goes_on else {"node1"})


def test_a_host_falls_silent_while_the_others_go_on() -> None:
    cluster = Cluster(small(4, 8), mute={"node3": READY})
    result = conducted(cluster, patience=replace(QUICK, first=9.0))
    assert result.end.kind == "trouble"
    assert named(result) == {"node3"}


@pytest.mark.slow
def test_if_no_host_answers_our_own_connection_is_the_cause() -> None:
    cluster = Cluster(small(), mute={"node1": SECOND, "node2": SECOND})
    result = conducted(cluster)
    assert result.end.kind == "interrupted"
    assert not named(result)


def test_an_agent_that_reports_but_does_not_answer_a_request() -> None:
    cluster = Cluster(small(), halt={1: SECOND}, deaf=frozenset({"node2"}))
    result = conducted(cluster)
    assert (result.end.kind, named(result)) == ("trouble", {"node2"})


def test_agents_that_ended_because_they_were_left_alone() -> None:
    """This program was stopped for longer than their lease: no host is to blame."""
    cluster = Cluster(small(), halt={3: SECOND})
    slept: list[bool] = []

    def sleep(cluster: Cluster) -> None:
        if cluster.joined and not slept:
            slept.append(True)
            time.sleep(0.3)
            for host, agent in cluster.agents.items():
                agent.say("bye")
                agent.over = True
                cluster.heard.append(SessionEnd(host, 0, b""))

    cluster.on_receive = sleep
    result = conducted(cluster, patience=replace(QUICK, lease=0.3))
    assert result.end.kind == "interrupted"
    assert judge(result) == ()


@pytest.mark.parametrize("lost", [SessionEnd("node2", None, b"", LOST), None])
def test_ranks_that_ended_because_their_agents_were_left_alone(lost: SessionEnd | None) -> None:
    """Their exits are heard before the end of their agents."""
    cluster = Cluster(small(3))

    def sleep(cluster: Cluster) -> None:
        if cluster.joined and not cluster.gone:
            time.sleep(0.3)
            for rank in (0, 1, 2, 3):
                cluster.gone.add(rank)
                how = BROKEN if rank else {"signal": 9}
                cluster.agents[cluster.plan.seat(rank).host].say("exit", rank=rank, **how)
            if lost is not None:
                cluster.heard.append(lost)

    cluster.on_receive = sleep
    result = conducted(cluster, patience=replace(QUICK, lease=0.3))
    assert result.end.kind == "interrupted"
    assert judge(result) == ()


@pytest.mark.parametrize("kind", [UnreachedKind.CONTROLLER, UnreachedKind.DEADLINE])
def test_an_agent_that_this_machine_could_not_start_blames_no_host(kind: UnreachedKind) -> None:
    ended = SessionEnd("node2", None, b"", replace(LOST, kind=kind))
    result = conducted(Cluster(small(), ends={"node2": (-1, ended)}))
    assert result.end.kind == "interrupted"
    assert not named(result)


def test_a_pause_of_the_controller_blames_no_host() -> None:
    cluster = Cluster(small())
    slept: list[bool] = []

    def sleep(cluster: Cluster) -> None:
        if cluster.joined and not slept:
            slept.append(True)
            time.sleep(0.7)

    cluster.on_receive = sleep
    assert conducted(cluster).end.kind == "done"


@pytest.mark.parametrize("ended", [SessionEnd("node2", 1, b"Killed\n"), SessionEnd("node2", None, b"", LOST)])
@pytest.mark.parametrize("since", [-1, READY, SECOND])
def test_an_agent_that_ends_early(ended: SessionEnd, since: int) -> None:
    result = conducted(Cluster(small(), ends={"node2": (since, ended)}))
    assert result.end.kind == ("lost" if ended.unreached else "trouble")
    assert named(result) == {"node2"}


def test_an_agent_that_never_answers() -> None:
    unsaid = {"node2": frozenset({"ready", "imported", "spawned", "pages", "event"})}
    result = conducted(Cluster(small(), unsaid=unsaid), patience=replace(QUICK, imports=9.0))
    assert "did not answer within" in result.host("node2").trouble  # type: ignore[union-attr]
    assert named(result) == {"node2"}


def test_torch_that_is_never_imported() -> None:
    unsaid = {"node2": frozenset({"imported", "spawned"})}
    result = conducted(Cluster(small(), unsaid=unsaid))
    assert "torch was not imported" in result.host("node2").trouble  # type: ignore[union-attr]
    assert named(result) == {"node2"}


def test_ranks_that_are_never_started() -> None:
    """No rank exists, so the agent cannot report that no rank moves."""
    result = conducted(Cluster(small(), unsaid={"node2": frozenset({"spawned"})}))
    assert "its ranks were not started" in result.host("node2").trouble  # type: ignore[union-attr]
    assert named(result) == {"node2"}


def test_ranks_that_are_ready_wait_for_a_slow_import_elsewhere() -> None:
    """Their cell stalls, but no rank of it is late."""
    plan = small(4, 8)
    assert len(plan.cells) == 2
    cluster = Cluster(plan, unsaid={"node4": frozenset({"imported", "spawned"})})

    def imported(cluster: Cluster) -> None:
        if time.monotonic() - cluster.began >= 0.6 and "node4" in cluster.script.unsaid:
            cluster.script.unsaid = {}
            agent = cluster.agents["node4"]
            agent.say("imported", seconds=0.6, path="python3", torch="2.13.0")
            agent.say("spawned", pids={str(seat.rank): 100 for seat in plan.on("node4")})
            agent.started = True

    cluster.on_receive = imported
    result = conducted(cluster, patience=replace(QUICK, imports=5.0))
    assert (result.end.kind, named(result)) == ("done", set())


def test_a_store_that_never_opens() -> None:
    result = conducted(Cluster(small(), unsaid={"node1": frozenset({"store"})}))
    (charge,) = faults(result)
    assert (result.end.kind, charge.kind, charge.hosts) == ("still", "store", ("node1",))


def test_a_store_that_ends() -> None:
    text = b'{"say":"trouble","text":"the rendezvous store ended early: Killed"}'
    result = conducted(Cluster(small(), says={"node1": [text]}))
    assert (result.end.kind, named(result)) == ("trouble", {"node1"})


def test_a_rank_that_hangs_when_the_others_are_done() -> None:
    """Their host has no other rank that could move, so it does not count as a host that moves."""
    result = conducted(Cluster(small(), halt={3: DONE}))
    assert result.end.kind == "still"
    assert "node1" not in named(result)


def test_a_rank_that_leaves_early_with_status_zero() -> None:
    result = conducted(Cluster(small(), exits={3: (SECOND, {"code": 0})}))
    assert result.end.kind == "exit"
    (charge,) = faults(result)
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-crash", "left", (3,))


def test_an_agent_that_does_not_end_does_not_delay_the_run() -> None:
    cluster = Cluster(small(), stays=frozenset({"node2"}))
    began = time.monotonic()
    assert conducted(cluster).end.kind == "done"
    assert time.monotonic() - began < ENDS


def test_a_fault_in_one_cell_is_blamed_there_only() -> None:
    plan = small(4, 8)
    result = conducted(Cluster(plan, halt={17: SECOND}))
    assert (result.end.kind, result.end.cell) == ("still", 1)
    (charge,) = faults(result)
    assert charge.ranks == (17,)
    assert set(charge.victims) <= set(plan.cells[1])


def event(rank: int, **fields: Any) -> bytes:
    return json.dumps({"say": "event", "rank": rank, "event": fields}).encode()


HOSTILE = [line.encode() for line in from_cases(__file__, "HOSTILE", list[str])]


@pytest.mark.parametrize("line", [*HOSTILE, b"[" * 2000, b"\xff\xfe{}"])
def test_a_hostile_line_changes_nothing(line: bytes) -> None:
    result = conducted(Cluster(small(), says={"node2": [line]}))
    assert result.end.kind == "done"
    assert all(seen.exit and seen.exit.code == 0 and not seen.error for seen in result.ranks)
    assert result.ranks[0].pid == 100
    assert "not mine" not in result.ranks[0].stack
    assert msgspec.json.decode(msgspec.json.encode(result), type=SmokeResult) == result


def test_a_host_that_floods_is_named() -> None:
    result = conducted(Cluster(small(), says={"node2": [b"hello"] * 300}))
    assert (result.end.kind, named(result)) == ("trouble", {"node2"})


@pytest.mark.slow
def test_a_rank_s_events_are_bounded_in_number_and_size() -> None:
    many = [event(2, ev="pair", peer=1, round=0, bytes=1, seconds=0.1, rtt=0.1)] * 20_001
    result = conducted(Cluster(small(), says={"node2": many}), timeout=2.0)
    assert len(result.ranks[2].pairs) <= 20_000
    large = event(3, ev="start", versions={str(n): "x" * 10_000 for n in range(50)}, streams={}, golden=[])
    run = prepared(Cluster(small(), says={"node2": [large] * 100}), timeout=2.0)
    run.conduct()
    kept = sum(len(events) for events in run.watch.ranks[3].reports.values())
    assert 1 <= kept <= 40


def test_an_agent_that_always_reports_a_hang_does_not_prolong_the_run() -> None:
    """Its pages move although it reports that they do not: the hang is never confirmed, and the run still
    ends.
    """
    cluster = Cluster(small(1), halt={0: SECOND, 1: SECOND})

    def lie(cluster: Cluster) -> None:
        for rank in cluster.version:
            cluster.version[rank] += 2

    cluster.on_receive = lie
    result = conducted(cluster, timeout=0.8)
    assert result.end.kind == "deadline"
    assert result.end.seconds < ENDS


def test_events_after_the_end_cause_no_negative_times() -> None:
    cluster = Cluster(small(), halt={3: SECOND})

    def say_more() -> None:
        time.sleep(0.02)
        cluster.agents["node2"].event(3, {"ev": "phase", "phase": "audit"})

    run = prepared(cluster, meet=say_more)  # type: ignore[arg-type]
    run.conduct()
    assert all(seconds >= 0 for seen in run.result().ranks for seconds in seen.seconds.values())


def test_a_run_that_is_cut_short_may_end_by_itself_if_it_moves() -> None:
    run = prepared(Cluster(small()), timeout=99.0, until=time.monotonic() + 60)
    for host in run.watch.hosts.values():
        host.imported_at = run.began
    assert run._out_of_time() is None
    assert run.until == pytest.approx(run.began + 59.5, abs=0.1)
    for host in run.watch.hosts.values():
        host.quiet = 9.0
    again = run._out_of_time()
    assert again is not None
    assert again.kind == "interrupted"


def test_a_run_that_is_cut_short_while_it_stands_still_takes_evidence() -> None:
    run = prepared(Cluster(small()), timeout=99.0, until=time.monotonic() + 60)
    for host in run.watch.hosts.values():
        host.imported_at, host.quiet = run.began, 9.0
    alarm = run._out_of_time()
    assert alarm is not None
    assert alarm.kind == "deadline"


def test_the_limits_of_a_whole_run() -> None:
    cluster = Cluster(small())
    run = prepared(cluster, timeout=None, patience=None)
    assert run.until - run.began == pytest.approx(120.0)
    assert prepared(cluster, timeout=3600.0).until - time.monotonic() <= 3600.0
    assert prepared(cluster, until=run.began + 1).until == pytest.approx(run.began + 0.75, abs=0.1)
    assert prepared(cluster, timeout=99.0, until=run.began + 60).until == pytest.approx(run.began + 54)
    assert isinstance(run.patience, SmokePatience)


@cases
def test_a_host_that_floods_is_ended_and_named(line: str) -> None:
    cluster = Cluster(small(), says={"node2": [line.encode()] * 5000})
    result = conducted(cluster)
    assert result.end.kind == "trouble"
    assert [host.host for host in result.hosts if host.trouble] == ["node2"]
    assert "lines that are not answers" in result.hosts[1].trouble
    assert named(result) == {"node2"}
    assert "node2" in cluster.ended


@pytest.mark.slow
def test_the_longest_run_is_no_flood() -> None:
    """A rank sends three messages for each step: batch, loss and audit."""
    plan = replace(small(2, 8), steps=MOST_STEPS)
    agents = SmokeAgents(Cluster(small()), Watch(plan, QUICK, 0.0), 0.0)
    assert agents._most(agents.agents["node2"], 0.0) > 2 * 8 * MOST_STEPS * 3
