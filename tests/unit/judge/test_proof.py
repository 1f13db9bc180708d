"""Exit code 0 is a proof: whatever happens to a run, every host that counts was seen to be healthy.

Recordings are drawn with every kind of damage, and judged with every kind of option. The assertions follow
from the recording and from single results, not from the verdict.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as replace_in

from doctor.api import HERE, PLAN, Check, Here, JobPlan, Problem, Scope, check
from doctor.errors import UsageError
from doctor.exam import examination
from doctor.exam.request import ExamFlags, Request
from doctor.judge.playbook import Exam
from doctor.judge.registry import BrokenSource, FoundChecks, find_checks
from doctor.judge.verdict import Report
from doctor.mesh.result import OmittedHost
from doctor.model import Capture, MissingFact, Result, Severity, Status, UnreachedHost, UnreachedKind
from doctor.probe import DAMAGED, HostAnswer
from doctor.recording import Recording
from doctor.smoke.result import SmokeResult
from tests.support.recordings import HEALTHY, heard, mesh, recording
from tests.support.reports import SMALL_SHM, seated
from tests.support.smoke.frozen import behind, frozen
from tests.support.smoke.results import healthy, with_end, with_rank
from tests.support.smoke.spoilt import masked

pytestmark = pytest.mark.slow
NAMES = ["node1", "node2", "node3"]
CHECKS = find_checks().checks
ALWAYS = ("host-unreachable", "probe-incomplete", "port-unreachable", "shm-small", "smoke-*")
TORCH = HEALTHY["python"] + "package torch 2.13.0\n"
Draw = Callable[..., Any]
FACTS = sorted(heard(1, NAMES).captures)
KINDS = ("accused", "behind", "undone", "interrupted", "deadline", "lost", "still")
"""The ways in which a smoke run can end without passing."""


@dataclass(frozen=True, slots=True)
class Case:
    """A recording, how it is judged, and how checks are broken."""

    of: Recording
    exam: Exam = field(default_factory=lambda: Exam("drawn", smoke=True))
    what: ExamFlags = field(default_factory=lambda: ExamFlags(exam="drawn"))
    breaks_on: str = ""
    """The host on which a check crashes; `*` if the check compares hosts."""
    unloaded: bool = False


@cache
def smoke_run(kind: str, names: tuple[str, ...]) -> SmokeResult:
    run = healthy(seated(names, each=2, tp=2))
    if kind == "accused":
        return masked(1, 3)(run)
    if kind == "behind":
        return frozen(run.plan, {0: behind("join")})
    if kind == "undone":
        return with_rank(run, 0, done=False, phase="audit")
    return run if kind == "well" else with_end(run, kind)


WELL = recording(
    NAMES,
    heard={name: heard(n, NAMES, python=TORCH) for n, name in enumerate(NAMES, 1)},
    smoke_wanted=True,
    smoke=(smoke_run("well", tuple(NAMES)),),
)
a_host = st.sampled_from(NAMES)
some_facts = st.sets(st.sampled_from(FACTS), min_size=1, max_size=4)


# Events of a run.


def answered(case: Case, draw: Draw, change: Callable[[HostAnswer, set[str]], HostAnswer]) -> Case:
    """The answer of a host, with some facts changed."""
    name = draw(st.sampled_from(sorted(case.of.heard) or [""]))
    if not name:
        return case
    made = change(case.of.heard[name], draw(some_facts))
    return replace(case, of=replace(case.of, heard={**case.of.heard, name: made}))


def without(answer: HostAnswer, facts: set[str], why: str, complete: bool) -> HostAnswer:
    rest = {fact: capture for fact, capture in answer.captures.items() if fact not in facts}
    missing = {**answer.missing, **{fact: MissingFact(fact, why) for fact in facts}}
    return replace(answer, captures=rest, missing=missing, complete=answer.complete and complete)


def cut(case: Case, draw: Draw) -> Case:
    return answered(
        case, draw, lambda answer, facts: without(answer, facts, "the connection was lost", False)
    )


def damaged(case: Case, draw: Draw) -> Case:
    return answered(case, draw, lambda answer, facts: without(answer, facts, DAMAGED, True))


def missing(case: Case, draw: Draw) -> Case:
    def change(answer: HostAnswer, facts: set[str]) -> HostAnswer:
        return without(answer, {*facts, "spaces"}, "its command did not end within 5 s", True)

    return answered(case, draw, change)


def garbled(case: Case, draw: Draw) -> Case:
    def change(answer: HostAnswer, facts: set[str]) -> HostAnswer:
        texts = {fact: draw(st.text(max_size=20)) for fact in facts & answer.captures.keys()}
        odd = {fact: replace(answer.captures[fact], stdout=text) for fact, text in texts.items()}
        return replace(answer, captures={**answer.captures, **odd})

    return answered(case, draw, change)


def small(case: Case, draw: Draw) -> Case:
    def change(answer: HostAnswer, _: set[str]) -> HostAnswer:
        return replace(answer, captures={**answer.captures, "spaces": Capture("spaces", 0, SMALL_SHM)})

    return answered(case, draw, change)


def gone(case: Case, name: str) -> Case:
    rest = {host: answer for host, answer in case.of.heard.items() if host != name}
    return replace(case, of=replace(case.of, heard=rest))


def unreached(case: Case, draw: Draw) -> Case:
    name = draw(a_host)
    why = UnreachedHost(name, UnreachedKind.REFUSED, "connection refused", "")
    case = gone(case, name)
    return replace(case, of=replace(case.of, unreached={**case.of.unreached, name: why}))


def unfinished(case: Case, draw: Draw) -> Case:
    name = draw(a_host)
    case = gone(case, name)
    return replace(case, of=replace(case.of, unfinished=(*case.of.unfinished, name)))


def apart(case: Case, draw: Draw) -> Case:
    pair = draw(st.permutations(NAMES))[:2]
    return replace(case, of=replace(case.of, mesh=mesh(NAMES, (pair[0], pair[1]))))


def no_mesh(case: Case, _: Draw) -> Case:
    return replace(case, of=replace(case.of, mesh=None, no_mesh="the deadline came before it"))


def nothing_tried(case: Case, draw: Draw) -> Case:
    """A mesh that tried nothing between some hosts and others, or nothing at all."""
    if case.of.mesh is None:  # already damaged
        return case
    names = draw(st.sets(a_host, min_size=1))
    way = draw(st.sampled_from((("source",), ("target",), ("source", "target"))))
    links = tuple(link for link in case.of.mesh.links if not any(getattr(link, end) in names for end in way))
    listeners = draw(st.sampled_from((case.of.mesh.listeners, ())))
    return replace(case, of=replace(case.of, mesh=replace(case.of.mesh, links=links, listeners=listeners)))


def stopped(case: Case, draw: Draw) -> Case:
    return replace(case, of=replace(case.of, stopped_by=draw(st.sampled_from((1, 2, 15)))))


def no_smoke(case: Case, draw: Draw) -> Case:
    why = draw(st.sampled_from(("", "the deadline came before it", "the exam drawn has none")))
    return replace(case, of=replace(case.of, smoke=(), no_smoke=why))


def bad_smoke(case: Case, draw: Draw) -> Case:
    run = smoke_run(draw(st.sampled_from(KINDS)), tuple(NAMES))
    return replace(case, of=replace(case.of, smoke=(run,)))


def repeated_smoke(case: Case, draw: Draw) -> Case:
    """A host is named, and is left out or not; the next run may pass or not."""
    first = smoke_run("accused", tuple(NAMES))
    rest = tuple(NAMES[draw(st.sampled_from((1, 1, 0))) :])
    second = smoke_run(draw(st.sampled_from(("well", *KINDS))), rest)
    thrown = tuple(OmittedHost(name, "an earlier run named it") for name in NAMES if name not in rest)
    return replace(case, of=replace(case.of, smoke=(first, replace(second, left_out=thrown))))


def smaller_smoke(case: Case, draw: Draw) -> Case:
    """One host did not take part."""
    names = draw(st.permutations(NAMES))
    run = smoke_run("well", tuple(sorted(names[1:])))
    left = (OmittedHost(names[0], "busy: device 0 is at work for another job"),)
    return replace(case, of=replace(case.of, smoke=(replace(run, left_out=left),)))


def check_breaks(case: Case, draw: Draw) -> Case:
    return replace(case, breaks_on=draw(st.sampled_from((*NAMES, "*"))))


def check_not_loaded(case: Case, _: Draw) -> Case:
    return replace(case, unloaded=True)


DAMAGES = {
    damage.__name__: damage
    for damage in (
        cut,
        damaged,
        missing,
        small,
        unreached,
        unfinished,
        apart,
        no_mesh,
        nothing_tried,
        stopped,
        no_smoke,
        bad_smoke,
        repeated_smoke,
        smaller_smoke,
        check_breaks,
        check_not_loaded,
    )
}
"""Any of these alone is a no-go for all hosts."""


# Options of the judgement.

GLOBS = ("nofile-low", "shm-*", "smoke-*", "smoke-mask-divergence", "probe-incomplete", "port-unreachable")


@st.composite
def asked(draw: st.DrawFn, case: Case) -> Case:
    """Judged with another exam, or with other flags."""
    glob = draw(st.sampled_from(GLOBS))
    exam, what = case.exam, case.what
    exams = (
        exam,
        replace_in(exam, smoke=False),
        replace_in(exam, checks=(glob,)),
        replace_in(exam, skip=(glob,)),
        replace_in(exam, essential=(glob,)),
        replace_in(
            exam, severity={"smoke-mask-divergence": Severity.WARN, "host-unreachable": Severity.WARN}
        ),
    )
    flags = (
        what,
        replace(what, only=(glob,)),
        replace(what, skip=(glob,)),
        replace(what, skip=("smoke-*",)),
        replace(what, strict=True),
    )
    need = draw(st.sampled_from((None, None, 1, 2)))
    exam, what = draw(st.sampled_from(exams)), draw(st.sampled_from(flags))
    return replace(case, exam=exam, what=replace(what, need_hosts=need))


def plug_ins(breaks_on: str) -> Iterator[Check]:
    @check("plug-in", HERE)
    def plug_in(here: Here) -> Iterator[Problem]:
        """A check that crashes on one host."""
        if here.name == breaks_on:
            raise ValueError(here.name)
        yield from ()

    @check("plug-ins", PLAN, scope=Scope.CLUSTER)
    def plug_ins(plan: JobPlan) -> Iterator[Problem]:
        """Checks that crash for all hosts."""
        if breaks_on == "*":
            raise ValueError(plan.names)
        yield from ()

    yield from (plug_in, plug_ins)


def judged(case: Case) -> Report | None:
    """The verdict of `doctor check --replay`; None if it is refused because no check is left."""
    broken = (BrokenSource("entry point x", "gone"),) if case.unloaded else ()
    found = FoundChecks((*CHECKS, *plug_ins(case.breaks_on)), broken)
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(UsageError):
        patch.setattr(examination, "load", lambda _: case.of)
        patch.setattr(examination, "find_checks", lambda _: found)
        patch.setattr(examination, "load_exam", lambda *_: case.exam)
        return examination.run_and_judge(Request("check", what=case.what, replay=Path("drawn")))[1]
    return None


def check_proof(case: Case, report: Report) -> None:
    """The claims of exit code 0 about every host, or about the hosts that --need-hosts admits to the job."""
    of, need = case.of, case.what.need_hosts
    counted = set(report.healthy_hosts if need else (host.name for host in of.hosts))
    assert len(counted) >= (need or len(of.hosts))
    assert of.stopped_by is None
    assert not case.unloaded
    for name in counted:
        assert name not in {*of.unreached, *of.unfinished}
        assert of.heard[name].complete
        assert all(missing.reason != DAMAGED for missing in of.heard[name].missing.values())
    assert {result.check for result in report.results} >= {"host-unreachable", "probe-incomplete"}
    if of.mesh and any(result.check == "port-unreachable" for result in report.results):
        tried = [link for link in of.mesh.links if link.tested]
        assert counted <= {link.source for link in tried} & {link.target for link in tried}
    essential = ("*",) if case.what.only else (*ALWAYS, *case.exam.essential)
    for result in report.results:
        if _concerns(result, counted):
            assert result.status not in (Status.FAIL, Status.CRASH)
            assert not case.what.strict or result.status is not Status.WARN
            if any(fnmatchcase(result.check, glob) for glob in essential):
                assert result.status is not Status.UNKNOWN
    if of.smoke_wanted:
        *before, last = of.smoke
        assert last == replace(smoke_run("well", last.plan.hosts), left_out=last.left_out)
        assert counted <= {*last.plan.hosts}
        for run in before:
            assert run.plan.hosts[0] not in counted


def _concerns(result: Result, counted: set[str]) -> bool:
    """If it names no host, it concerns the hosts on which it shows, or else all hosts."""
    places = [place.host for place in result.problem.where if place.host] if result.problem else []
    struck = {*(result.hosts or places)}
    return not struck or bool(struck & counted)


def test_nothing_is_wrong_with_what_is_damaged_here() -> None:
    report = judged(Case(WELL))
    assert report is not None
    assert (report.exit_code, report.healthy_hosts) == (0, tuple(NAMES))
    check_proof(Case(WELL), report)


def _check(data: st.DataObject, damage: str) -> None:
    case = DAMAGES[damage](Case(WELL), data.draw)
    report = judged(case)
    assert report is not None
    assert report.exit_code in (1, 3)
    others = st.lists(st.sampled_from((*DAMAGES.values(), garbled)), max_size=1)
    for other in data.draw(others):
        case = other(case, data.draw)
    case = data.draw(asked(case))
    report = judged(case)
    if report is not None and report.exit_code == 0:
        check_proof(case, report)


@pytest.mark.parametrize("damage", DAMAGES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_exit_code_0_is_proof(data: st.DataObject, damage: str) -> None:
    _check(data, damage)


@pytest.mark.long
@settings(max_examples=1000, deadline=None)
@given(data=st.data(), damage=st.sampled_from(list(DAMAGES)))
def test_exit_code_0_is_proof_in_many_more_cases(data: st.DataObject, damage: str) -> None:
    _check(data, damage)
