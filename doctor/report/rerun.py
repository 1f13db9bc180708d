"""Commands to type to examine the hosts of a report once more.

They repeat the options that reach the hosts if the recording holds them; older recordings do not.
"""

from __future__ import annotations

from collections.abc import Sequence

from doctor.judge.commands import pairs
from doctor.judge.verdict import Report
from doctor.model import Finding, Scope
from doctor.transport.way import Way

DEFAULT_EXAM = "preflight"


def again(report: Report, command: str, *options: str, hosts: Sequence[str] = ()) -> str:
    """`doctor COMMAND` over these hosts, or all of them: again(report, "check", "--only", "shm-*", hosts=…).

    It is quoted for a shell. In `options`, each option is one word and its value the next.
    """
    return _way(report).typed(command, hosts or report.plan.names, pairs(options), whole=not hosts)


def for_the_rest(report: Report) -> str:
    """The same run over the hosts that had not answered when it ended."""
    return _way(report).typed(report.run.command, report.outstanding, job=True)


def verify(report: Report, finding: Finding) -> str:
    """The command that runs the check of a finding again, with the options that describe the job: on its
    hosts, or on all hosts if the check compares them.
    """
    if finding.check.startswith("smoke-"):
        return _way(report).typed("smoke", report.plan.names, whole=True, job=True)
    alone = report.scopes.get(finding.check) is Scope.HOST and finding.hosts
    hosts = finding.hosts if alone else report.plan.names
    way = _way(report)
    named = report.run.exam == DEFAULT_EXAM or any(option[0] == "--exam" for option in way.asked)
    exam = () if named else (("--exam", report.run.exam),)
    return way.typed("check", hosts, (("--only", finding.check), *exam), whole=not alone, job=True)


def repeat(report: Report) -> str:
    """The command that repeats the whole run; empty for a rank table that was checked without hosts."""
    if report.run.command == "ranktable check" and report.run.way is None:
        return ""
    return _way(report).typed(report.run.command, report.plan.names, whole=True, job=True)


def _way(report: Report) -> Way:
    return report.run.way or Way()
