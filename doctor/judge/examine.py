"""A recording -> a report. Pure: no host, no clock; the same recording gives the same report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from doctor.api import EXPECTS, NEEDED, RANKS, Check, Fact, Need
from doctor.devices import VENDORS
from doctor.expect import Expect, amend, with_log_since
from doctor.facts.baseline import COLLECTIVE_FLOORS, FLOOR, SINCE, SinceBaseline
from doctor.facts.job import LAUNCHES, PROCESSES_OF_JOBS
from doctor.facts.limits import NEIGHBOURS
from doctor.facts.network import ADDRESSES, NAMES, ROUTES
from doctor.facts.processes import KERNEL_LOG
from doctor.facts.run import CUT_OFF
from doctor.facts.smoke import SMOKE
from doctor.facts.system import CLOCK, CLOCK_END, DEVICES, IDENTITY, NAMEPLATE, VIEW
from doctor.job.launch.unknowns import not_understood
from doctor.job.plan import RUNNING, JobPlan
from doctor.job.wishes import SLURM
from doctor.judge import verdict
from doctor.judge.alone import judge_alone, without_job
from doctor.judge.baseline import since
from doctor.judge.commands import fitting
from doctor.judge.engine import Facts, Inputs, judge
from doctor.judge.fact_table import fact_table
from doctor.judge.fact_values import ASKED
from doctor.judge.findings import Views, fold_findings
from doctor.judge.hardware import hardware
from doctor.judge.hung_tools import HungTools, hung_tools
from doctor.judge.job_python import needed_on, weighed
from doctor.judge.launches import defaults_of
from doctor.judge.npu_network import to_be_read
from doctor.judge.playbook import Exam, Playbook
from doctor.judge.reading import Reading
from doctor.judge.run_facts import run_facts
from doctor.judge.selection import CheckSelection, find_unapplied
from doctor.judge.unread_facts import unread_facts, unread_packages
from doctor.judge.waived import not_needed, waiving
from doctor.model import Finding, MissingFact, Result, View
from doctor.recording import Recording
from doctor.text.nodeset import fold
from doctor.transport.way import Way

ALWAYS: tuple[Fact[Any], ...] = (
    CLOCK,
    CLOCK_END,
    IDENTITY,
    VIEW,
    DEVICES,
    ADDRESSES,
    ROUTES,
    NAMES,
    NEIGHBOURS,
    NAMEPLATE,
)
"""Facts that the plan and the report always need."""


@dataclass(frozen=True, slots=True)
class PreparedExam:
    """An exam ready to run: its checks, and what they compare with."""

    name: str
    exam: Exam
    checks: tuple[Check, ...]
    left_out: tuple[str, ...]
    expect: Expect
    rules: verdict.Rules
    notes: tuple[str, ...] = ()
    smoke: bool = False
    """Whether a smoke run is wanted."""
    no_smoke: str = ""
    """Why a wanted smoke run cannot be made; empty if it can."""
    choices: tuple[CheckSelection, ...] = ()
    """What the user chose by name."""

    def asks(self, wanted: Need[Any]) -> bool:
        """Whether at least one check can use the value."""
        return any(need is wanted for check in self.checks for need in check.wanted)

    def before_smoke(self) -> PreparedExam:
        """The exam without checks that need a smoke run; it decides which hosts take part in one."""
        checks = tuple(check for check in self.checks if SMOKE not in check.needs)
        return replace(self, checks=checks, rules=replace(self.rules, tentative=True))


def facts_of(checks: Iterable[Check]) -> tuple[Fact[Any], ...]:
    """The facts that a host is asked for, for these checks. Whether a job runs there is said in any case."""
    asked = (need for check in checks for need in check.wanted if isinstance(need, Fact))
    return tuple({fact.name: fact for fact in (*ALWAYS, PROCESSES_OF_JOBS, *asked)}.values())


def build_report(
    reading: Reading, prepared: PreparedExam, playbook: Playbook, *, replayed: bool = False
) -> verdict.Report:
    """Judge the recorded answers."""
    reading = without_job(reading) if prepared.exam.alone else reading
    facts, plan, tentative = reading.facts, reading.plan, prepared.rules.tentative
    recording = replace(reading.recording, way=_with_ranks(reading.recording.way, plan))
    hung = _reported_hung_tools(prepared.checks, recording)
    case = _inputs(reading, prepared, hung)
    found, results = _judged(_results(case, reading, prepared), recording, prepared, playbook, facts)
    products = {host: str(getattr(facts.get(host, DEVICES), "product", "unknown")) for host in facts.hosts}
    unread = frozenset() if tentative else to_be_read(plan, products, reading.runs)
    rules = replace(prepared.rules, npu_network=unread)
    training, checks = _training(reading, prepared), _checks(prepared, plan, facts, results)
    unreached, unfinished = recording.unreached, recording.unfinished
    why, applied = training.untrained, checks.unapplied
    cut = {host for host, lost in case.givens[CUT_OFF.name].items() if lost}
    return verdict.Report(
        verdict.RunInfo(
            recording.command,
            prepared.name,
            recording.started,
            recording.seconds,
            recording.transport,
            recording.hosts_from,
            recording.way,
            prepared.exam.version,
            recording.stopped_by,
            recording.unfinished,
            replayed,
        ),
        plan,
        verdict.host_reports(
            recording.hosts, plan, products, unreached, unfinished, found, rules, why, applied
        ),
        found,
        results,
        rules,
        checks,
        training,
        _seen(reading, hung, tentative=tentative),
        (
            *_notes(prepared, recording, facts, plan),
            *(() if tentative else not_needed(recording.wishes.waivers, results)),
            *unread_facts(ALWAYS, prepared.checks, results, facts, hung, cut),
        ),
    )


def _inputs(reading: Reading, prepared: PreparedExam, hung: HungTools) -> Inputs:
    recording = reading.recording
    common = amend(prepared.expect, recording.expect, "--expect")
    expects = {}
    for host in recording.hosts:
        own = amend(prepared.expect, host.expected, f"inventory, {host.name}")
        own = amend(own, recording.expect, "--expect")
        heard = recording.heard.get(host.name)
        expects[host.name] = with_log_since(own, heard.started) if heard else own
    needed = prepared.rules.need_hosts or len(reading.plan.hosts)
    floor = recording.floor
    floors = {FLOOR.name: floor, COLLECTIVE_FLOORS.name: floor.collectives if floor else ()}
    since = {SINCE.name: _since(reading, prepared)}
    givens = {**run_facts(reading, hung), **since, **floors, EXPECTS.name: expects, NEEDED.name: needed}
    return Inputs(reading.plan, reading.facts, expects, common, givens, prepared.exam.severity)


def _since(reading: Reading, prepared: PreparedExam) -> SinceBaseline | MissingFact:
    baseline = reading.recording.baseline
    if baseline is None or not prepared.asks(SINCE):
        return MissingFact(SINCE.name, "no baseline was given", absent=True)
    return since(reading, baseline)


def _results(case: Inputs, reading: Reading, prepared: PreparedExam) -> list[Result]:
    exam, hosts = prepared.exam, reading.recording.hosts
    needed = needed_on(hosts, case.facts, case.expect, case.givens[LAUNCHES.name], reading.runs)
    judged = judge_alone(prepared.checks, case, reading, exam) if exam.alone else judge(prepared.checks, case)
    return [weighed(result, needed) for result in judged]


def _judged(
    results: Sequence[Result], recording: Recording, prepared: PreparedExam, playbook: Playbook, facts: Facts
) -> tuple[tuple[Finding, ...], tuple[Result, ...]]:
    """The findings, and the results as they are waived."""
    checks = {check.id: check for check in prepared.checks}
    waive = waiving(recording.wishes.waivers, recording.started[:10])
    devices = facts.all(DEVICES).items()
    vendors = {host: frozenset(v.name for v in VENDORS if own.of(v).numbers) for host, own in devices}
    found, waived = fold_findings(results, checks, _views(facts), playbook.fill, vendors, waive)
    return fitting(found, recording, prepared.name, checks, facts), waived


def _checks(
    prepared: PreparedExam, plan: JobPlan, facts: Facts, results: Sequence[Result]
) -> verdict.ExaminedChecks:
    asked = (
        () if prepared.rules.tentative or not facts.hosts else prepared.choices
    )  # silent hosts tell nothing
    unapplied = tuple(find_unapplied(asked, results))
    return verdict.ExaminedChecks(
        {check.id: check.scope for check in prepared.checks},
        frozenset(
            check.id
            for check in prepared.checks
            if check.of_one_host and (plan.counted_one_by_one or RANKS not in check.needs)
        ),
        frozenset(check.id for check in prepared.checks if KERNEL_LOG in check.needs),
        unapplied,
        bool(asked) and len(unapplied) == len(asked),
    )


def _training(reading: Reading, prepared: PreparedExam) -> verdict.Training:
    recording, runs = reading.recording, reading.runs
    wanted = recording.smoke_wanted
    not_made = "" if recording.smoke or not wanted else recording.no_smoke or "it was not started"
    waived = not wanted or prepared.rules.tentative  # a smoke run may still prove what could not be read
    return verdict.Training(
        runs,
        not_made,
        {} if waived else verdict.untrained(recording.hosts, runs, not_made),
        recording.mesh.seconds if recording.mesh else None,
        recording.floor,
        recording.soak,
    )


def _seen(reading: Reading, hung: HungTools, *, tentative: bool) -> verdict.SeenHosts:
    recording, facts = reading.recording, reading.facts
    return verdict.SeenHosts(
        () if tentative else fact_table(reading),
        () if tentative else (*unread_facts(ASKED, (), (), facts, hung, ()), *unread_packages(facts)),
        _running(recording, facts),
        frozenset(host for host, view in facts.all(VIEW).items() if view is View.CONTAINER),
        hardware(facts, reading.plan),
        recording.mesh,
    )


def _with_ranks(way: Way | None, plan: JobPlan) -> Way | None:
    """With the ranks per host of the scheduler or the running job: commands to type ask neither."""
    told = {host.ranks for host in plan.hosts}
    ranks = told.pop() if len(told) == 1 else None
    if way is None or ranks is None or ranks.source not in (SLURM, RUNNING):
        return way
    if any(option[0] in ("--ranks-per-host", "--launch") for option in way.asked):
        return way
    return replace(way, asked=(*way.asked, ("--ranks-per-host", str(ranks.value))))


def _reported_hung_tools(checks: Sequence[Check], recording: Recording) -> HungTools:
    """The hung tools that at least one check reports."""
    tools = {group for check in checks for group in check.tools}
    hung = hung_tools(checks, recording.heard)
    return {(host, group): problem for (host, group), problem in hung.items() if group in tools}


def _views(facts: Facts) -> Views:
    """Only the host's own network namespace shows the size of its neighbour table."""
    views = {host: facts.known(host, VIEW, View.HOST) for host in facts.hosts}
    return Views(views, {host for host in facts.hosts if isinstance(facts.get(host, NEIGHBOURS), int)})


def _running(recording: Recording, facts: Facts) -> tuple[str, ...]:
    if recording.transport == "in-job":
        return ()
    return tuple(host for host, processes in facts.all(PROCESSES_OF_JOBS).items() if processes)


def _notes(prepared: PreparedExam, recording: Recording, facts: Facts, plan: JobPlan) -> tuple[str, ...]:
    notes: list[str] = [*prepared.notes, *recording.notes]
    if recording.wishes.launch:
        open_questions = [
            *not_understood(recording.wishes.launch),
            *defaults_of(recording.wishes.launch, plan),
        ]
        notes += [f"launch: {text}" for text in open_questions]
    if prepared.left_out and not recording.command.startswith("ranktable"):  # not a choice there
        more = f" and {len(prepared.left_out) - 6} more" if len(prepared.left_out) > 6 else ""
        notes.append(f"left out on request: {', '.join(prepared.left_out[:6])}{more}")
    lab = [host for host in facts.hosts if getattr(facts.get(host, DEVICES), "emulated", False)]
    if lab:
        notes.append(f"the devices of {fold(lab)} are emulated: this is a test lab")
    jobs = facts.all(PROCESSES_OF_JOBS)
    apart = [host for host in jobs if any(process.outside for process in jobs[host])]
    if apart and recording.wishes.live:
        notes.append(
            f"a job on {fold(apart)} runs in another network namespace, such as a container's: its launch "
            "was not judged (--enter names the command that enters it)"
        )
    refused = [host for host, heard in recording.heard.items() if heard.sudo == "refused"]
    if refused:
        notes.append(f"sudo -n was refused on {len(refused)} of {len(recording.heard)} hosts")
    return tuple(notes)
