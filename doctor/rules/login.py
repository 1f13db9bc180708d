"""The environment that ranks on a host get from its login, and whether a launcher had a hand in it."""

from collections.abc import Mapping

from doctor.facts.software import Environment
from doctor.job.launch.launchers import BY_LAUNCHERS, NUMBERS
from doctor.job.plan import JobPlan

START_FILES = "/etc/environment /etc/profile /etc/profile.d ~/.bashrc ~/.profile ~/.ssh/environment /etc/ssh"
"""Where the variables of a login are usually set."""


def environment_of(plan: JobPlan, login: Environment | None) -> Mapping[str, str]:
    """What the launch sets overrides what the login has."""
    return {**(login.variables if login else {}), **plan.env}


def started_by_launcher(login: Environment | None) -> bool:
    """Whether it is the environment of a task of srun, mpirun or torchrun rather than that of a login."""
    return login is not None and not login.variables.keys().isdisjoint((*NUMBERS, *BY_LAUNCHERS))
