"""Whether an interpreter is the job's, by the framework that it has."""

from __future__ import annotations

from doctor.facts.software import Python
from doctor.job.framework import FOUND, FRAMEWORKS
from doctor.job.plan import JobPlan
from doctor.model import Framework


def other_framework(python: Python, plan: JobPlan) -> Framework | None:
    """The framework of an interpreter that has another one than the job was said to train with."""
    said, has = plan.framework, {*python.packages, *python.unversioned}
    if said is None or said.source == FOUND or said.value in has:
        return None
    return next((name for name in FRAMEWORKS if name in has), None)
