"""Commands to type to examine the hosts of a report once more.

They repeat the options that reach the hosts if the recording holds them; older recordings do not.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from math import ceil

from doctor.expect import WRITTEN, moment
from doctor.judge.commands import pairs
from doctor.judge.verdict import Report
from doctor.model import Finding, Status
from doctor.transport.way import Way

DEFAULT_EXAM = "preflight"
_ASIDE = (Status.UNKNOWN, Status.WAIVED)
"""Findings that are not to be fixed."""
_SINCE = re.compile(r"(?:^|,)kernel_log_since=[^,]*")
_MEANT = re.compile(r"Did you mean (\S+)\?$")
"""A name that no host has, beside one that a host has."""
VERIFIES_ITSELF = ("name-torch",)
"""Remedies that run doctor in a different way; running it as before would only show the same again."""


def again(report: Report, command: str, *options: str, hosts: Sequence[str] = ()) -> str:
    """`doctor COMMAND` over these hosts, or all of them: again(report, "check", "--only", "shm-*", hosts=…).

    It is quoted for a shell. In `options`, each option is one word and its value the next.
    """
    return _way(report).typed(command, hosts or report.plan.names, pairs(options), whole=not hosts)


def end_of(started: str, seconds: float) -> str:
    """When a run ended, as `--expect` takes it; empty if its file holds another text in place of the time."""
    begin = moment(started)
    try:
        return f"{begin + timedelta(seconds=ceil(seconds)):{WRITTEN}}" if begin else ""
    except (OverflowError, ValueError):
        return ""


def for_the_rest(report: Report) -> str:
    """The same run over the hosts that had not answered when it ended."""
    return _way(report).typed(report.run.command, report.run.outstanding, job=True)


def verify(report: Report, finding: Finding) -> str:
    """The command that runs the check of a finding again, with the options that describe the job: on all
    hosts, unless the check would find the same on these alone. It fails while the fault or warning is there;
    what the kernel logged is there if it comes again. Empty if the run does not say how its hosts are
    reached, for a consequence of another finding, and if the remedy verifies itself.
    """
    known = report.run.way is not None and not report.run.command.startswith("ranktable")
    itself = (finding.remedy and finding.remedy.id in VERIFIES_ITSELF) or "; the floor is " in finding.summary
    if not known or itself or finding.because is not None or finding.status in _ASIDE:
        return ""
    since = end_of(report.run.started, report.run.seconds) if finding.check in report.checks.logged else ""
    way = of_check(_way(report), report.run.command, [finding.check], since)
    strict = (("--strict",),) if finding.status is Status.WARN else ()
    soak = (("--for", "10m"),) if finding.check == "accept-soak" else ()
    if (training := finding.check.partition("-")[0]) in ("smoke", "accept"):
        return way.typed(training, report.plan.names, (*soak, *strict), whole=True, job=True)
    alone = finding.check in report.checks.of_one_host and finding.hosts
    hosts = [name for name in report.plan.names if not alone or name in finding.hosts]
    if meant := _MEANT.search(finding.summary):
        hosts = list(dict.fromkeys(meant[1] if name in finding.hosts else name for name in hosts))
    named = report.run.exam == DEFAULT_EXAM or any(option[0] == "--exam" for option in way.asked)
    options = (("--only", finding.check), *(() if named else (("--exam", report.run.exam),)), *strict)
    return way.typed("check", hosts, options, whole=not (alone or meant), job=True)


def for_one_more_host(report: Report, named: Sequence[str]) -> str:
    """The command that runs the chosen checks with another host added; the user replaces HOSTS."""
    way = _way(report)
    way = replace(way, reached=tuple(option for option in way.reached if option[0] != "--local"))
    return way.typed(
        report.run.command, (*report.plan.names, "HOSTS"), (("--only", ",".join(named)),), job=True
    )


def of_check(way: Way, command: str, checks: Iterable[str], since: str) -> Way:
    """The way of a run of that command, for these checks alone: no host may fail them. A run with a training
    expects torch by itself; `check` gets that expectation as an option. No repair takes a line out of the
    kernel's log: what is older than `since` does not count, unless that is empty.
    """
    asked = [option for option in way.asked if option[0] != "--need-hosts"]
    if since:
        newer = [(*option[:-1], _SINCE.sub("", option[-1]).lstrip(",")) for option in asked]
        asked = [*(option for option in newer if option[-1]), ("--expect", f"kernel_log_since={since}")]
    told = any(option[0] == "--expect" and option[1].startswith("torch=") for option in asked)
    if command != "check" and not told and any(check.startswith("torch-") for check in checks):
        asked.append(("--expect", "torch=any"))
    return replace(way, asked=tuple(asked))


def repeat(report: Report) -> str:
    """The command that repeats the whole run; empty for a rank table that was checked without hosts."""
    if report.run.command == "ranktable check" and report.run.way is None:
        return ""
    return _way(report).typed(report.run.command, report.plan.names, whole=True, job=True)


def _way(report: Report) -> Way:
    return report.run.way or Way()
