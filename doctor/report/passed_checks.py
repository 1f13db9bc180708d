"""What passed, one line per area, and one more line for checks that do not apply; shown with -v."""

from __future__ import annotations

from collections import Counter

from doctor.judge.verdict import Report
from doctor.model import Status
from doctor.report.areas import AREAS, OTHER, area_of
from doctor.report.measurements import Measurement
from doctor.text.nodeset import fold

NOT_FOR_THIS = "does not apply"
REASONS = 4
"""The most reasons that are shown: the JSON has them all."""


def passed_lines(report: Report) -> tuple[Measurement, ...]:
    """The checks that passed, by area, with their hosts unless they passed on all."""
    hosts = [host.name for host in report.hosts]
    passed: dict[str, dict[str, None]] = {}
    skipped: dict[str, str] = {}
    for result in report.results:
        if result.status is Status.PASS:
            passed.setdefault(result.check, {}).update(dict.fromkeys(result.hosts))
        elif result.status is Status.SKIP:
            skipped.setdefault(result.check, result.reason or "for another reason")
    lines = []
    for area in (*AREAS, OTHER):
        named: dict[str, list[str]] = {}
        for check, where in passed.items():
            if area_of(check) == area:
                some = [host for host in hosts if host in where]
                named.setdefault("" if len(some) in (0, len(hosts)) else f"{fold(some)}: ", []).append(check)
        if named:
            lines.append(
                Measurement(area, "; ".join(f"{where}{', '.join(ids)}" for where, ids in named.items()))
            )
    reasons = Counter(reason for check, reason in skipped.items() if check not in passed)
    if reasons:
        told = [f"{count} ({reason})" for reason, count in reasons.most_common(REASONS)]
        if rest := sum(reasons.values()) - sum(count for _, count in reasons.most_common(REASONS)):
            told.append(f"{rest} for other reasons")
        number = sum(reasons.values())
        checks = f"{number} check{'' if number == 1 else 's'}"
        lines.append(Measurement(NOT_FOR_THIS, f"{checks}: {', '.join(told)}"))
    return tuple(lines)
