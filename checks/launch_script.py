"""The launch script as the shell reads it: variables that its ranks do not get."""

from collections.abc import Iterator, Mapping

from doctor.api import Confidence, Damage, Evidence, Problem, Scope, Severity, View, check, maybe
from doctor.facts.job import LAUNCHES
from doctor.facts.software import ENVIRONMENT, Environment
from doctor.facts.system import VIEW
from doctor.job.launch.process_env import Launch
from doctor.job.launch.slips import Slip
from doctor.rules.launch_names import remark


@check(
    "launch-variables",
    LAUNCHES,
    maybe(ENVIRONMENT),
    maybe(VIEW),
    scope=Scope.CLUSTER,
    damage=Damage.BLOCKED,
)
def launch_variables(
    launches: tuple[Launch, ...],
    logins: Mapping[str, Environment],
    views: Mapping[str, View],
) -> Iterator[Problem]:
    """The launch script sets a variable in such a way that its ranks do not get it.

    Why it matters: the shell does not stop for it. The ranks start without the variable, or their launcher
    gets an empty option, and they end at once or look for each other in the wrong place.

    How it is known: from the scripts of --launch, as a shell reads them. A blank before or after the `=` sets
    nothing. A variable that is set, used nowhere and not exported stays in the shell: if the ranks need it,
    this is a fault, and for a setting of what is logged a warning. A variable that nothing sets while one of
    a similar name is set and used nowhere is misspelled, and so is an option that a launcher does not have if
    it has a similar one about ranks. A comment between the lines of a command ends it: its launcher may be
    left without a program. Scripts with a word of a scheduler and containers,
    which are given variables from outside, are not judged, nor is a variable that a login sets.

    What to do: correct the line that the finding shows.
    """
    if View.CONTAINER in (views or {}).values():
        return
    inherited = {name for login in (logins or {}).values() for name in login.variables}
    for launch in launches:
        for slip in launch.slips:
            if slip.kind == "blank" or slip.name not in inherited:
                yield _problem(launch, slip)


def _problem(launch: Launch, slip: Slip) -> Problem:
    name = slip.name
    summary, expected, typed = {
        "blank": (
            f"a blank beside the = of {name} keeps the shell from setting it",
            f"{name}=…",
            f"{name}=…",
        ),
        "kept": (
            f"{name} is set and not exported: no rank gets it",
            f"export {name}",
            f"export {name}",
        ),
        "unset": (
            f"{name} is used and nothing sets it, but {slip.like} is set and not used",
            f"one name for both: {name} or {slip.like}",
            f"${name} is empty",
        ),
        "option": (
            f"the launcher has no option {name}: it stops with its usage",
            slip.like,
            f"{slip.like} in place of {name}",
        ),
        "program": (
            f"{name} is given no program: it stops with its usage",
            "the program of the ranks behind the options",
            "a comment or blank behind a \\ at the end of a line, or between such lines, ends the command",
        ),
    }[slip.kind]
    return Problem(
        summary,
        expected=expected,
        actual=f"{slip.words}, in line {slip.line} of {slip.file}",
        subject=f"{launch.name}: {name}",
        severity=None if slip.needed else Severity.WARN,
        confidence=Confidence.STRONG if slip.kind != "blank" else Confidence.CERTAIN,
        evidence=(Evidence(f"{slip.file}:{slip.line}", slip.words),),
        commands=(remark(f"in line {slip.line} of {slip.file}: {typed}"),),
    )
