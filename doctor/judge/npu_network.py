"""Whether the network between NPUs is known to work: it was read on every host, or a smoke run used it."""

from collections.abc import Collection, Mapping, Sequence

from doctor.facts.smoke import JudgedRun
from doctor.job.plan import JobPlan
from doctor.judge.playbook import NPU_NETWORK
from doctor.model import Backend, Finding, Status
from doctor.rules.npu_segments import fabric_unused

WITHOUT_NETWORK = 4
"""Devices of a single Atlas training server that reach each other without it: those of one ring."""
ROOT, REFUSED = "needs root", "sudo was refused"


def to_be_read(plan: JobPlan, products: Mapping[str, str], runs: Sequence[JudgedRun]) -> frozenset[str]:
    """The hosts whose NPU network the job uses and only reading it can prove."""
    if plan.backend.value is not Backend.HCCL or fabric_unused(plan, *products.values()):
        return frozenset()
    if not plan.several_hosts and len(plan.servers) < 2 and plan.ranks <= WITHOUT_NETWORK:
        return frozenset()
    return frozenset(plan.names) - _trained_over(plan, runs)


def _trained_over(plan: JobPlan, runs: Sequence[JudgedRun]) -> set[str]:
    """The hosts that took part in the last smoke run, if it passed over HCCL, with other hosts of the job."""
    last = runs[-1] if runs else None
    if last is None or last.plan.backend != Backend.HCCL.value or not last.passed:
        return set()
    cells = [{last.plan.seat(rank).host for rank in cell} for cell in last.plan.cells]
    return {host for cell in cells for host in cell if len(cell) > 1 or not plan.several_hosts}


def why_unread(findings: Sequence[Finding], hosts: Collection[str]) -> tuple[str, str]:
    """Why the network could not be read on these hosts, and what to do about it, if known."""
    open_there = [f for f in findings if f.status is Status.UNKNOWN and set(f.hosts) & set(hosts)]
    for_root = {f.check: f for f in open_there if ROOT in f.summary or REFUSED in f.summary}
    if any(check in for_root for check in NPU_NETWORK):
        number = sum(check.startswith("device-") for check in for_root)
        refused = any(REFUSED in finding.summary for finding in for_root.values())
        return (
            f"{number} checks need root" if number > 1 else "1 check needs root",
            "sudo -n was refused" if refused else "add --sudo",
        )
    return next((f.reason for f in open_there if f.check in NPU_NETWORK), ""), ""
