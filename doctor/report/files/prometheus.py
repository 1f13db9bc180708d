"""The report for the textfile collector of Prometheus' node exporter: gauges, in the text format 0.0.4.

There are at most as many series as hosts times checks: labels hold the command, names of hosts and ids of
checks, but no text from a host. A check that does not apply to a host has no series. The command tells the
files of one folder apart: the node exporter refuses the same series from two of them.
"""

from collections.abc import Iterable, Mapping

from doctor import __version__
from doctor.expect import moment
from doctor.model import HostStatus, Status, Verdict
from doctor.report.files.envelope import Envelope
from doctor.report.files.outcomes import NO_HOST, outcomes
from doctor.text.printable import clean_line

PREFIX = "cluster_doctor_"
VALUES = {Status.PASS: 0, Status.UNKNOWN: 1, Status.WARN: 2, Status.CRASH: 3, Status.FAIL: 4}
"""Worse is higher, so that max() over hosts is the worst result."""
Labels = tuple[tuple[str, str], ...]


def as_prometheus(envelope: Envelope) -> bytes:
    checks: dict[Labels, float] = {}
    for host, row in outcomes(envelope).items():
        named = (("host", clean_line(host)),) if host != NO_HOST else ()
        for check, outcome in row.items():
            if outcome.status in VALUES:
                series = (("check", clean_line(check)), *named)
                checks[series] = max(checks.get(series, 0), VALUES[outcome.status])
    waived: dict[Labels, float] = {
        (("check", clean_line(found.check or envelope.KEY)), ("host", clean_line(host))): 1
        for found in envelope.findings
        if found.status is Status.WAIVED
        for host in found.hosts
    }
    healthy: dict[Labels, float] = {}
    for each in envelope.hosts:
        series = (("host", clean_line(each.name)),)
        healthy[series] = min(healthy.get(series, 1), each.status is HostStatus.HEALTHY)
    verdicts: dict[Labels, float] = {(("verdict", one.value),): one is envelope.verdict for one in Verdict}
    hosts: dict[Labels, float] = {
        (("status", one.value),): sum(each.status is one for each in envelope.hosts) for one in HostStatus
    }
    begin, label = moment(envelope.run.started), ("command", clean_line(envelope.run.command))
    times: dict[Labels, float] = {(): begin.timestamp()} if begin else {}
    families: tuple[tuple[str, str, dict[Labels, float]], ...] = (
        ("build_info", "The version, with the value 1.", {(("version", __version__),): 1}),
        ("verdict", "1 for the verdict of the run, 0 for the others.", verdicts),
        ("exit_code", "The exit code of the run; 0 is a go.", {(): envelope.exit_code}),
        ("run_start_timestamp_seconds", "When the run began.", times),
        ("run_duration_seconds", "How long the run took.", {(): envelope.run.seconds}),
        ("hosts", "Number of hosts by status.", hosts),
        ("host_healthy", "1 if the host is proved healthy, 0 if faulty or not examined.", healthy),
        (
            "check_status",
            "0 passed, 1 undecided, 2 warning, 3 the check broke, 4 failed; no host: not about a single one.",
            checks,
        ),
        ("check_waived", "1 if a fault was found there and is accepted until a date.", waived),
    )
    return "".join(_gauge(name, help, label, series) for name, help, series in families if series).encode()


def _gauge(name: str, help: str, command: tuple[str, str], series: Mapping[Labels, float]) -> str:
    """A metric with all its series."""
    lines = (
        f"{PREFIX}{name}{_labels((command, *labels))} {value:.15g}\n" for labels, value in series.items()
    )
    return f"# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} gauge\n{''.join(lines)}"


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{pairs}}}"


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
