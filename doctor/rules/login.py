"""The environment that ranks on a host get from its login, and whether a launcher had a hand in it."""

from __future__ import annotations

from collections.abc import Mapping

from doctor.job.launch.launchers import BY_LAUNCHERS, NUMBERS
from doctor.job.plan import JobPlan


def environment_of(plan: JobPlan, login: Mapping[str, str] | None) -> Mapping[str, str]:
    """What the launch sets overrides what the login has."""
    return {**(login or {}), **plan.env}


def started_by_launcher(login: Mapping[str, str] | None) -> bool:
    """Whether it is the environment of a task of srun, mpirun or torchrun rather than that of a login."""
    return not (login or {}).keys().isdisjoint((*NUMBERS, *BY_LAUNCHERS))
