"""Whether an interpreter is the job's, by the framework that it has."""

from doctor.facts.software import Python
from doctor.job.framework import FOUND, FRAMEWORKS
from doctor.job.plan import JobPlan
from doctor.model import Framework


def frameworks_of(python: Python) -> tuple[Framework, ...]:
    """What it has to train with."""
    return tuple(name for name in FRAMEWORKS if name in python.packages or name in python.unversioned)


def other_framework(python: Python, plan: JobPlan) -> Framework | None:
    """The framework of an interpreter that has another one than the job was said to train with."""
    said, has = plan.framework, frameworks_of(python)
    if said is None or said.source == FOUND or said.value in has:
        return None
    return next(iter(has), None)


def no_common_framework(plan: JobPlan) -> str:
    """Why nobody knows what to train with, and what to do; empty if it is known."""
    return (
        f"the hosts have no framework in common: {plan.frameworks_differ}; name the interpreter of the job "
        "on each (python: in the inventory), or what it trains with (--framework)"
        if plan.frameworks_differ
        else ""
    )
