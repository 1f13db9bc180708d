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
from doctor.text.hostprogram import sections
from doctor.text.printable import clean_line

PREFIX = "cluster_doctor_"
_HELP = sections(__file__, "prometheus.txt")["gauges"]
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
    families: Mapping[str, Mapping[Labels, float]] = {
        "build_info": {(("version", __version__),): 1},
        "verdict": verdicts,
        "exit_code": {(): envelope.exit_code},
        "run_start_timestamp_seconds": times,
        "run_duration_seconds": {(): envelope.run.seconds},
        "hosts": hosts,
        "host_healthy": healthy,
        "check_status": checks,
        "check_waived": waived,
    }
    return "".join(_gauge(name, label, series) for name, series in families.items() if series).encode()


def _gauge(name: str, command: tuple[str, str], series: Mapping[Labels, float]) -> str:
    """A metric with all its series."""
    lines = (
        f"{PREFIX}{name}{_labels((command, *labels))} {value:.15g}\n" for labels, value in series.items()
    )
    return f"# HELP {PREFIX}{name} {_HELP[name]}\n# TYPE {PREFIX}{name} gauge\n{''.join(lines)}"


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    pairs = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{pairs}}}"


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
