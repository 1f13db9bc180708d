"""The rounds of a soak: who takes part in which, what is kept of them, and how it ends."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import doctor.exam.smoke_rounds as rehearsal
from doctor.api import Fact
from doctor.errors import UsageError
from doctor.exam.collect import Collection
from doctor.facts.nvidia.gpus import GPU_PACE
from doctor.facts.processes import KERNEL_LOG
from doctor.model import Capture, UnreachedHost, UnreachedKind
from doctor.probe import HostAnswer
from doctor.smoke.events import Alone
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.plan import SmokeWishes
from doctor.smoke.result import SmokePlan, SmokeResult
from doctor.smoke.soak import MOST, Soak
from tests.support.smoke.results import healthy
from tests.unit.exam.test_smoke_rounds import NAMES, Outcome, Stage, hangs, interrupted, well, without


def soak(
    monkeypatch: pytest.MonkeyPatch, outcomes: Sequence[Outcome | BaseException], seconds: float
) -> Stage:
    """The smoke run has passed before these rounds; the clock goes on by 5 s whenever it is asked."""
    stage = Stage([well, *outcomes])
    stage.rehearse(monkeypatch, accept=True)
    clock = SimpleNamespace(monotonic=partial(next, count(0, 5)), time=time.time)
    monkeypatch.setattr(rehearsal, "time", clock)
    rehearsal.run_soak(stage.collection, SmokeWishes(accept=True), seconds)
    return stage


def test_rounds_are_repeated_until_the_time_is_over_and_only_figures_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = soak(monkeypatch, [well] * 50, 60)
    kept = stage.collection.recording().soak
    assert kept is not None
    assert 3 <= kept.done == len(stage.ran) - 1 < 50
    assert len(stage.collection.smoke) == 1
    assert {*kept.rounds[0][1]["train"]} == {*NAMES}
    first, again = stage.ran[0][0], stage.ran[1][0]
    assert (again.turns, again.paths) == (2, ("/dev/shm",))
    assert again.sweep < first.sweep


def test_a_host_that_breaks_a_round_ends_there_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = soak(monkeypatch, [well, hangs("node3"), *[well] * 50], 100)
    kept = stage.collection.recording().soak
    assert kept is not None
    assert [(hosts, bool(why), open) for hosts, _, why, open in kept.left] == [(("node3",), True, False)]
    assert kept.lacking == 0
    assert stage.took_part[:4] == [without(), without(), without(), without("node3")]
    assert {*kept.rounds[-1][1]["train"]} == {*without("node3")}
    assert [run.end.kind for run in stage.collection.smoke] == ["done", "still", "done"]


def charged(*charges: SmokeCharge) -> Any:
    """The second round ends with these."""
    rounds = count(1)
    return lambda _: charges if next(rounds) == 2 else ()


def test_suspects_end_together_unless_somebody_else_is_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    either = SmokeCharge("smoke-hang", "x", "it broke", hosts=("node2", "node3"), undecided=True)
    certain = SmokeCharge("smoke-crash", "x", "it ended", hosts=("node3",))
    with monkeypatch.context() as context:
        context.setattr(rehearsal, "judge", charged(either))
        stage = soak(context, [well] * 50, 100)
    kept = stage.collection.soak
    assert kept is not None
    assert [(hosts, open) for hosts, _, _, open in kept.left] == [(("node2", "node3"), True)]
    assert stage.took_part[-1] == without("node2", "node3")
    monkeypatch.setattr(rehearsal, "judge", charged(either, certain))
    stage = soak(monkeypatch, [well] * 50, 100)
    kept = stage.collection.soak
    assert kept is not None
    assert [(hosts, open) for hosts, _, _, open in kept.left] == [(("node3",), False)]
    assert stage.took_part[-1] == without("node3")


def test_a_host_that_breaks_the_last_round_leaves_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = soak(monkeypatch, [hangs("node3"), well], 6)
    assert [run.end.kind for run in stage.collection.smoke] == ["done", "still", "done"]


def slow(plan: SmokePlan) -> SmokeResult:
    """A host that is stopped for half of its time: a fault of the pace."""
    result, host = healthy(plan), "node2"
    ranks = tuple(
        replace(
            seen,
            steps=tuple(
                msgspec.structs.replace(step, compute=0.3, cpu=0.05, queued=0.01)
                if seat.host == host
                else step
                for step in seen.steps
            ),
        )
        for seat, seen in zip(plan.seats, result.ranks, strict=True)
    )
    return replace(result, ranks=ranks)


def test_a_slow_host_stays_in(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = soak(monkeypatch, [slow] * 50, 60)
    assert {*stage.took_part} == {without()}
    assert len(stage.collection.smoke) == 1


def test_ctrl_c_keeps_the_rounds_before(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([well, well, well, KeyboardInterrupt()])
    stage.rehearse(monkeypatch, accept=True)
    with pytest.raises(KeyboardInterrupt):
        rehearsal.run_soak(stage.collection, SmokeWishes(accept=True), 1000)
    kept = stage.collection.recording().soak
    assert kept is not None
    assert (kept.done, len(stage.collection.smoke), kept.lacking) == (2, 1, 0)


def test_a_deadline_in_a_round_ends_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = soak(monkeypatch, [well, interrupted], 1000)
    assert stage.collection.soak is not None
    assert (stage.collection.soak.done, len(stage.collection.smoke)) == (1, 1)
    assert 900 < stage.collection.soak.lacking < 1000


def test_without_a_run_that_passed_there_is_no_round(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([interrupted])
    stage.rehearse(monkeypatch, accept=True)
    rehearsal.run_soak(stage.collection, SmokeWishes(accept=True), 1000)
    assert stage.collection.soak is not None
    assert (stage.collection.soak.done, len(stage.ran)) == (0, 1)


def test_hosts_that_do_not_fit_the_request_end_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = soak(monkeypatch, [well, hangs("node3"), UsageError("they do not fit")], 1000)
    assert [run.end.kind for run in stage.collection.smoke] == ["done", "still"]
    assert stage.collection.soak is not None
    assert (stage.collection.soak.done, len(stage.collection.soak.left)) == (1, 1)


def test_what_was_done_at_no_rate_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def idle(plan: SmokePlan) -> SmokeResult:
        result = healthy(plan)
        first, *others = result.ranks
        ranks = (replace(first, alone=(Alone(what="copy", rates=(0.0,)),)), *others)
        return replace(result, ranks=tuple(ranks))

    stage = soak(monkeypatch, [idle] * 50, 60)
    assert stage.collection.soak is not None
    figures = stage.collection.soak.rounds[0][1]
    assert (figures["copy"], {*figures["train"]}) == ({}, {*NAMES})


def gone(host: str) -> UnreachedHost:
    return UnreachedHost(host, UnreachedKind.TIMEOUT, "it does not answer", "")


def test_what_hosts_count_is_read_before_and_after_each_round_and_only_news_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = count()

    def ask(_: Collection, facts: Sequence[Fact[Any]], names: Sequence[str], *_more: object) -> Any:
        assert [fact.name for fact in facts] == ["counters", "kernel-log", "gpu-pace"]
        number = next(reading)
        for host in names:
            sick = host == "node3" and number == 2
            said = {
                "counters": f"{10 * number if host == 'node3' else 0} throttled\n7 net eth0 rx_dropped\n"
                + ("3 runs trainer\n" if sick else ""),
                "kernel-log": "uptime 100.0\n[ 50.0] old: link is down\n"
                + f"[ {99.5 if sick else 20}] nvme0: I/O error 12345 of 0xab\n",
            }
            captures = {fact: Capture(fact, 0, text) for fact, text in said.items()}
            told = HostAnswer(host, captures, {}, complete=True, started=0.0, ended=1.0)
            yield SimpleNamespace(host=host), told if host != "node4" else gone(host)

    monkeypatch.setattr(Collection, "ask", ask)
    stage = Stage([well] * 50)
    order = replace(stage.collection.order, facts=(KERNEL_LOG, GPU_PACE))
    stage.collection.order = order
    stage.rehearse(monkeypatch, accept=True)
    seconds = SimpleNamespace(monotonic=partial(next, count(0, 5)), time=partial(next, count(1000, 5)))
    monkeypatch.setattr(rehearsal, "time", seconds)
    rehearsal.run_soak(stage.collection, SmokeWishes(accept=True), 60)
    kept = stage.collection.soak
    assert kept is not None
    changed = [own for _, own in kept.readings]
    assert len(changed) == kept.done + 1 > 4
    assert changed[0]["net eth0 rx_dropped"] == {"node1": 7.0, "node2": 7.0, "node3": 7.0}
    assert changed[1] == {"throttled": {"node3": 10.0}}
    log = "kernel nvme0: I/O error # of #"
    assert changed[2] == {"throttled": {"node3": 20.0}, "runs trainer": {"node3": 3.0}, log: {"node3": 1.0}}
    assert changed[3] == {"throttled": {"node3": 30.0}, "runs trainer": {"node3": 0.0}}
    assert kept.latest[log] == {"node3": 1.0}


def test_readings_do_not_grow_and_a_counter_keeps_its_last_value() -> None:
    kept = Soak()
    for number in range(3 * MOST):
        kept = kept.with_reading(
            float(number), {"throttled": {"node1": float(number)}, "boot": {"node1": 5.0}}
        )
    assert (len(kept.readings) <= MOST + 1, kept.readings[0][0]) == (True, 0.0)
    assert kept.latest == {"throttled": {"node1": 3 * MOST - 1.0}, "boot": {"node1": 5.0}}
    assert sum("boot" in own for _, own in kept.readings) == 1
    assert {b[0] > a[0] for a, b in pairwise(kept.readings)} == {True}
