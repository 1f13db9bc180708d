"""A recording, understood once: of a growing one, only what depends on something new is done again."""

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.devices import VENDORS
from doctor.facts.job import PROCESSES_OF_JOBS
from doctor.facts.network import ADDRESSES, NAMES, ROUTES
from doctor.facts.smoke import JudgedRun
from doctor.facts.software import ENVIRONMENT, PYTHON, VERSIONS, Python, Versions, cann_version
from doctor.facts.system import DEVICES, VIEW
from doctor.job.launch.process_env import Launch
from doctor.job.launch.processes import launch_of_processes
from doctor.job.plan import HostView, JobPlan, draft, settle
from doctor.judge.engine import Facts
from doctor.model import Backend, SourcedValue, View
from doctor.recording import Recording
from doctor.smoke.judge import judge


@dataclass(frozen=True, slots=True)
class Reading:
    recording: Recording
    facts: Facts
    sights: Mapping[str, HostView]
    """The values that settled the plan."""
    plan: JobPlan
    """The plan, settled by what is known about the hosts that answered."""
    runs: tuple[JudgedRun, ...]
    """The smoke runs and what they prove."""
    running: tuple[Launch, ...] = ()
    """The jobs that run, if --launch live names them: otherwise they are not what is examined."""


def read_recording(
    recording: Recording, before: Reading | None = None, drafted: JobPlan | None = None
) -> Reading:
    """`before` is an earlier reading of the same run, `drafted` its plan before any host answered."""
    entered = {(host.name, VIEW.name): View.CONTAINER for host in recording.hosts if host.contained}
    facts = Facts(recording.heard, {**(before.facts.kept(recording.heard) if before else {}), **entered})
    meant = {"preflight", "smoke", "accept", "in-job"} & {recording.command, recording.transport}
    of_job = bool(meant) or recording.wishes.of_job
    sights = {host: _sight(host, facts, of_job=of_job) for host in facts.hosts}
    running = launch_of_processes(facts.all(PROCESSES_OF_JOBS)) if recording.wishes.live else ()
    judged = before.runs if before else ()
    return Reading(
        recording,
        facts,
        sights,
        plan=before.plan
        if before and (before.sights, before.running) == (sights, running)
        else settle(drafted or draft(recording.hosts, recording.wishes), sights, running),
        runs=(*judged, *(JudgedRun(result, judge(result)) for result in recording.smoke[len(judged) :])),
        running=running,
    )


def _sight(host: str, facts: Facts, *, of_job: bool) -> HostView:
    """`of_job`: whether a job is examined."""
    devices, routes, names, python = (facts.known(host, each) for each in (DEVICES, ROUTES, NAMES, PYTHON))
    environment = facts.known(host, ENVIRONMENT) if of_job else None
    return HostView(
        devices={vendor: len(devices.of(vendor).numbers) for vendor in VENDORS if devices},
        plugged_in={vendor: devices.of(vendor).on_bus for vendor in VENDORS if devices},
        screens={vendor: devices.of(vendor).screens for vendor in VENDORS if devices},
        addresses=facts.known(host, ADDRESSES, {}),
        default_interface=routes.default_interface if routes else None,
        names=names.addresses if names else {},
        frameworks=frozenset((*python.packages, *python.unversioned)) if python else frozenset(),
        env=environment.variables if environment else {},
        built_for=_built_for(python, facts.known(host, VERSIONS)) if of_job else None,
    )


def _built_for(python: Python | None, versions: Versions | None) -> SourcedValue[Backend] | None:
    """The backend that its torch, or the toolkit of its image, is built for."""
    if python and python.has_torch_npu:
        return SourcedValue(Backend.HCCL, "torch_npu is installed")
    if python and python.built:
        vendor, software = python.built
        return SourcedValue(vendor.backend, f"torch is built for {vendor.thing}s ({software})")
    return SourcedValue(Backend.HCCL, "CANN is installed") if cann_version(versions) else None
