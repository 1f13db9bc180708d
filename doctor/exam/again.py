"""`doctor check --again FILE`: runs the checks that failed in an earlier run again, and no others."""

import shlex
from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from doctor.errors import EXIT_INCONCLUSIVE, EXIT_OK, UsageError
from doctor.exam.earlier_run import EarlierRun, read_earlier
from doctor.exam.examination import run_and_judge
from doctor.exam.request import Request
from doctor.exam.way import retyped
from doctor.judge.again import compare
from doctor.judge.commands import pairs
from doctor.recording import Recording
from doctor.report.out.outputs import deliver, refuse_unwritable
from doctor.report.page.rerun import DEFAULT_EXAM, of_check
from doctor.text.announce import announce
from doctor.text.printable import clean_line

KNOWN = (
    *("HOSTS", "--hostfile", "--pods", "--on-nodes", "--local", "--exclude", "--only", "--skip"),
    *("--need-hosts", "--shadow", "--per-host"),
)
"""Options that the file replaces, or whose output is about all that a run looks at."""


def look_again(request: Request, path: Path) -> int:
    """Run the checks that failed once more; the exit code is 0 if everything that failed is fixed."""
    file = clean_line(str(path))
    if clash := [name for name in KNOWN if name in request.typed]:
        raise UsageError(
            f"--again cannot be combined with {', '.join(clash)}: it looks at what failed in {file}.",
            "Leave one of them out.",
        )
    refuse_unwritable(request.outputs, {"--save": request.save}, [*request.inputs(), ("--again", path)])
    earlier = read_earlier(path, request)
    if not earlier.failed:
        said = "" if earlier.healthy else ", although it was not healthy: `doctor check` examines all again"
        announce(f"nothing failed in {file}{said}.")
        return EXIT_OK if earlier.healthy else EXIT_INCONCLUSIVE
    line = _line(earlier)
    if not request.outputs.quiet:
        announce(f"looks again at what failed in {file}: {line}")
    reading, report = run_and_judge(_rerun_request(request, line), earlier=earlier.counted)
    found = compare(earlier.failed, report.results, _unheard(earlier.hosts, reading.recording))
    return deliver(replace(report, again=found, again_from=path.name), reading, request.outputs, request.save)


def _unheard(hosts: Iterable[str], now: Recording) -> dict[str, str]:
    """The hosts of the earlier run that did not answer this time, and why."""
    named = {host.name for host in now.hosts}
    return {
        **dict.fromkeys((host for host in hosts if host not in named), "it is no longer one of the hosts"),
        **dict.fromkeys(now.unfinished, "it had not answered when the run ended"),
        **{name: why.summary for name, why in now.unreached.items()},
    }


def _line(earlier: EarlierRun) -> str:
    """The command line that runs only these checks, on the hosts they need, with the options of the job."""
    checks = list(dict.fromkeys(each.check for each in earlier.failed))
    trained = any(check.startswith("smoke-") for check in checks)
    command = earlier.command if trained else "check"
    if trained:  # a training that now fails another smoke check has not passed either
        checks = [*(check for check in checks if not check.startswith("smoke-")), "smoke-*"]
    guilty = {host for each in earlier.failed for host in each.hosts}
    alone = earlier.of_one_host.issuperset(checks) and all(each.hosts for each in earlier.failed)
    hosts = [host for host in earlier.hosts if not alone or host in guilty]
    since = "" if earlier.logged.isdisjoint(checks) else earlier.ended
    way = of_check(earlier.way, earlier.command if command == "check" else "check", checks, since)
    usual = "smoke" if command == "smoke" else DEFAULT_EXAM
    named = earlier.exam == usual or any(option[0] == "--exam" for option in way.asked)
    options = (("--only", ",".join(checks)), *(() if named else (("--exam", earlier.exam),)))
    way = replace(way, slurm_job="")  # a file does not choose the job in which this run takes place
    return way.typed(command, hosts, options, whole=not alone, job=True)


def _rerun_request(request: Request, line: str) -> Request:
    """The request for a command line from `_line`; options typed for this run override it."""
    _, command, *words = shlex.split(line)
    hosts = tuple(takewhile(lambda word: not word.startswith("-"), words))
    asked = retyped(request, pairs(words[len(hosts) :]))
    return replace(asked, command=command, who=replace(asked.who, hosts=hosts))
