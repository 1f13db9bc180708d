"""One examination from the command line to the exit code: targets, transport, recording, report, files."""

import contextlib
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from doctor.api import Check, Fact
from doctor.baseline import read_baseline
from doctor.errors import UsageError
from doctor.exam.choose_transport import choose_transport
from doctor.exam.collect import Collection, Order
from doctor.exam.flags import apply_flags, pairs
from doctor.exam.policy import refuse_skipped, with_waivers
from doctor.exam.progress import progress_line
from doctor.exam.request import ExamFlags, JobFlags, Request
from doctor.exam.signals import signal_of, stop_on_signals
from doctor.exam.slurm_job import of_slurm
from doctor.exam.way import as_recorded, way_of
from doctor.expect import Expect, amend
from doctor.facts.baseline import COLLECTIVE_FLOORS, FLOOR, SINCE
from doctor.facts.run import MESH, OFFERED
from doctor.facts.smoke import SMOKE, SOAK
from doctor.facts.software import ENVIRONMENT
from doctor.job.launch.process_env import Launch
from doctor.judge.examine import PreparedExam, build_report, facts_of
from doctor.judge.fact_values import ASKED
from doctor.judge.playbook import (
    Exam,
    MeshMode,
    Playbook,
    exams,
    is_always_made,
    load_exam,
    load_remedies,
    matches,
    meets,
    select,
    widened,
)
from doctor.judge.reading import Reading, read_recording
from doctor.judge.registry import checks_in, find_checks
from doctor.judge.selection import CheckSelection
from doctor.judge.verdict import Report, Rules, essential_ids, refuse_without_essentials
from doctor.model import Host
from doctor.recording import Counted, Recording, load, with_earlier
from doctor.report.out.outputs import deliver, refuse_unwritable
from doctor.smoke.plan import STEPS, SmokeWishes, check_wishes, refuse_plan
from doctor.targets.allocation import NAME_THEM
from doctor.targets.inventory import COMMAND_LINE, LOCAL, Targets, local_if_alone, read_targets
from doctor.text.announce import announce
from doctor.text.interpreter import to_type
from doctor.text.option import IN_JOB, options
from doctor.transport.containers import enter_all
from doctor.transport.way import Way

DEFAULT_EXAM = "preflight"
ACCEPT = "accept"
TRAINING = ("smoke", "preflight", ACCEPT)
"""The commands that include a smoke run."""
UNJUDGED = "facts"
"""The command that only shows what hosts report and judges nothing, so that it never misses a training."""
SYSTEM = ("/usr", "/usr/local")
OF_ALL = ("/tmp/", "/var/tmp/", "/dev/shm/")
"""Folders in which other users of a host could have put a program of that name."""


def run_and_report(request: Request) -> int:
    """Run the examination and show it; the exit code is the report's, unless it runs in the shadow."""
    refuse_unwritable(request.outputs, {"--save": request.save}, request.inputs())
    reading, report = run_and_judge(request)
    return deliver(report, reading, request.outputs, request.save)


def run_and_judge(
    request: Request,
    more: Sequence[Fact[Any]] = (),
    told: Launch | None = None,
    earlier: Counted = MappingProxyType({}),
) -> tuple[Reading, Report]:
    """`more` are facts that no check asks for; `told` is the launch to use if the user names none;
    `earlier`: what an earlier run had counted.
    """
    if request.replay:
        recorded = load(request.replay)
        return judge_again(as_recorded(request, recorded), recorded)
    playbook = load_remedies()
    syllabus = _syllabus(request, None)
    reading = _collect(request, syllabus, playbook, more, told, earlier)
    return reading, build_report(reading, syllabus, playbook, replayed=False)


def judge_again(request: Request, recorded: Recording) -> tuple[Reading, Report]:
    if request.command == UNJUDGED:
        recorded = replace(recorded, smoke_wanted=False)
    expect = {**recorded.expect, **pairs(request.what.expect)}
    if given := request.what.baseline:
        baseline, way = read_baseline(given), _compared_with(given, recorded.way)
        heard = with_earlier(recorded.heard, baseline.counted)
        recorded = replace(recorded, baseline=baseline, way=way, heard=heard)
    recorded = replace(recorded, floor=request.floor or recorded.floor)
    what, wishes = request.what, recorded.wishes
    if what.waivers or what.no_waivers:  # else those of the recorded run
        wishes = with_waivers(what, replace(wishes, waivers=()))
    reading = read_recording(replace(recorded, expect=expect, wishes=wishes))
    return reading, build_report(reading, _syllabus(request, recorded), load_remedies(), replayed=True)


def _compared_with(baseline: Path, way: Way | None) -> Way | None:
    """The way, for commands that compare with the same baseline again."""
    if way is None:
        return None
    others = (option for option in way.asked if option[0] != "--baseline")
    return replace(way, asked=(*others, ("--baseline", os.path.abspath(baseline))))


def _syllabus(request: Request, recorded: Recording | None) -> PreparedExam:
    what = request.what
    if request.command == UNJUDGED:
        return _of_answers(what)
    own = request.command if request.command in exams() else DEFAULT_EXAM
    name = what.exam or (recorded.exam if recorded else own)
    if recorded and not what.exam and name not in exams():
        raise UsageError(f"It was recorded with the exam {name!r}.", "Name it again with --exam.")
    found = find_checks(what.checks)
    ids = [check.id for check in found.checks]
    refuse_without_essentials(ids)
    exam = load_exam(name, found.checks)
    if exam.alone:
        _refuse_a_job(request, name)
    shape = what.mesh or (recorded.mesh_mode if recorded else exam.mesh)
    training = request.command in TRAINING
    wanted = recorded.smoke_wanted if recorded else training and not request.smoke.refused
    only, taken = widened("--only", what.only, ids)
    skip, dropped = widened("--skip", what.skip, ids)
    accepts = (recorded.command if recorded else request.command) == ACCEPT
    compared = what.baseline or (recorded and recorded.baseline)
    floor = request.floor or (recorded and recorded.floor)
    lacking = [*(() if compared else (SINCE,)), *(() if accepts else (FLOOR,))]
    lacking += [] if accepts and floor and floor.collectives else [COLLECTIVE_FLOORS]
    lacking += [] if request.soak or (recorded and recorded.soak) else [SOAK]
    checks, left_out = select(
        found.checks, exam, only, skip, mesh=shape != "none", smoke=wanted, lacking=lacking
    )
    if recorded is None:
        refused, meshless = request.smoke.refused, what.mesh == "none"
        lost = {c.id for c in found.checks if (refused and SMOKE in c.needs) or (meshless and meets(c))}
        lost.intersection_update(() if what.only else left_out)  # a command never makes all checks
        refuse_skipped([id for id in ids if matches(id, skip) or id in lost], ids)
    judges = {check.id for check in found.checks if FLOOR in check.wanted}
    there = {check.id for check in checks}.union(() if request.floor else left_out)
    if (request.floor or request.command == ACCEPT) and judges.isdisjoint(there):
        raise UsageError(
            "No check of this run judges links by a floor or by their peers.",
            "accept-slow-link does, in runs of doctor accept and in exams that have it.",
        )
    unused = what.baseline and not any(SINCE in check.wanted for check in checks)
    choices = tuple(_choices(request, found.checks, checks)) if request.typed & {"--only", "--skip"} else ()
    trains = recorded.command in TRAINING if recorded else training
    if not (exam.smoke and trains):  # this command never runs them, so nobody left them out
        left_out = tuple(id for id in left_out if not id.startswith("smoke-"))
    no_smoke = _why_no_smoke(exam, name, checks) if wanted else ""
    if request.command == "smoke" and recorded is None and no_smoke:
        raise UsageError("None of these checks needs a smoke run.", "doctor check examines without one.")
    trained = wanted and (not no_smoke or bool(recorded and recorded.smoke))
    expected = {**({"torch": "any"} if trained else {}), **exam.expect}
    return PreparedExam(
        name=name,
        exam=exam,
        checks=checks,
        left_out=() if what.only else left_out,  # whoever names some checks knows that the rest is left out
        expect=amend(Expect(), {key: str(value) for key, value in expected.items()}, f"exam {name}"),
        rules=Rules(
            _essential(request, exam, [check.id for check in checks]),
            what.strict,
            what.need_hosts,
            tuple(
                f"{broken.origin}: its checks could not be loaded: {broken.reason}" for broken in found.broken
            ),
        ),
        notes=(*taken, *dropped, *(["no check of this run compares with the baseline"] if unused else ())),
        smoke=wanted,
        no_smoke=no_smoke,
        choices=choices,
    )


def _of_answers(what: ExamFlags) -> PreparedExam:
    """Only whether the hosts answered, so no other check is loaded."""
    checks = tuple(check for check in checks_in("reach.py") if is_always_made(check))
    rules = Rules(frozenset(check.id for check in checks), what.strict, what.need_hosts)
    return PreparedExam("host", Exam("Answers"), checks, (), Expect(), rules)


def _refuse_a_job(request: Request, exam: str) -> None:
    """Hosts that are examined for whatever job may come are not examined for a certain one."""
    named = [known.name for known, _ in options(JobFlags) if known.name in request.typed]
    if request.in_job:
        named.append(IN_JOB)
    if request.command in TRAINING or named:
        what = f"doctor {request.command}" if request.command in TRAINING else named[0]
        raise UsageError(
            f"--exam {exam} examines hosts for no job in particular, and {what} is about one.",
            f"A node: doctor check --exam {exam}. A job: doctor preflight.",
        )


def _choices(request: Request, known: Sequence[Check], made: Sequence[Check]) -> Iterator[CheckSelection]:
    """What each value of --only stands for; without --only, all that --skip leaves."""
    what, chosen = request.what, [check for check in made if not is_always_made(check)]
    if not what.only:
        yield CheckSelection("what --skip leaves", tuple(check.id for check in chosen))
    for named in what.only:
        globs, _ = widened("--only", [named], [check.id for check in known])
        own = [check for check in known if matches(check.id, globs)]
        trained = all(SMOKE in check.needs for check in own)
        why = "it needs a training: `doctor smoke` makes one" if trained else "the other options leave it out"
        yield CheckSelection(named, tuple(check.id for check in own if check in made), why)


def _essential(request: Request, exam: Exam, ids: Sequence[str]) -> frozenset[str]:
    """The ids that must be decided: all that the user names, or those that the command itself names."""
    if request.essential:
        return frozenset(id for id in ids if matches(id, request.essential))
    return essential_ids(ids, ("*",) if request.what.only else exam.essential)


def _why_no_smoke(exam: Exam, name: str, checks: Sequence[Check]) -> str:
    """Why a wanted smoke run cannot be made; empty if it can."""
    if not exam.smoke:
        return f"the exam {name} has no smoke run: `smoke: true` in it adds one; --no-smoke does without"
    if not any(SMOKE in check.needs for check in checks):
        return "none of its checks is left; --no-smoke does without"
    return ""


def _collect(
    request: Request,
    syllabus: PreparedExam,
    playbook: Playbook,
    more: Sequence[Fact[Any]],
    told: Launch | None,
    earlier: Counted,
) -> Reading:
    """Ask the hosts; after an interruption, return what is known so far."""
    way, what = request.way, request.what
    until = math.inf if way.deadline is None else time.monotonic() + way.deadline
    smoke, steps = request.smoke, STEPS if request.smoke.steps is None else request.smoke.steps
    training = SmokeWishes(
        *(steps, smoke.tp, smoke.timeout, smoke.inject),
        *(request.command == ACCEPT, request.paths, request.hosts_at_once),
    )
    check_wishes(training)
    baseline = read_baseline(what.baseline) if what.baseline else None
    of_table = ASKED if baseline else ()
    request, environ, _ = of_slurm(request)
    ready = request.ready
    targets = targets_of(request, environ)
    hosts = hosts_of(request, targets)
    if what.need_hosts is not None and what.need_hosts > len(hosts):
        raise UsageError(f"--need-hosts {what.need_hosts} exceeds the number of named hosts, {len(hosts)}.")
    wishes = apply_flags(request, targets.wishes)
    wishes = with_waivers(what, replace(wishes, launch=wishes.launch or told))
    amend(syllabus.expect, wishes.expect, "--expect")  # a typing error is reported before any host is asked
    for host in hosts:
        amend(syllabus.expect, host.expected, f"inventory, {host.name}")
    of_job = () if syllabus.exam.alone else (ENVIRONMENT,)  # what a job is given decides its plan
    transport = choose_transport(way, targets, hosts, environ)
    line = progress_line(request.outputs)
    collection = Collection(
        Order(
            command=request.command,
            exam=syllabus.name,
            hosts=hosts,
            wishes=wishes,
            facts=tuple(dict.fromkeys((*facts_of(syllabus.checks), *of_job, *of_table, *more))),
            sudo=way.sudo,
            timeout=way.timeout,
            until=until,
            mesh=cast("MeshMode", what.mesh or syllabus.exam.mesh),
            connect=syllabus.asks(MESH) or syllabus.asks(OFFERED),
            also_busy=what.on_busy == "run",
            smoke=syllabus.smoke,
            quick=request.command == "smoke",
            hosts_from="" if targets.source in (COMMAND_LINE, LOCAL) else targets.source,
            way=way_of(request, targets, transport.name, environ),
            pythons=None if ready else own_interpreters(os.environ),
            baseline=baseline,
            floor=request.floor,
            earlier=earlier or (baseline.counted if baseline else {}),
        ),
        transport,
        line,
        no_smoke=syllabus.no_smoke,
    )
    if request.command == "smoke":
        refuse_plan(collection.drafted)
    stop_on_signals()
    try:
        collection.run()
        if ready:
            collection.unreached.update(ready.absent())
        if syllabus.smoke and not syllabus.no_smoke:
            from doctor.exam.smoke_rounds import run_smoke, run_soak

            before = build_report(collection.read(), syllabus.before_smoke(), playbook)
            run_smoke(collection, training, before)
            if ready:
                collection.unreached.update(ready.absent())
            if request.soak:
                run_soak(collection, training, request.soak)
    except KeyboardInterrupt as stop:
        collection.stopped_by = signal_of(stop)
    finally:
        line.clear()
        with contextlib.suppress(KeyboardInterrupt):  # impatience must not cost the report
            transport.close()
    return collection.read()


def targets_of(request: Request, environ: Mapping[str, str] = os.environ) -> Targets:
    """The hosts of the request. If none are named: this machine, but only if a person reads the output and
    it is not a training, because a script's list of hosts may have come out empty.
    """
    if request.ready:
        return request.ready.targets
    who = request.who
    pods = None
    if who.of_cluster:
        from doctor.exam.pods import pods_of  # most runs have none

        pods = pods_of(request)
    targets = read_targets(
        who.hosts, who.hostfile, who.inventory, who.local, who.exclude, environ, who.rank_table, pods
    )
    if targets.unnamed and request.way.transport != "local":
        outputs = request.outputs
        if request.command in TRAINING or outputs.for_a_script or outputs.healthy_hosts is not None:
            raise UsageError("No hosts are named.", NAME_THEM)
        (here,) = targets.hosts
        announce(f"no hosts are named: only this machine, {here.name}, is examined.")
    return targets if request.way.logs_in or pods else local_if_alone(targets)


def hosts_of(request: Request, targets: Targets) -> tuple[Host, ...]:
    """The hosts, each with its interpreter, and with the command that enters it."""
    hosts, python = enter_all(targets.hosts, request.way.enter), request.smoke.python
    if python is None:
        return hosts
    own = request.defaults and "--python" not in request.typed  # a default gives way to the inventory
    return tuple(replace(host, python=(own and host.python) or python) for host in hosts)


def own_interpreters(environ: Mapping[str, str], prefix: str = sys.prefix) -> tuple[str, ...]:
    """The interpreters of our environment, the activated one first: hosts often have them at its path."""
    folders = (environ.get("VIRTUAL_ENV", ""), environ.get("CONDA_PREFIX", ""), prefix)
    paths = (f"{folder.rstrip('/')}/bin/python" for folder in folders if folder and folder not in SYSTEM)
    safe = (path for path in paths if to_type(path) == path and not path.startswith(OF_ALL))
    return tuple(dict.fromkeys(safe))
