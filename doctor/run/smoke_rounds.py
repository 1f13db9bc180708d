"""The smoke runs of one examination: on the hosts that passed, and again without those that a run names.

Drives the transport, as `collect` does; what a run saw is added to the same recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from doctor.errors import UsageError
from doctor.job.launch.variables import is_setting
from doctor.job.plan import JobPlan
from doctor.judge.verdict import Report
from doctor.mesh import MeshPatience, MeshResult, plan_mesh, run_mesh
from doctor.model import Host, HostStatus
from doctor.probe import through
from doctor.rules.smoke import named_by
from doctor.run.collect import Collection
from doctor.smoke.agents import smoke_script
from doctor.smoke.plan import SmokeWishes, plan_smoke
from doctor.smoke.result import LeftOutOfSmoke, SmokeResult
from doctor.smoke.run import SmokeRun

REPEATS = 2
QUICK = MeshPatience(
    start=5.0, connect=0.7, answer=1.5, tries=1, again=1.3, answer_again=2.0, slack=2.0, stop=1.0
)
"""For a mesh among hosts whose agents just answered."""


def run_smoke(collection: Collection, wishes: SmokeWishes, before: Report) -> None:
    """`before` is the report of all that was found without a smoke run."""
    job = collection.read().plan
    fit, left_out = _fit(before)
    late = "the deadline came before it" if collection.left() <= 0 else ""
    collection.no_smoke = _obstacle(before, fit) or late
    if collection.no_smoke:
        return
    for repeat in range(REPEATS + 1):
        try:
            result = _run(collection, job, fit, wishes, left_out)
        except UsageError as error:  # what is asked for may fit all hosts, and not those that are left
            if not left_out:
                raise
            collection.no_smoke = error.message
            return
        seen = collection.read().smoke
        blamed = named_by(seen.runs[-1]) if seen else ()
        fit = [host for host in fit if host not in blamed]
        if result.end.kind == "interrupted" or not blamed or not fit or collection.left() <= 0:
            return
        left_out = [*left_out, *(LeftOutOfSmoke(host, "an earlier smoke run named it") for host in blamed)]
        wishes = replace(wishes, inject=())  # a rank's number means another rank now
        if repeat < REPEATS:
            collection.say(f"smoke: once more, without {', '.join(blamed)}")


def _fit(report: Report) -> tuple[list[str], list[LeftOutOfSmoke]]:
    fit = [host.name for host in report.hosts if host.status is HostStatus.HEALTHY]
    others = [host for host in report.hosts if host.status is not HostStatus.HEALTHY]
    return fit, [LeftOutOfSmoke(h.name, ": ".join(filter(None, (h.status.value, h.reason)))) for h in others]


def _obstacle(report: Report, fit: Sequence[str]) -> str:
    """Why no smoke run can be made; empty when one can."""
    if report.stopped_by is not None:
        return "the run was interrupted before it"
    if not fit:
        return "no host passed the checks"
    for finding in report.findings:
        if finding.check == "port-unreachable" and report.rules.faults(finding) and not finding.hosts:
            return "the hosts do not reach each other, see port-unreachable"
    return ""


def _run(
    collection: Collection,
    job: JobPlan,
    hosts: Sequence[str],
    wishes: SmokeWishes,
    left_out: Sequence[LeftOutOfSmoke],
) -> SmokeResult:
    plan = plan_smoke(job, hosts, wishes)
    known = {host.name: host for host in collection.order.hosts}
    taking_part = [known[name] for name in plan.hosts]
    until = collection.order.until
    scripts = {h.name: through(smoke_script(h.python), h) for h in taking_part}
    session = collection.transport.open(scripts, until)
    run = SmokeRun(
        session,
        plan,
        pythons={host.name: host.python for host in taking_part},
        env={name: value for name, value in job.env.items() if is_setting(name)},
        timeout=wishes.timeout,
        until=until,
        meet=lambda: meet(collection, job, taking_part),
        progress=lambda doing: collection.say(f"smoke: {doing}"),
    )
    try:
        run.conduct()
    finally:
        result = run.result(left_out)
        collection.smoke.append(result)
    return result


def meet(collection: Collection, job: JobPlan, hosts: Sequence[Host]) -> MeshResult | None:
    """Who reaches whom right now."""
    mesh = plan_mesh(
        {host.name: job.data_address(host.name) for host in hosts},
        shape="auto",
        head=job.head.value,
        master_port=job.master_port.value,
        hccl_port=None,
    )
    if len(mesh.nodes) < 2:
        return None
    return run_mesh(collection.open_mesh(mesh), mesh, QUICK, until=collection.order.until)
