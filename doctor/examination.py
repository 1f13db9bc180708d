"""A recording -> a report. Pure: touches no host, reads no clock; the same recording, the same report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from doctor.api import Check, Fact, Maybe, Need
from doctor.engine import Case, Facts, judge
from doctor.expect import Expect, amend
from doctor.facts.network import ADDRESSES, NAMES, ROUTES
from doctor.facts.run import CLOCKS, CUT_OFF, MESH, UNREACHED, CutOff, Offset
from doctor.facts.system import CLOCK, CLOCK_END, DEVICES, IDENTITY, VIEW
from doctor.findings import findings
from doctor.model import Backend, Missing, View
from doctor.plan import JobPlan, Sight, draft, settle
from doctor.playbook import Exam, Playbook
from doctor.probe import DAMAGED, Heard
from doctor.recording import Recording
from doctor.verdict import Report, Rules, RunInfo, host_reports

ALWAYS: tuple[Fact[Any], ...] = (CLOCK, CLOCK_END, IDENTITY, VIEW, DEVICES, ADDRESSES, ROUTES, NAMES)
"""Facts that the plan and the report need, whatever the checks are."""


@dataclass(frozen=True, slots=True)
class Syllabus:
    """An exam made ready: its checks, and what they are held against."""

    name: str
    exam: Exam
    checks: tuple[Check, ...]
    left_out: tuple[str, ...]
    expect: Expect
    rules: Rules
    notes: tuple[str, ...] = ()

    def asks(self, wanted: Need[Any]) -> bool:
        """Whether some check can use it."""
        needs = (need for check in self.checks for need in check.needs)
        return any((need.need if isinstance(need, Maybe) else need) is wanted for need in needs)

    @property
    def facts(self) -> tuple[Fact[Any], ...]:
        wanted: dict[str, Fact[Any]] = {fact.name: fact for fact in ALWAYS}
        for check in self.checks:
            for need in check.needs:
                fact = need.need if isinstance(need, Maybe) else need
                if isinstance(fact, Fact):
                    wanted.setdefault(fact.name, fact)
        return tuple(wanted.values())


def plan_of(recording: Recording) -> JobPlan:
    """The settled plan, as far as the hosts that answered allow."""
    facts = Facts(recording.heard)
    return settle(
        draft(recording.hosts, recording.wishes), {host: _sight(host, facts) for host in facts.hosts}
    )


def _sight(host: str, facts: Facts) -> Sight:
    def get(fact: Fact[Any], otherwise: Any) -> Any:
        value = facts.get(host, fact)
        return otherwise if isinstance(value, Missing) else value

    devices = get(DEVICES, None)
    routes = get(ROUTES, None)
    names = get(NAMES, None)
    return Sight(
        devices=devices.counts if devices else {},
        addresses=get(ADDRESSES, {}),
        default_interface=routes.default_interface if routes else None,
        names=names.addresses if names else {},
    )


def examine(
    recording: Recording, syllabus: Syllabus, playbook: Playbook, *, replayed: bool = False
) -> Report:
    """Judge what was heard."""
    facts = Facts(recording.heard)
    plan = plan_of(recording)
    common = amend(syllabus.expect, recording.expect, "--expect")
    case = Case(
        plan=plan,
        facts=facts,
        expect={
            host.name: amend(
                amend(syllabus.expect, host.expected, f"inventory, {host.name}"), recording.expect, "--expect"
            )
            for host in recording.hosts
        },
        common=common,
        givens={
            "plan": plan,
            UNREACHED.name: {
                host.name: recording.unreached.get(host.name)
                for host in recording.hosts
                if host.name not in recording.unfinished
            },
            CUT_OFF.name: {host: _cut_off(heard) for host, heard in recording.heard.items()},
            MESH.name: recording.mesh or Missing("mesh", _why_no_mesh(recording, plan)),
            CLOCKS.name: _clocks(recording, facts),
        },
        severities=syllabus.exam.severity,
    )
    results = judge(syllabus.checks, case)
    found = findings(results, {c.id: c for c in syllabus.checks}, _views(recording, facts), playbook.mend)
    products = {host: _product(host, facts) for host in facts.hosts}
    return Report(
        run=RunInfo(
            recording.command, syllabus.name, recording.started, recording.seconds, recording.transport
        ),
        plan=plan,
        hosts=host_reports(
            recording.hosts, plan, products, recording.unreached, recording.unfinished, found, syllabus.rules
        ),
        findings=found,
        results=tuple(results),
        scopes={check.id: check.scope for check in syllabus.checks},
        rules=syllabus.rules,
        notes=_notes(syllabus, recording),
        stopped_by=recording.stopped_by,
        replayed=replayed,
        outstanding=recording.unfinished,
    )


def _clocks(recording: Recording, facts: Facts) -> Mapping[str, Offset | None]:
    """The host's time was read once near the start of its answer and once at its end."""
    offsets: dict[str, Offset | None] = {}
    for host, heard in recording.heard.items():
        first, last = facts.get(host, CLOCK), facts.get(host, CLOCK_END)
        if isinstance(first, Missing):
            offsets[host] = None
            continue
        end = first if isinstance(last, Missing) else last
        offsets[host] = Offset(end.now - heard.ended, first.now - heard.started)
    return offsets


def _product(host: str, facts: Facts) -> str:
    devices = facts.get(host, DEVICES)
    return "unknown" if isinstance(devices, Missing) else str(devices.product)


def _views(recording: Recording, facts: Facts) -> Mapping[str, View]:
    entered = {host.name for host in recording.hosts if host.enter}
    views = {}
    for host in facts.hosts:
        seen = facts.get(host, VIEW)
        views[host] = View.CONTAINER if host in entered or seen is View.CONTAINER else View.HOST
    return views


def _cut_off(heard: Heard) -> CutOff | None:
    damaged = [fact for fact, missing in heard.missing.items() if missing.reason == DAMAGED]
    if heard.complete and not damaged:
        return None
    reasons = [missing.reason for missing in heard.missing.values() if missing.fact not in heard.captures]
    lost = [fact for fact in heard.missing if fact not in heard.captures] + damaged
    if reasons and (not heard.complete or not damaged):
        reason = reasons[0]
    else:
        reason = "part of it arrived damaged" if damaged else "the end is missing"
    return CutOff(tuple(sorted(set(lost))), reason)


def _why_no_mesh(recording: Recording, plan: JobPlan) -> str:
    if not plan.several_hosts:
        return "there is one host only"
    return recording.no_mesh or "fewer than two hosts could take part"


def _notes(syllabus: Syllabus, recording: Recording) -> tuple[str, ...]:
    notes: list[str] = [*syllabus.notes, *recording.notes]
    if syllabus.left_out:
        notes.append(f"left out as asked for: {_short(syllabus.left_out)}")
    plan = plan_of(recording)
    if plan.backend.value is not Backend.GLOO or any("devices" in host.expected for host in recording.hosts):
        notes.append("accelerators, their fabric and rank tables: this version does not look at them")
    refused = [host for host, heard in recording.heard.items() if heard.sudo == "refused"]
    if refused:
        notes.append(f"sudo -n was refused on {len(refused)} of {len(recording.heard)} hosts")
    return tuple(notes)


def _short(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:6])
    return shown if len(ids) <= 6 else f"{shown} and {len(ids) - 6} more"
