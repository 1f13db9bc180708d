"""A recording, understood: facts parsed, plan settled, smoke runs judged, each of them once.

A run reads its growing recording several times; only what depends on something new is done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from doctor.api import Fact
from doctor.devices import VENDORS
from doctor.facts.job import PROCESSES_OF_JOBS
from doctor.facts.network import ADDRESSES, NAMES, ROUTES
from doctor.facts.smoke import JudgedRun, SmokeRounds
from doctor.facts.software import PYTHON
from doctor.facts.system import DEVICES, VIEW
from doctor.job.plan import HostView, JobPlan, draft, settle
from doctor.judge.engine import Facts
from doctor.model import MissingFact, View
from doctor.recording import Recording
from doctor.smoke.judge import judge

TO_START = "preflight"
"""The exam of a job that does not run yet: running processes belong to another job, or are left over."""


@dataclass(frozen=True, slots=True)
class Reading:
    recording: Recording
    facts: Facts
    sights: Mapping[str, HostView]
    """The values that settled the plan."""
    plan: JobPlan
    """The plan, settled by what is known about the hosts that answered."""
    smoke: SmokeRounds | None
    """The smoke runs and what they prove."""


def read_recording(
    recording: Recording, before: Reading | None = None, drafted: JobPlan | None = None
) -> Reading:
    """`before` is an earlier reading of the same run, `drafted` its plan before any host answered."""
    entered = {(host.name, VIEW.name): View.CONTAINER for host in recording.hosts if host.enter}
    facts = Facts(recording.heard, {**(before.facts.kept(recording.heard) if before else {}), **entered})
    others = recording.exam == TO_START or recording.smoke_wanted or recording.wishes.launch
    sights = {host: _sight(host, facts, ours=not others) for host in facts.hosts}
    return Reading(
        recording,
        facts,
        sights,
        plan=before.plan
        if before and before.sights == sights
        else settle(drafted or draft(recording.hosts, recording.wishes), sights),
        smoke=_smoke(recording, before.smoke if before else None),
    )


def _sight(host: str, facts: Facts, *, ours: bool) -> HostView:
    """`ours`: whether a job that runs there may be the one that is examined."""

    def get(fact: Fact[Any], otherwise: Any) -> Any:
        value = facts.get(host, fact)
        return otherwise if isinstance(value, MissingFact) else value

    devices = get(DEVICES, None)
    routes = get(ROUTES, None)
    names = get(NAMES, None)
    python = get(PYTHON, None)
    return HostView(
        devices={vendor: len(devices.of(vendor).numbers) for vendor in VENDORS if devices},
        plugged_in={vendor: devices.of(vendor).on_bus for vendor in VENDORS if devices},
        screens={vendor: devices.of(vendor).screens for vendor in VENDORS if devices},
        addresses=get(ADDRESSES, {}),
        default_interface=routes.default_interface if routes else None,
        names=names.addresses if names else {},
        frameworks=frozenset((*python.packages, *python.unversioned)) if python else frozenset(),
        jobs=get(PROCESSES_OF_JOBS, ()) if ours else (),
    )


def _smoke(recording: Recording, before: SmokeRounds | None) -> SmokeRounds | None:
    judged = before.runs if before else ()
    new = recording.smoke[len(judged) :]
    runs = (*judged, *(JudgedRun(result, judge(result)) for result in new))
    unheard = frozenset((*recording.unreached, *recording.unfinished))
    return SmokeRounds(runs, unheard) if runs else None
