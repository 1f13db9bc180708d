"""From charges of a smoke run to findings: which host is named, what stays undecided, what explains what."""

import math
import random
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from doctor.api import PLAN, UNDECIDED, Confidence, Evidence, Place, Severity
from doctor.expect import Expect
from doctor.facts.baseline import COLLECTIVE_FLOORS, FLOOR, SINCE
from doctor.facts.smoke import SMOKE, SOAK, JudgedRun, SmokeRounds
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.judge.engine import Facts, Inputs, judge
from doctor.judge.findings import Views, fold_findings
from doctor.judge.playbook import load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.mesh.result import OmittedHost
from doctor.model import Finding, MissingFact, Problem, Result, Status
from doctor.rules.smoke import problem
from doctor.smoke import judge as judges
from doctor.smoke.events import TrainStep
from doctor.smoke.judge.charge import SmokeCharge
from doctor.smoke.result import RunEnd, SmokeResult
from tests.support.cases import cases, from_cases
from tests.support.recordings import heard, recording
from tests.support.smoke.results import changed, healthy, plan_of, with_host, with_rank, with_steps

CHECKS = {check.id: check for check in find_checks().checks}
SMOKE_CHECKS = [
    id
    for id, check in CHECKS.items()
    if SMOKE in check.needs and not {FLOOR, SINCE, COLLECTIVE_FLOORS, SOAK} & {*check.needs}
    if id not in ("smoke-network-unused", "smoke-gpudirect-off")
]
"""Those that judge by the charges of the run, without what it is compared with."""
FAULTS = from_cases(__file__, "FAULTS", tuple[str, ...])
WARNINGS = ("smoke-straggler", "smoke-contention", "smoke-slow-link")
NAMES = ["n1", "n2", "n3", "n4"]


def run(*charges: SmokeCharge, of: SmokeResult | None = None, **plan: Any) -> JudgedRun:
    return JudgedRun(of or healthy(plan_of(**{"hosts": 4, "each": 2, "tp": 2} | plan)), charges)


def charge(check: str, *ranks: int, **more: Any) -> SmokeCharge:
    return SmokeCharge(**{"check": check, "kind": "kind", "summary": "it went wrong", "ranks": ranks} | more)


def judged(*runs: JudgedRun, names: Iterable[str] = NAMES, **more: Any) -> list[Result]:
    """The results of the smoke checks for these runs."""
    names = list(names)
    plan = read_recording(recording(names)).plan
    case = Inputs(
        plan=plan,
        facts=Facts({name: heard(n, names) for n, name in enumerate(names, 1)}, more.get("known")),
        expect={},
        common=Expect(),
        givens={
            PLAN.name: plan,
            SMOKE.name: more.get("smoke") or SmokeRounds(runs, more.get("unheard", frozenset())),
        },
        severities={},
    )
    return judge([CHECKS[id] for id in SMOKE_CHECKS], case)


def of(results: Iterable[Result], check: str) -> list[tuple[str, str]]:
    """Hosts and status."""
    return [("".join(r.hosts), r.status.value) for r in results if r.check == check]


def told(results: Iterable[Result], *others: tuple[str, str, Status]) -> dict[str, Finding]:
    """The findings by check, together with those of other checks: id, host and status."""
    made = [
        Result(check, (host,), status, problem=Problem("ill", where=(Place(host=host),)))
        for check, host, status in others
    ]
    found = fold_findings([*results, *made], CHECKS, Views({}), load_remedies().fill)[0]
    return {finding.check: finding for finding in found}


def test_a_smoke_run_has_these_checks() -> None:
    assert sorted(SMOKE_CHECKS) == sorted((*FAULTS, *WARNINGS))
    assert {id for id in SMOKE_CHECKS if CHECKS[id].severity is Severity.WARN} == set(WARNINGS)


def test_every_judge_charges_by_one_of_these_checks() -> None:
    sources = [path.read_text() for path in Path(str(judges.__file__)).parent.glob("*.py")]
    named = {id for text in sources for id in re.findall(r'"(smoke-[a-z-]+)"', text)}
    assert named
    assert named <= set(SMOKE_CHECKS)


def test_a_healthy_run_passes_everything() -> None:
    assert {result.status for result in judged(run())} == {Status.PASS}


@pytest.mark.parametrize(
    ("paths", "file", "hosts"),
    [
        (["HOME=/opt/old"] * 4, "/opt/old/lib/python3.9/struct.py", [""]),
        (["HOME=/usr"] * 4, "/usr/lib/python3/struct.py", ["n1", "n2"]),
        (["/opt/mine"] * 4, "/opt/mine/torch/__init__.py", [""]),
        (["/opt/mine:/x"] * 4, "/opt/mine/random.py", [""]),
        (["/opt/mine"] * 3 + ["/opt/other"], "/opt/mine/random.py", ["n1", "n2"]),
        (["/opt/mine"] * 4, "/usr/lib/python3/torch/__init__.py", ["n1", "n2"]),
        (["/e/site-packages"] * 4, "/e/site-packages/torch/__init__.py", [""]),
        (["/usr/lib/python3"] * 4, "/usr/lib/python3/torch/__init__.py", ["n1", "n2"]),
        (["/opt/mine"] * 4, "", ["n2"]),
    ],
)
def test_a_module_that_every_login_puts_in_the_place_of_another(
    paths: list[str], file: str, hosts: list[str]
) -> None:
    """Runs are broken off by the first host that cannot import it; one that can shows that it is the host."""
    rounds = []
    for host in ("n1", "n2") if file else ("n2",):
        seen = (
            Evidence(
                "agent", f"cannot import torch: ImportError: no (PYTHONPATH gives {file or '/opt/mine/x'})"
            ),
        )
        said = "it could not start its ranks: /usr/bin/python cannot import torch"
        blamed = charge(
            "smoke-not-started",
            hosts=(host,),
            kind="host",
            summary=said,
            actual="/usr/bin/python no",
            evidence=seen,
        )
        result = healthy(plan_of(hosts=4, each=2, tp=2))
        for other in NAMES if file else ():
            result = with_host(result, other, version="")
        rounds.append(run(blamed, of=result))
    own = [{f"PYTHON{p.partition('=')[0] if '=' in p else 'PATH'}": p.partition("=")[2] or p} for p in paths]
    known = {(n, ENVIRONMENT.name): Environment(each) for n, each in zip(NAMES, own, strict=True)}
    found = [
        r for r in judged(*rounds, known=known) if r.check == "smoke-not-started" and r.status is Status.FAIL
    ]
    assert sorted("".join(each.hosts) for each in found) == hosts


@pytest.mark.parametrize(
    ("paths", "words", "hosts"),
    [
        (["/opt/site"] * 4, ["exit status 3): SystemExit: 3"] * 2, [""]),
        (["/opt/site"] * 3 + ["/opt/other"], ["exit status 3): SystemExit: 3"] * 2, ["n1", "n2"]),
        ([""] * 4, ["exit status 3): SystemExit: 3"] * 2, ["n1", "n2"]),
        (["/opt/site"] * 4, ["exit status 3): a", "exit status 3): b"], ["n1", "n2"]),
        (["/opt/site"] * 4, ["signal 9): Killed"] * 2, ["n1", "n2"]),
    ],
)
def test_an_interpreter_that_ends_at_its_start_on_every_host(
    paths: list[str], words: list[str], hosts: list[str]
) -> None:
    """What all are given alike is suspected, as a sitecustomize that it finds there; else the hosts are."""
    rounds = []
    for host, said in zip(("n1", "n2"), words, strict=True):
        ended = f"python3 ended early ({said}"
        seen = (Evidence("agent", ended),)
        summary = f"it could not start its ranks: {ended}"
        blamed = charge(
            "smoke-not-started", hosts=(host,), kind="host", summary=summary, actual=ended, evidence=seen
        )
        result = healthy(plan_of(hosts=4, each=2, tp=2))
        for other in NAMES:
            result = with_host(result, other, version="")
        rounds.append(run(blamed, of=result))
    known = {
        (n, ENVIRONMENT.name): Environment({"PYTHONPATH": each} if each else {})
        for n, each in zip(NAMES, paths, strict=True)
    }
    found = [
        r for r in judged(*rounds, known=known) if r.check == "smoke-not-started" and r.status is Status.FAIL
    ]
    assert sorted("".join(each.hosts) for each in found) == hosts
    assert all(each.problem and each.problem.subject for each in found if not each.hosts)


@pytest.mark.parametrize("check", FAULTS + WARNINGS)
def test_a_charge_names_its_rank(check: str) -> None:
    seen = (Evidence("page", "step 3"),)
    accused = charge(check, 5, expected="this", actual="that", evidence=seen)
    (result,) = [r for r in judged(run(accused, backend="nccl")) if r.check == check]
    assert result.hosts == ("n3",)
    assert result.status is (Status.WARN if check in WARNINGS else Status.FAIL)
    problem = result.problem
    assert problem is not None
    assert problem.subject == "rank 5 (device 1)"
    assert problem.where == (Place(host="n3", rank=5, device=1),)
    assert (problem.summary, problem.expected, problem.actual) == ("it went wrong", "this", "that")
    assert problem.evidence == seen
    assert problem.confidence is Confidence.CERTAIN
    (found,) = told([result]).values()
    assert found.remedy is not None
    assert any("n3" in command or "n[1-4]" in command for command in found.remedy.commands)
    assert not [command for command in found.remedy.commands if "{" in command]


SUBJECTS = {
    "one rank": (charge("smoke-hang", 5), "gloo", "rank 5"),
    "one device": (charge("smoke-hang", 4), "hccl", "rank 4 (device 0)"),
    "a whole host": (charge("smoke-hang", 4, 5), "hccl", "ranks 4-5 (devices 0, 1)"),
    "ranks of several hosts": (charge("smoke-hang", 1, 4, 5), "hccl", "ranks 1, 4-5"),
    "a host": (charge("smoke-hang", hosts=("n3",)), "gloo", None),
    "a link": (charge("smoke-hang", hosts=("n3",), peer="n1"), "gloo", "n3 <-> n1"),
    "nobody": (charge("smoke-hang"), "gloo", None),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_subject_names_ranks_and_devices(name: str) -> None:
    accused, backend, subject = SUBJECTS[name]
    (problem,) = [r.problem for r in judged(run(accused, backend=backend)) if r.problem]
    assert problem.subject == subject


def test_a_charge_without_culprit_shows_where_it_is_seen_and_blames_no_host() -> None:
    results = judged(run(charge("smoke-loss-stall"), charge("smoke-hang", victims=(0, 1, 2))))
    by_check = {r.check: r for r in results if r.problem}
    assert by_check["smoke-loss-stall"].hosts == by_check["smoke-hang"].hosts == ()
    places = {check: [p.host for p in r.problem.where] for check, r in by_check.items() if r.problem}
    assert places == {"smoke-loss-stall": NAMES, "smoke-hang": ["n1", "n2"]}


def test_suspects_are_called_so() -> None:
    accused = charge("smoke-desync", 0, 2, undecided=True)
    (problem,) = [r.problem for r in judged(run(accused)) if r.problem]
    assert problem.summary == f"it went wrong{UNDECIDED}"
    assert problem.confidence is Confidence.SUSPECT
    (again,) = [r.problem for r in judged(run(replace(accused, summary=problem.summary))) if r.problem]
    assert again.summary == problem.summary


def test_a_sure_fault_of_one_suspect_clears_the_other() -> None:
    results = judged(run(charge("smoke-corruption", 1, 2, undecided=True), backend="nccl"))
    assert told(results)["smoke-corruption"].hosts == ("n1", "n2")
    found = told(results, ("gpu-ecc", "n2", Status.FAIL))
    assert found["smoke-corruption"].hosts == ("n2",)
    assert found["smoke-corruption"].because == found["gpu-ecc"].id
    assert not found["smoke-corruption"].summary.endswith(UNDECIDED)


def test_commands_of_a_charge_override_the_remedy() -> None:
    found = told(judged(run(charge("smoke-crash", 5, commands=("dmesg | tail",)))))
    assert found["smoke-crash"].remedy is not None
    assert found["smoke-crash"].remedy.commands == ("dmesg | tail",)


@cases
def test_a_charge_may_override_the_severity_of_its_check(
    check: str, severity: Severity | None, status: str
) -> None:
    assert of(judged(run(charge(check, 5, severity=severity))), check) == [("n3", status)]


@cases
def test_a_fault_found_by_another_check_explains_the_charge(symptom: str, cause: str, status: str) -> None:
    for host, explains in (("n3", True), ("n2", False)):
        results = [r for r in judged(run(charge(symptom, 5))) if r.problem]
        found = told(results, (cause, host, Status(status)))
        assert (found[symptom].because == found[cause].id) is explains


def ended(
    phase: str, *, done: Iterable[int] = (), kind: Any = "still", left: dict[str, str] | None = None
) -> SmokeResult:
    """A run in which all ranks except some were in a phase when it ended."""
    result = healthy(plan_of(hosts=4, each=2, tp=2))
    for rank in range(8):
        if rank not in done:
            result = with_rank(result, rank, phase=phase, done=False)
    out = tuple(OmittedHost(host, why) for host, why in (left or {}).items())
    return replace(result, end=RunEnd(kind, 5.0), left_out=out)


GOT_TO = {
    "start": set(FAULTS + WARNINGS),
    "join": set(FAULTS + WARNINGS),
    "collectives": {*FAULTS, *WARNINGS} - {"smoke-not-started"},
    "train": {*FAULTS, *WARNINGS} - {"smoke-not-started", "smoke-collective-wrong"},
    "audit": {"smoke-hang", "smoke-crash", "smoke-mismatch", "smoke-corruption", "smoke-slow-link"},
    "bandwidth": {"smoke-hang", "smoke-crash", "smoke-mismatch", "smoke-slow-link"},
}


@pytest.mark.parametrize("phase", GOT_TO)
def test_what_a_run_that_ended_early_leaves_undecided(phase: str) -> None:
    results = judged(run(of=ended(phase)))
    unknown = {r.check for r in results if r.status is Status.UNKNOWN}
    assert unknown == GOT_TO[phase]
    assert {r.check for r in results if r.status is Status.PASS} == set(SMOKE_CHECKS) - unknown
    assert {r.reason for r in results if r.status is Status.UNKNOWN} == {
        f"the smoke run ended in the {phase} phase"
    }


@cases
def test_why_it_is_undecided(kind: str, phase: str, reason: str) -> None:
    results = judged(run(of=ended(phase, kind=kind)))
    assert {r.reason for r in results if r.check == "smoke-hang"} == {reason}


def test_who_is_named_is_decided_and_the_others_are_not() -> None:
    results = judged(run(charge("smoke-hang", 5), of=ended("train")))
    assert of(results, "smoke-hang") == [("n1n2n4", "unknown"), ("n3", "fail")]
    assert of(results, "smoke-desync") == [("n1n2n3n4", "unknown")], "faulty is not looked at"
    assert of(results, "smoke-not-started") == [("n1n2n3n4", "pass")]


def test_a_warning_decides_nothing_about_its_host() -> None:
    warned = charge("smoke-hang", 5, severity=Severity.WARN)
    results = judged(run(warned, of=ended("train", kind="interrupted")))
    assert of(results, "smoke-desync") == [("n1n2n3n4", "unknown")]


def without_n3(*charges: SmokeCharge) -> JudgedRun:
    plan = plan_of(hosts=3, each=2, tp=2)
    names = {"n1": "n1", "n2": "n2", "n3": "n4"}
    plan = replace(
        plan,
        hosts=("n1", "n2", "n4"),
        seats=tuple(replace(seat, host=names[seat.host]) for seat in plan.seats),
    )
    left = OmittedHost("n3", "an earlier smoke run named it")
    return JudgedRun(replace(healthy(plan), left_out=(left,)), charges)


def test_a_run_that_was_repeated_decides_for_the_others() -> None:
    results = judged(run(charge("smoke-hang", 5), of=ended("train")), without_n3())
    assert of(results, "smoke-hang") == [("n3", "fail")]
    assert of(results, "smoke-desync") == [("n3", "unknown"), ("n1n2n4", "pass")]
    assert {r.status for r in results if "n1" in r.hosts} == {Status.PASS}


def test_a_fault_seen_by_two_runs_is_reported_once_despite_new_rank_numbers() -> None:
    first, again = charge("smoke-straggler", 7), charge("smoke-straggler", 5, summary="still slow")
    results = judged(run(charge("smoke-hang", 5), first, of=ended("train")), without_n3(again))
    assert of(results, "smoke-straggler") == [("n3", "unknown"), ("n4", "warn")]
    (other,) = [r for r in judged(run(first), without_n3(charge("smoke-straggler", 4))) if r.problem][1:]
    assert other.problem is not None
    assert other.problem.where == (Place(host="n4", rank=4),)


def test_hosts_that_were_left_out_are_not_called_healthy() -> None:
    left = {"n4": "busy: another job runs there", "n9": "unexamined: no answer"}
    result = replace(without_n3().result, left_out=tuple(OmittedHost(*each) for each in left.items()))
    results = judged(JudgedRun(result, ()), unheard=frozenset({"n9"}))
    assert {r.status for r in results} == {Status.PASS}, "n4 took part"
    named = replace(result.left_out[0], host="n3")
    results = judged(JudgedRun(replace(result, left_out=(named, result.left_out[1])), ()), unheard={"n9"})
    assert of(results, "smoke-hang") == [("n3", "unknown"), ("n1n2n4", "pass")]
    assert next(r.reason for r in results if r.check == "smoke-hang") == (
        "left out of the smoke run: busy: another job runs there"
    )


def test_several_reasons_are_listed_with_their_hosts() -> None:
    result = replace(without_n3().result, end=RunEnd("still", 5.0))
    for rank in range(6):
        result = with_rank(result, rank, phase="train", done=False)
    (undecided, *_) = [r for r in judged(JudgedRun(result, ())) if r.check == "smoke-hang"]
    assert undecided.reason == (
        "left out of the smoke run: an earlier smoke run named it (n3); "
        "the smoke run ended in the train phase (n[1-2,4])"
    )


def test_one_sick_cell_leaves_only_its_own_hosts_undecided() -> None:
    plan = plan_of(hosts=4, each=2, cells=2)
    result = replace(healthy(plan), end=RunEnd("still", 5.0, cell=0))
    for rank in range(4):
        result = with_rank(result, rank, phase="train", done=False)
    results = judged(JudgedRun(result, ()))
    assert of(results, "smoke-desync") == [("n1n2", "unknown"), ("n3n4", "pass")]


@cases
def test_too_few_to_compare(shape: dict[str, Any], skipped: set[str]) -> None:
    names = NAMES[: shape["hosts"]]
    results = judged(run(**{"tp": 1, **shape}), names=names)
    assert {r.check for r in results if r.status is Status.SKIP} == skipped
    assert {r.status for r in results if r.check not in skipped} == {Status.PASS}


def test_an_undecided_check_names_what_it_needs() -> None:
    reasons = {r.check: r.reason for r in judged(run(each=1, tp=1, steps=5)) if r.reason}
    assert (
        reasons["smoke-loss-stall"]
        == "it takes at least 15 steps to decide, and the smoke run had 5 (--steps)"
    )
    reasons = {r.check: r.reason for r in judged(run(each=2, tp=1, cells=4)) if r.reason}
    assert reasons["smoke-slow-link"] == (
        "it compares 2 hosts or more that train together, and no cell has more than 1"
    )
    reasons = {r.check: r.reason for r in judged(run(hosts=1, each=4, tp=4), names=NAMES[:1]) if r.reason}
    assert reasons["smoke-desync"] == "it compares 2 replicas of the model or more, and there was 1"


@pytest.mark.parametrize(
    ("slower", "reason"),
    [(1, "transfers between the same two hosts differed too much"), (5, "n3 carried less than the others")],
)
@pytest.mark.parametrize("seed", range(4))
def test_a_network_too_noisy_to_compare_is_not_called_healthy(slower: int, reason: str, seed: int) -> None:
    """Who carries less all the same is told, and not accused; nobody is told by chance."""
    result = healthy(plan_of(hosts=6, each=1))
    for rank, seen in enumerate(result.ranks):
        pairs = []
        for p in seen.pairs:
            chance = random.Random(f"{seed} {sorted((rank, p.peer))} {p.stage}")
            slow = slower if 2 in (rank, p.peer) else 1
            pairs.append(changed(p, seconds=slow * math.exp(chance.gauss(0, 0.7))))
        result = with_rank(result, rank, pairs=tuple(pairs))
    results = judged(JudgedRun(result, ()), names=[*NAMES, "n5", "n6"])
    said = {r.check: r.reason for r in results if r.reason}
    assert {*said} == {"smoke-slow-link"}
    assert said["smoke-slow-link"].startswith(reason)
    assert {r.status for r in results if r.check != "smoke-slow-link"} == {Status.PASS}


def test_a_host_that_may_be_slow_is_not_called_healthy() -> None:
    """One of three hosts, whose transfers vary too much to name it."""
    result = healthy(plan_of(hosts=3, each=1))
    for rank, seen in enumerate(result.ranks):
        pairs = tuple(
            changed(p, seconds=(1.6 if 2 in (rank, p.peer) else 1.0) * (1.1 if p.stage == 1 else 1.0))
            for p in seen.pairs
        )
        result = with_rank(result, rank, pairs=pairs)
    reasons = {r.check: r.reason for r in judged(JudgedRun(result, ()), names=NAMES[:3]) if r.reason}
    assert reasons["smoke-slow-link"].startswith("n3 carried less than the others")


def test_a_rank_that_may_be_slow_is_not_called_healthy() -> None:
    result, chance = healthy(plan_of(hosts=4, each=1)), random.Random(7)

    def uneven(step: TrainStep) -> TrainStep:
        return msgspec.structs.replace(step, cpu=step.cpu * math.exp(chance.gauss(0, 0.6)))

    for rank in range(4):
        result = with_steps(result, rank, uneven)
    result = with_steps(result, 2, lambda step: changed(step, cpu=1.6 * step.cpu))
    reasons = {r.check: r.reason for r in judged(JudgedRun(result, ())) if r.reason}
    assert re.match(r"ranks? (\d, )*2 took longer than the others, but", reasons["smoke-straggler"])
    assert reasons["smoke-straggler"].endswith("to be sure")
    for number in range(1, 5):
        result = with_host(result, f"n{number}", load=18.2, cores=2)
    (busy,) = (r.reason for r in judged(JudgedRun(result, ())) if r.reason and r.check == "smoke-straggler")
    assert re.search(r"; n\S+ had a load of 18 on 2 cores when the run began$", busy)


def test_a_slow_rank_whose_processor_others_use_is_not_named() -> None:
    result = healthy(plan_of(hosts=4, each=1))
    for rank in range(4):
        result = with_steps(result, rank, lambda step: changed(step, queued=1.5 * step.cpu))
    result = with_steps(result, 2, lambda step: changed(step, cpu=1.4 * step.cpu, queued=1.4 * step.queued))
    (reason,) = (r.reason for r in judged(JudgedRun(result, ())) if r.reason and r.check == "smoke-straggler")
    assert reason == (
        "rank 2 took longer than the others, but the processors of n3 were also used by others: "
        "its ranks waited for one for up to 60 % of their time"
    )


def test_links_are_not_judged_over_what_is_slower_than_a_network() -> None:
    result = healthy(plan_of(hosts=4, each=1))
    result = replace(result, plan=replace(result.plan, backend="mccl", framework="mindspore"))
    (found,) = (r for r in judged(JudgedRun(result, ())) if r.check == "smoke-slow-link")
    assert found.status is Status.SKIP
    assert (found.reason or "").startswith("mccl itself carries less than a network, here ")


def test_a_larger_run_that_broke_off_does_not_vouch_for_a_smaller_one() -> None:
    """Bandwidth was measured only between two hosts, after the two others were left out."""
    left = tuple(OmittedHost(host, "an earlier smoke run named it") for host in ("n3", "n4"))
    small = replace(healthy(plan_of(hosts=2, each=2, tp=2)), left_out=left)
    first = run(charge("smoke-hang", 4, 5, 6, 7), of=ended("train"))
    results = judged(first, JudgedRun(small, ()))
    assert of(results, "smoke-slow-link") == [("n3n4", "unknown"), ("n1n2", "pass")]
    assert of(results, "smoke-straggler") == [("n3n4", "unknown"), ("n1n2", "pass")]


@pytest.mark.slow
@pytest.mark.parametrize("steps", range(1, 40))
def test_steps_that_are_enough_for_a_check_are_enough_for_its_judge(steps: int) -> None:
    """A check that passes must have judged: a fault is found at all lengths that are not skipped."""
    result = healthy(plan_of(hosts=4, each=1, steps=steps))
    slow = with_steps(result, 2, lambda s: changed(s, cpu=2 * s.cpu, compute=2 * s.compute))
    taken = with_steps(result, 2, lambda s: changed(s, compute=3 * s.compute))
    flat = result
    for rank in range(4):
        flat = with_steps(flat, rank, lambda s: changed(s, loss=4.0))
    for check, spoilt in (
        ("smoke-straggler", slow),
        ("smoke-contention", taken),
        ("smoke-loss-stall", flat),
    ):
        found = judged(JudgedRun(spoilt, judges.judge(spoilt)))
        status = {r.status for r in found if r.check == check}
        assert (Status.SKIP in status) != bool(status & {Status.FAIL, Status.WARN}), check


def test_a_charge_is_reported_even_with_too_few_to_compare() -> None:
    results = judged(run(charge("smoke-slow-link", hosts=("n2",)), hosts=2, each=1, tp=1), names=NAMES[:2])
    assert of(results, "smoke-slow-link") == [("n2", "warn")]


@pytest.mark.parametrize(("absent", "status"), [(True, Status.SKIP), (False, Status.UNKNOWN)])
def test_no_smoke_run(absent: bool, status: Status) -> None:
    missing = MissingFact("smoke", "no host passed the checks", absent)
    assert {r.status for r in judged(smoke=missing)} == {status}


def test_a_run_without_hosts_decides_nothing() -> None:
    assert {r.status for r in judged()} == {Status.UNKNOWN}


@cases
def test_a_wrapper_that_was_named_is_what_to_type(asked: str, typed: str) -> None:
    """The interpreter behind it lacks what the wrapper sets."""
    whole = healthy(plan_of(hosts=2, each=1, tp=1))
    seen = replace(whole, hosts=tuple(replace(host, asked=asked) for host in whole.hosts))
    assert problem(charge("smoke-hang", 0), seen).values["python"] == typed


@pytest.mark.parametrize("said", ["/tmp/run-me", "/tmp/$(id)/python3", "python3 -c x", "/usr/../tmp/python3"])
def test_what_a_host_calls_its_interpreter_is_typed_only_if_it_looks_like_one(said: str) -> None:
    whole = healthy(plan_of(hosts=2, each=1, tp=1))
    for path, typed in ((said, "python3"), ("/opt/conda/envs/a/bin/python3.11", None)):
        seen = replace(whole, hosts=tuple(replace(host, python=path) for host in whole.hosts))
        assert problem(charge("smoke-hang", 0), seen).values["python"] == (typed or path)
        assert problem(charge("smoke-hang"), seen).values["python"] == (typed or path)


def test_ranks_of_different_stages_are_not_compared() -> None:
    layout = {"pp": 2, "cp": 1, "ep": 1, "micro": 4}
    few = replace(plan_of(hosts=2, each=2), layout=layout)
    reasons = {r.check: r.reason for r in judged(JudgedRun(healthy(few), ()), names=NAMES[:2]) if r.reason}
    assert reasons["smoke-straggler"] == "it compares 4 ranks of one stage or more, and a stage has 2"
    enough = replace(plan_of(hosts=2, each=4), layout=layout)
    results = judged(JudgedRun(healthy(enough), ()), names=NAMES[:2])
    assert of(results, "smoke-straggler") == [("n1n2", "pass")]
