"""Which hosts take part in the smoke runs of an examination, and when the runs are repeated."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import doctor.exam.smoke_rounds as rehearsal
from doctor.api import HERE, Here, Problem, check
from doctor.exam.collect import Collection, Order
from doctor.job.wishes import JobWishes
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.mesh import MeshResult
from doctor.mesh.result import OmittedHost
from doctor.model import Backend, Host, SourcedValue, UnreachedHost, UnreachedKind
from doctor.smoke.onhost.schedule import schedule
from doctor.smoke.plan import SmokeWishes
from doctor.smoke.result import SmokePlan, SmokeResult
from tests.support.cases import cases, from_cases
from tests.support.recordings import heard, mesh, recording, report, syllabus
from tests.support.smoke.frozen import at, frozen, stuck
from tests.support.smoke.results import healthy, with_end

NAMES = ["node1", "node2", "node3", "node4"]
Outcome = Callable[[SmokePlan], SmokeResult]


def well(plan: SmokePlan) -> SmokeResult:
    return healthy(plan)


def hangs(host: str) -> Outcome:
    """Its first rank halts in training."""

    def outcome(plan: SmokePlan) -> SmokeResult:
        seat = plan.on(host)[0]
        entries = schedule(plan.shape(seat.cell), seat.place)
        return frozen(plan, {seat.rank: stuck(at(entries, "train", step=5))}, cell=seat.cell)

    return outcome


def interrupted(plan: SmokePlan) -> SmokeResult:
    return with_end(healthy(plan), "interrupted")


def without_culprit(plan: SmokePlan) -> SmokeResult:
    """All ranks wait inside one collective, and the sockets show nothing."""
    return frozen(plan, {}, blocked=lambda _, entry: entry.phase == "train" and entry.call.step == 5)


@dataclass
class Transport:
    """Opens sessions that are never used."""

    name: str = "ssh"
    warnings: Sequence[str] = ()
    opened: list[tuple[str, ...]] = field(default_factory=list)

    def open(self, scripts: dict[str, Any], until: float) -> object:  # noqa: ARG002
        self.opened.append(tuple(scripts))
        return object()

    def run(self, *_: object) -> Sequence[object]:
        """Nobody answers."""
        return ()


@dataclass
class Stage:
    """An examination that has reached its smoke run, and the results of its runs."""

    outcomes: list[Outcome | BaseException]
    left: float = math.inf
    names: Sequence[str] = tuple(NAMES)
    wishes: JobWishes = field(default_factory=lambda: JobWishes(ranks_per_host=SourcedValue(2, "test")))
    ran: list[tuple[SmokePlan, dict[str, Any]]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.transport = Transport()
        order = Order(
            command="preflight",
            exam="preflight",
            hosts=tuple(Host(name, f"10.0.0.{n}") for n, name in enumerate(self.names, 1)),
            wishes=self.wishes,
            facts=(),
            until=time.monotonic() + self.left,
            smoke=True,
        )
        transport: Any = self.transport
        self.collection = Collection(order, transport, lambda stage: self.said.append(stage.doing))
        self.collection.heard = {name: heard(n, self.names) for n, name in enumerate(self.names, 1)}

    def rehearse(
        self, monkeypatch: pytest.MonkeyPatch, before: Report | None = None, **wishes: Any
    ) -> Sequence[SmokeResult]:
        stage = self

        class Run:
            def __init__(self, _: object, plan: SmokePlan, **options: Any) -> None:
                self.plan = plan
                self.outcome = stage.outcomes[len(stage.ran)]
                stage.ran.append((plan, options))

            def conduct(self) -> None:
                if isinstance(self.outcome, BaseException):
                    raise self.outcome

            def result(self, left_out: Sequence[OmittedHost]) -> SmokeResult:
                outcome = self.outcome if callable(self.outcome) else interrupted
                return replace(outcome(self.plan), left_out=tuple(left_out))

        monkeypatch.setattr(rehearsal, "SmokeRun", Run)
        rehearsal.run_smoke(
            self.collection, SmokeWishes(**wishes), before or report(recording(list(self.names)))
        )
        return self.collection.smoke

    @property
    def took_part(self) -> list[tuple[str, ...]]:
        return [plan.hosts for plan, _ in self.ran]


def without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in NAMES if name not in names)


def test_a_healthy_cluster_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([well])
    (result,) = stage.rehearse(monkeypatch)
    assert stage.took_part == [without()]
    assert stage.transport.opened == [without()]
    assert result.left_out == ()
    assert stage.collection.no_smoke == ""
    assert stage.collection.recording().smoke == (result,)


def test_hosts_that_did_not_pass_are_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = UnreachedHost("node4", UnreachedKind.REFUSED, "connection refused on port 22", "", (), "")
    seen = recording(NAMES, unreached={"node4": lost}, heard={"node2": heard(2, NAMES, spaces=SMALL)})
    seen = replace(seen, heard={name: seen.heard[name] for name in NAMES[:3]})
    stage = Stage([well])
    stage.collection.heard = dict(seen.heard)
    (result,) = stage.rehearse(monkeypatch, report(seen))
    assert stage.took_part == [without("node2", "node4")]
    assert {left.host: left.reason.partition(":")[0] for left in result.left_out} == {
        "node2": "faulty",
        "node4": "unexamined",
    }
    assert all(not left.reason.endswith(": ") for left in result.left_out)


SMALL = from_cases(__file__, "SMALL", str)


@pytest.mark.parametrize(
    ("accept", "asked", "busy"), [(True, False, NAMES[1:2]), (True, True, ()), (False, False, ())]
)
def test_a_job_is_not_slowed_by_an_acceptance_test(
    monkeypatch: pytest.MonkeyPatch, accept: bool, asked: bool, busy: Sequence[str]
) -> None:
    stage = Stage([well])
    stage.collection.order = replace(stage.collection.order, also_busy=asked)
    sound = report(recording(list(NAMES)))
    seen = replace(sound.seen, running=("node2",))
    (result,) = stage.rehearse(monkeypatch, replace(sound, seen=seen), accept=accept)
    assert [left.host for left in result.left_out] == [*busy]
    assert stage.took_part == [without(*busy)]


def test_a_host_that_is_named_is_left_out_of_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([hangs("node3"), well])
    first, second = stage.rehearse(monkeypatch, inject=("stuck@4:5",))
    assert stage.took_part == [without(), without("node3")]
    assert first.left_out == ()
    assert second.left_out == (OmittedHost("node3", "an earlier smoke run named it"),)
    assert [len(plan.injected) for plan, _ in stage.ran] == [1, 0]
    assert "once more, without node3" in stage.said


def test_a_run_is_repeated_at_most_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([hangs("node1"), hangs("node2"), hangs("node3"), well])
    results = stage.rehearse(monkeypatch)
    assert stage.took_part == [without(), without("node1"), without("node1", "node2")]
    assert [left.host for left in results[-1].left_out] == ["node1", "node2"]
    assert [said for said in stage.said if "once more" in said] == [
        "once more, without node1",
        "once more, without node2",
    ]
    assert stage.ran[1][0].head == "node2"


@pytest.mark.parametrize("outcome", [without_culprit, interrupted, well])
def test_a_run_is_not_repeated_when_no_host_is_named(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    stage = Stage([outcome])
    assert len(stage.rehearse(monkeypatch)) == 1


def test_a_run_is_not_repeated_when_no_host_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([hangs("node1")], names=("node1",))
    assert len(stage.rehearse(monkeypatch)) == 1
    assert stage.collection.read().runs[-1].named == ("node1",)


def test_a_run_is_not_repeated_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([hangs("node3"), well], left=60.0)

    def over(plan: SmokePlan) -> SmokeResult:
        order = stage.collection.order
        stage.collection.order = replace(order, until=order.until - 60.0)
        return hangs("node3")(plan)

    stage.outcomes[0] = over
    assert len(stage.rehearse(monkeypatch)) == 1
    assert stage.ran[0][1]["until"] != float("inf")


def test_a_run_is_not_started_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([well], left=0.0)
    assert stage.rehearse(monkeypatch) == []
    assert stage.collection.no_smoke == "the deadline came before it"


def test_an_interrupted_run_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        stage.rehearse(monkeypatch)
    (result,) = stage.collection.smoke
    assert result.end.kind == "interrupted"


def test_a_repeat_that_is_interrupted_keeps_both(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage([hangs("node3"), KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        stage.rehearse(monkeypatch)
    assert [run.end.kind for run in stage.collection.smoke] == ["still", "interrupted"]


def all_apart() -> MeshResult:
    pairs = [(source, target) for source in NAMES for target in NAMES if source != target]
    return mesh(NAMES, *pairs)


def small() -> Report:
    return report(
        recording(NAMES, heard={n: heard(at, NAMES, spaces=SMALL) for at, n in enumerate(NAMES, 1)})
    )


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (lambda: report(recording(NAMES, mesh=all_apart())), "do not reach each other"),
        (small, "no host passed the checks"),
        (lambda: report(recording(NAMES), stopped_by=2), "the run was interrupted before it"),
    ],
)
def test_no_run(monkeypatch: pytest.MonkeyPatch, before: Callable[[], Report], why: str) -> None:
    stage = Stage([well])
    stage.rehearse(monkeypatch, before())
    assert stage.ran == []
    assert why in stage.collection.no_smoke


def test_a_check_that_broke_keeps_nobody_from_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a check that could not be loaded: the verdict counts them, but they do not concern hosts."""

    @check("plug-in", HERE)
    def plug_in(here: Here) -> Iterator[Problem]:
        """Crashes on every host."""
        raise ValueError(here.name)

    exam = syllabus([*find_checks().checks, plug_in], unloaded=("entry point x: gone",))
    wanted = recording(NAMES, smoke_wanted=True)
    reading = read_recording(wanted)
    assert build_report(reading, exam, load_remedies()).healthy_hosts == ()
    stage = Stage([well])
    stage.rehearse(monkeypatch, build_report(reading, exam.before_smoke(), load_remedies()))
    assert stage.took_part == [without()]


def test_ranks_get_only_variables_that_concern_them(monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"GLOO_SOCKET_IFNAME": "eth0", "HF_TOKEN": "x", "LD_LIBRARY_PATH": "/opt", "MY_GLOO_X": "1"}
    stage = Stage([well], wishes=JobWishes(env=env, ranks_per_host=SourcedValue(2, "test")))
    stage.rehearse(monkeypatch)
    assert stage.ran[0][1]["env"] == {"GLOO_SOCKET_IFNAME": "eth0", "LD_LIBRARY_PATH": "/opt"}


def test_an_interface_that_only_the_hosts_know_is_that_of_the_data_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The interface that gloo would choose by itself is not the one that this launch sets."""
    env = {"GLOO_SOCKET_IFNAME": "$GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME": "eth"}
    stage = Stage([well], wishes=JobWishes(env=env, ranks_per_host=SourcedValue(2, "test")))
    stage.rehearse(monkeypatch)
    assert stage.ran[0][1]["env"] == {"NCCL_SOCKET_IFNAME": "eth"}
    assert stage.ran[0][1]["own_env"] == {name: {"GLOO_SOCKET_IFNAME": "eth0"} for name in NAMES}


@cases
def test_ranks_share_gpus_where_each_gpu_gets_as_many(
    monkeypatch: pytest.MonkeyPatch, gpus: int, ranks: int, expected: list[int]
) -> None:
    wishes = JobWishes(
        backend=SourcedValue(Backend.NCCL, "test"), ranks_per_host=SourcedValue(ranks, "--ranks-per-host")
    )
    stage = Stage([well], names=("node1",), wishes=wishes)
    files = {f"/dev/nvidia{number}": "" for number in range(gpus)}
    stage.collection.heard = {"node1": heard(1, ["node1"], devices=files)}
    stage.rehearse(monkeypatch, report(recording(["node1"])))
    ((plan, _),) = stage.ran
    assert [seat.device for seat in plan.seats] == expected
