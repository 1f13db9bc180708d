"""`doctor check --again FILE`: runs the checks that failed in an earlier run again, and no others.

What it needs to know of that run comes from a recording or a JSON report.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

import msgspec

from doctor.api import RANKS
from doctor.errors import EXIT_INCONCLUSIVE, EXIT_OK, UsageError
from doctor.exam.examination import judge_again, run_and_judge
from doctor.exam.request import Request
from doctor.exam.way import retyped
from doctor.facts.processes import KERNEL_LOG
from doctor.judge.again import EarlierFinding, compare
from doctor.judge.commands import pairs
from doctor.judge.reading import Reading
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.model import Place, Status, Verdict
from doctor.recording import Counted, Recording, counted, load
from doctor.report.files.envelope import EnvelopeRun, as_json
from doctor.report.files.json import check_report
from doctor.report.out.outputs import deliver, refuse_unwritable
from doctor.report.page.rerun import DEFAULT_EXAM, end_of, of_check
from doctor.savedrun import read_saved
from doctor.targets.inputkind import InputKind, input_kind
from doctor.text.announce import announce
from doctor.text.nodeset import is_host
from doctor.text.outfile import why_not_ours
from doctor.text.printable import clean_line
from doctor.transport.way import Way, read_back

KNOWN = (
    *("HOSTS", "--hostfile", "--pods", "--on-nodes", "--local", "--exclude", "--only", "--skip"),
    *("--need-hosts", "--shadow", "--per-host"),
)
"""Options that the file replaces, or whose output is about all that a run looks at."""
COMMANDS = ("check", "smoke", "preflight")
RULES = ("--exam", "--only", "--skip", "--expect", "--strict", "--mesh")
"""Options that decide what counts as a fault."""
OWN_FILES = ("--ssh-config", "--hostfile", "--inventory", "--waivers")
"""Files that say which programs are run, which hosts are asked, and what is accepted."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    command: str
    exam: str
    hosts: tuple[str, ...]
    way: Way
    failed: tuple[EarlierFinding, ...]
    """What failed; if nothing did, whatever had to be decided but was left undecided."""
    healthy: bool
    ended: str
    logged: frozenset[str]
    """The checks of the kernel's log."""
    of_one_host: frozenset[str]
    """The checks whose result for a host does not depend on the other hosts of the job."""
    counted: Counted = field(default_factory=dict)


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


class _ReportHost(msgspec.Struct, frozen=True):
    name: str


class _ReportFinding(msgspec.Struct, frozen=True):
    id: str
    check: str | None
    status: Status
    hosts: tuple[str, ...]
    where: tuple[Place, ...]
    headline: str
    open: bool = False


class _EarlierOptions(msgspec.Struct, frozen=True):
    """The options in the file of an earlier run, and nothing else of it."""

    way: Way | None = None


class _JsonReport(msgspec.Struct, frozen=True):
    """The part of a JSON report that is used."""

    run: EnvelopeRun
    hosts: tuple[_ReportHost, ...]
    findings: tuple[_ReportFinding, ...]
    verdict: Verdict
    way: Way | None = None


def read_earlier(path: Path, request: Request) -> EarlierRun:
    """The earlier run, judged by its own rules and those of the request. Raises UsageError."""
    if why := why_not_ours(path):
        raise UsageError(f"{path}: {why}.", "What it names is run: copy it to a file of yours first.")
    raw = read_saved(path)
    if input_kind(raw.decode(errors="replace")) is InputKind.REPORT:
        earlier = _of_report(path, raw, request)
    else:
        reading, judged = _judged(path, request)
        earlier = replace(
            _of_report(path, as_json(check_report(judged)), request),
            of_one_host=judged.checks.of_one_host,  # a report does not say how its ranks were counted
            counted=counted(reading.recording.heard),
        )
    for option, *value in (*earlier.way.named, *earlier.way.reached, *earlier.way.asked):
        if option in OWN_FILES and option not in request.typed and (why := why_not_ours(Path(value[0]))):
            raise UsageError(f"{path}: it names {option} {value[0]}, and {why}.", f"Type {option} yourself.")
    return earlier


def _judged(path: Path, request: Request) -> tuple[Reading, Report]:
    recorded = load(path)
    _refuse_others(path, recorded.command)
    _refuse_without_its_checks(path, request)
    rules = [option for option in (recorded.way or Way()).asked if option[0] in RULES]
    return judge_again(retyped(replace(request, command=recorded.command), rules), recorded)


def _of_report(path: Path, raw: bytes, request: Request) -> EarlierRun:
    try:
        report = msgspec.json.decode(raw, type=_JsonReport)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        why = f"its JSON does not fit ({clean_line(str(error))})"
        raise UsageError(f"{path}: is a damaged report: {why}.") from None
    _refuse_others(path, report.run.command)
    names = tuple(host.name for host in report.hosts)
    mentioned = {name for each in report.findings for name in each.hosts}
    if not names or not all(map(is_host, names)) or not mentioned <= {*names}:
        raise UsageError(f"{path}: is a damaged report: its hosts do not add up.")
    failing = {Status.FAIL, *([Status.WARN] if report.run.strict or request.what.strict else [])}
    known = find_checks(request.what.checks).checks
    failed = [each for each in report.findings if each.status in failing]
    return EarlierRun(
        report.run.command,
        report.run.exam or DEFAULT_EXAM,
        names,
        read_back(report.way) if report.way else Way(),
        tuple(
            EarlierFinding(each.id, each.check, each.hosts, each.where, each.headline)
            for each in failed or [each for each in report.findings if each.open]
            if each.check
        ),
        report.verdict is Verdict.HEALTHY,
        end_of(report.run.started, report.run.seconds),
        frozenset(each.id for each in known if KERNEL_LOG in each.needs),
        frozenset(each.id for each in known if each.of_one_host and RANKS not in each.needs),
    )


def _refuse_without_its_checks(path: Path, request: Request) -> None:
    """A recording holds answers: without the checks of that run, what they found would seem to pass."""
    way = msgspec.json.decode(read_saved(path), type=_EarlierOptions).way
    folders = [option[1] for option in (way.asked if way else ()) if option[0] == "--checks" and option[1:]]
    if folders and "--checks" not in request.typed:
        named = ", ".join(map(clean_line, folders))
        raise UsageError(f"{path}: that run also ran the checks of {named}.", "Name them with --checks.")


def _refuse_others(path: Path, command: str) -> None:
    if command not in COMMANDS:
        raise UsageError(
            f"{path}: doctor {clean_line(command)} made it; "
            f"--again reads reports of {', '.join(COMMANDS)} only.",
            "Type that command again.",
        )
