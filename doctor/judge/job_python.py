"""The hosts on which the job needs Python: a host is not proved healthy if Python does not start there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from doctor.expect import Expect
from doctor.facts.smoke import JudgedRun
from doctor.facts.software import PYTHON
from doctor.job.launch.command import read_command, runs_python
from doctor.job.launch.process_env import Launch
from doctor.judge.engine import Facts
from doctor.model import Host, MissingFact, Result, Status

CHECK = "torch-missing"
"""The check that looks at the interpreter of each host."""
FRAMEWORKS = frozenset({"torch", "torch-npu", "mindspore"})


def needed_on(
    hosts: Sequence[Host],
    facts: Facts,
    expects: Mapping[str, Expect],
    launches: tuple[Launch, ...] | MissingFact,
    runs: Sequence[JudgedRun],
) -> frozenset[str]:
    """The hosts whose interpreter the job seems to need, except those on which a training has used it.

    The job needs it if the user named it or expects torch of it, if the launch starts Python, or if the
    interpreter of any host has torch or MindSpore.
    """
    named = {host.name for host in hosts if host.python}
    wanted = {name for name, expect in expects.items() if expect.torch}
    if _starts_python(launches) or any(
        FRAMEWORKS & {*python.packages, *python.unversioned} for python in facts.all(PYTHON).values()
    ):
        wanted |= {*facts.hosts}
    return frozenset((named | wanted) - ({*runs[-1].plan.hosts} if runs and runs[-1].passed else set()))


def _starts_python(launches: tuple[Launch, ...] | MissingFact) -> bool:
    if isinstance(launches, MissingFact):
        return False
    told = (each for launch in launches for each in launch.told)
    return any((command := read_command(each.command)) and runs_python(command) for each in told)


def weighed(result: Result, needed: frozenset[str]) -> Result:
    """The result; essential if the job needs Python there and it is unknown whether it starts."""
    if (
        result.essential
        or result.check != CHECK
        or result.status is not Status.UNKNOWN
        or not needed.issuperset(result.hosts)
    ):
        return result
    why = (result.reason or "").removeprefix(f"{PYTHON.name}: ")
    then = "start it there to see why, or name another with --python"
    return replace(result, reason=f"the job's Python could not be examined ({why}): {then}", essential=True)
