"""The environment that ranks on a host get from its login, and whether a launcher had a hand in it."""

from collections.abc import Mapping
from shlex import quote

from doctor.api import Evidence, Problem, Severity
from doctor.facts.software import Environment
from doctor.job.launch.launchers import BY_LAUNCHERS, NUMBERS
from doctor.job.plan import JobPlan

START_FILES = "/etc/environment /etc/profile /etc/profile.d ~/.bashrc ~/.profile ~/.ssh/environment /etc/ssh"
"""Where the variables of a login are usually set."""


def environment_of(plan: JobPlan, login: Environment | None) -> Mapping[str, str]:
    """What the launch sets overrides what the login has, and what it takes away is gone."""
    own = login.variables if login else {}
    return {**{name: own[name] for name in own.keys() - plan.unset}, **plan.env}


def started_by_launcher(login: Environment | None) -> bool:
    """Whether it is the environment of a task of srun, mpirun or torchrun rather than that of a login."""
    return login is not None and not login.variables.keys().isdisjoint((*NUMBERS, *BY_LAUNCHERS))


def devices_are_chosen(plan: JobPlan, login: Environment | None) -> bool:
    """Whether a launcher or a scheduler gives the ranks their devices."""
    return started_by_launcher(login) or bool(plan.allocated) or "srun" in plan.launch


def wrong_value(
    name: str,
    value: str,
    summary: str,
    expected: str,
    plan: JobPlan,
    login_of: str = "",
    severity: Severity | None = None,
) -> Problem:
    """A fault of a variable that ranks get from their launch or from the login of a host."""
    line = plan.lines.get(name)
    whose, where = line or f"{name} of the launch", f"# Correct {name} in {line or 'the launch'}."
    if login_of:
        whose, where = f"{name} of the login", f"ssh {quote(login_of)} 'grep -rsn {name} {START_FILES}'"
    return Problem(
        summary,
        expected=expected,
        actual=f"{name}={value[:100]}",
        subject=name,
        severity=severity,
        evidence=(Evidence(whose, value[:100]),),
        commands=(where,),
        of_all=summary.replace("of this host", "of every host"),
    )
