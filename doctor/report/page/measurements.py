"""One line for each area with what was measured, and what was not tried.

A line is ticked only if checks of its area passed on all hosts and the area has no finding. If nothing is
wrong there and something is undecided, the line says both.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from doctor.devices import VENDORS
from doctor.job.plan import LIBRARIES
from doctor.judge.verdict import Report
from doctor.model import Backend, Status, Verdict
from doctor.report.page.areas import AREAS, OTHER, area_of
from doctor.report.page.facts import spread
from doctor.report.page.names import named_or_counted
from doctor.report.page.smoke import RunNumbers, rate_text
from doctor.rules.smoke import together
from doctor.text.grouped import grouped
from doctor.text.hostprogram import sections
from doctor.text.nodeset import fold

_TABLE = sections(__file__, "measurements.txt")
APART = _TABLE["apart"]
"""Checks that the line of their area does not mention: if undecided, they are listed as not tried."""


JUDGED_BY: Mapping[str, tuple[str, ...]] = {
    **{fact: (check,) for fact, check in _TABLE["judged by"].items()},
    "devices_healthy": tuple(check for vendor in VENDORS for check in vendor.sick),
}
"""Facts that may be bad: a line mentions them only if the run has a check that judges them."""


RATES = "link rates"
SLOW_LINK = "smoke-slow-link"
REASONS = 2
"""The most reasons in one line."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """`text` may hold untrusted words of hosts: the code that shows it cleans it."""

    area: str
    text: str
    left: Literal["not tried", "not judged"] = "not tried"
    """The reason if it is not ticked."""


@dataclass(frozen=True, slots=True)
class MeasurementGroups:
    """What is healthy, what is healthy except for an undecided part, and what was not tried, with reasons."""

    ticked: tuple[Measurement, ...]
    doubtful: tuple[Measurement, ...]
    left: tuple[Measurement, ...]

    @property
    def untried(self) -> list[Measurement]:
        """What was not tried, one line for each reason."""
        lines = grouped((each.left, f"{each.area} ({each.text})") for each in self.left)
        return [Measurement(why, ", ".join(parts)) for why, parts in lines.items()]


def measured(report: Report) -> MeasurementGroups:
    said = _PassedResults(report)
    lines = {  # if nothing was measured of an area, the checks that passed
        area: line
        for area in AREAS
        if said.is_proved(area)
        and (line := _line(said, area) or _join(*filter(said.passes, said.checks(area))))
    }
    doubts = {
        area: why for area in AREAS if (area in lines or said.is_sound(area)) and (why := said.doubt(area))
    }
    ticked = [Measurement(area, line) for area, line in lines.items() if area not in doubts]
    doubtful = [
        Measurement(area, f"{line}; {why}") for area, why in doubts.items() if (line := _line(said, area))
    ]
    proved = {line.area for line in ticked}
    left = [Measurement(area, why) for area in AREAS if area not in proved and (why := said.not_tried(area))]
    left += [
        Measurement(name, "undecided")
        for check, name in APART.items()
        if said.found.get(check) == {Status.UNKNOWN} and area_of(check) in proved
    ]
    if "network" in proved and report.plan.several_hosts and not said.passes("port-unreachable"):
        left.append(Measurement("connections", said.why_not(["port-unreachable"]) or "left out"))
    if "training" in proved and report.verdict is Verdict.HEALTHY and (rates := said.unjudged_rates()):
        left.append(Measurement(RATES, rates, "not judged"))
    return MeasurementGroups(tuple(ticked), tuple(doubtful), tuple(left))


def unjudged_rates(report: Report) -> str:
    """The rates of links that were measured and not judged, and why, in a report that is not healthy."""
    if not report.training.runs or report.verdict is Verdict.HEALTHY or SLOW_LINK not in report.checks.scopes:
        return ""
    return _PassedResults(report).unjudged_rates()


class _PassedResults:
    """Results by check and by host, and the facts of all hosts in words."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.hosts = tuple(host.name for host in report.hosts)
        self.rows = {row.key: row for row in report.seen.facts}
        self.passed: dict[str, set[str]] = {}
        self.skipped: dict[str, str] = {}
        for result in report.results:
            if result.status is Status.PASS:
                self.passed.setdefault(result.check, set()).update(result.hosts)
            elif result.status is Status.SKIP and result.reason:
                self.skipped.setdefault(result.check, result.reason)
        self.found: dict[str, set[Status]] = {}
        for finding in report.findings:
            self.found.setdefault(finding.check, set()).add(finding.status)

    def passes(self, check: str) -> bool:
        """Whether the check passed on all hosts, without a finding."""
        return check not in self.found and self.passed.get(check, set()) >= set(self.hosts)

    def where_passed(self, check: str) -> str:
        """The hosts on which the check passed, unless these are all."""
        some = self.passed[check].intersection(self.hosts)
        return "" if len(some) in (0, len(self.hosts)) else f"{fold(some)}: "

    @property
    def no_devices(self) -> bool:
        """Whether every host reported that it has no devices."""
        row = self.rows.get("devices")
        return row is not None and not any(row.values.values()) and row.values.keys() >= set(self.hosts)

    def checks(self, area: str) -> list[str]:
        return [check for check in self.report.checks.scopes if area_of(check) == area]

    def is_proved(self, area: str) -> bool:
        if not self.hosts or (area == "training" and not self._trained()):
            return False
        if area.startswith("device") and self.no_devices:
            return False
        checks = self.checks(area)
        if any(self.found.get(check, set()) - self._waived(check) for check in checks):
            return False
        return set().union(*(self.passed.get(check, set()) for check in checks)) >= set(self.hosts)

    def is_sound(self, area: str) -> bool:
        """Whether nothing of the area is wrong, and something passed, while something is undecided."""
        checks = self.checks(area)
        found = set().union(*(self.found.get(check, set()) for check in checks))
        tried = area != "training" and not (area.startswith("device") and self.no_devices)
        return tried and found == {Status.UNKNOWN} and any(check in self.passed for check in checks)

    def doubt(self, area: str) -> str:
        """What is undecided there; empty if nothing is."""
        open_ = [
            finding.reason
            for finding in self.report.findings
            if finding.status is Status.UNKNOWN
            and area_of(finding.check) == area
            and not self._waived(finding.check)
        ]
        if area == "software" and (hosts := self._without_torch_npu()):
            where = "" if hosts == self.hosts else f" on {named_or_counted(hosts, self.report.called)}"
            open_.append(f"the job runs over hccl, and torch has no torch_npu{where}")
        reasons = list(dict.fromkeys(open_))
        more = f" and {len(reasons) - REASONS} more" if len(reasons) > REASONS else ""
        return f"not decided: {'; '.join(reasons[:REASONS])}{more}" if reasons else ""

    def _without_torch_npu(self) -> tuple[str, ...]:
        """Hosts whose torch cannot run the job on NPUs."""
        torch, npu = self.rows.get("torch"), self.rows.get("torch_npu")
        if torch is None or self.report.plan.backend.value is not Backend.HCCL or self._trained():
            return ()
        return tuple(
            host for host in self.hosts if torch.values.get(host) and not (npu and npu.values.get(host))
        )

    def _waived(self, check: str) -> set[Status]:
        return {Status.UNKNOWN} if check in APART and check not in self.report.rules.essential else set()

    def _trained(self) -> bool:
        training = self.report.training
        return bool(training.runs) and training.runs[-1].passed and not training.untrained

    def not_tried(self, area: str) -> str:
        """Why nothing of the area was examined; empty if something was, whatever the result."""
        checks = self.checks(area)
        if area.startswith("device") and self.no_devices:
            return "none found" if area == "devices" else ""
        if area == "training" and not self.report.training.runs:
            return self.report.training.not_made or "doctor smoke"
        if any(check in self.found or check in self.passed for check in checks):
            return ""
        return self.why_not(checks) if checks else "left out"

    def unjudged_rates(self) -> str:
        """The rates of links that could not be judged, and why; empty if there are none."""
        run = self.report.training.runs[-1]
        slowest = next(iter(RunNumbers(run).links), None)
        judged = "accept-slow-link" in self.passed or together(run.plan) > 2
        if slowest is None or (self.passes(SLOW_LINK) and judged):
            return ""
        why = "only the two directions between two hosts could be compared"
        if not self.passes(SLOW_LINK):
            why = self.why_not([SLOW_LINK]) or ("" if SLOW_LINK in self.report.checks.scopes else "left out")
        if not why:
            return ""
        return f"{' - '.join(slowest.hosts)} {rate_text(slowest.rate)} each way; {why}"

    def why_not(self, checks: Iterable[str]) -> str:
        return next((self.skipped[check] for check in checks if check in self.skipped), "")

    def __call__(self, key: str, form: str = "{}", none: str = "") -> str:
        """A fact in words; `none` if no host reported it, or if all reported that it does not exist."""
        judges = JUDGED_BY.get(key, ())
        if judges and not any(check in self.report.checks.scopes for check in judges):
            return ""
        row = self.rows.get(key)
        text = spread(row, self.hosts) if row else ""
        if row and text and (silent := len(self.hosts) - len(row.values)):
            text += f" (not reported by {silent} of {len(self.hosts)} hosts)"
        return form.format(text) if text not in ("", "none", "not installed") else none

    def told(self, key: str, form: str) -> str:
        """What a row of a line says: what is computed, that a check passed, or one or two facts in words."""
        if key in _COMPUTED:
            return _COMPUTED[key](self)
        if "-" in key:
            return form if self.passes(key) else ""
        first, _, second = key.partition(" ")
        form, _, more = form.partition("|")
        text = self(first, form, "" if second else more)
        return text + (self(second, more) if text and second else "")


def _join(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def _line(said: _PassedResults, area: str) -> str:
    return _join(*(said.told(key, form) for key, form in _TABLE[f"line of {area}"].items()))


def _hosts(said: _PassedResults) -> str:
    count = len(said.hosts)
    whom = f"{count} hosts" if count > 1 else "1 host"
    way = said("reached_by")
    return way if way == "this machine" else f"{whom} over {way}" if way else whom


def _clocks(said: _PassedResults) -> str:
    """The largest possible difference between two clocks, uncertainties included."""
    offset, doubt = said.rows.get("clock_offset_seconds"), said.rows.get("clock_uncertainty_seconds")
    if not offset or not doubt or offset.values.keys() != set(said.hosts) or not said.passes("clock-skew"):
        return ""
    latest = max(offset.values[host] + doubt.values[host] for host in said.hosts)
    apart = latest - min(offset.values[host] - doubt.values[host] for host in said.hosts)
    return f"clocks within {math.ceil(apart * 1e3) or 1} ms" if apart < 1 else f"clocks within {apart:.1f} s"


def _devices(said: _PassedResults) -> str:
    vendor = said.report.plan.vendor
    return said("devices", f"{{}} {vendor.thing}s a host" if vendor else "{} devices a host")


def _offers(said: _PassedResults) -> str:
    """Whether ranks would offer the addresses of these connections by themselves, or others that work too."""
    offered, tried = said.rows.get("rank_address"), said.rows.get("data_address")
    if not said.report.plan.several_hosts or not offered or not tried or not said.passes("interface-wrong"):
        return ""
    library = LIBRARIES[said.report.plan.backend.value]
    same = all(tried.values.get(host) == address for host, address in offered.values.items())
    what = "the same addresses" if same else "others that work too"
    return f"{library.name} takes {what}{' (emulated)' if library.emulated else ''}"


def _connections(said: _PassedResults) -> str:
    """The connections between ordered pairs of hosts: a pair works if all its tested connections do."""
    mesh = said.report.seen.mesh
    if mesh is None or not said.passes("port-unreachable"):
        return ""
    tried = [link for link in mesh.links if link.tested]
    pairs = {(link.source, link.target) for link in tried}
    good = pairs - {(link.source, link.target) for link in tried if link.failed}
    both = all((target, source) in good for source, target in good)
    kinds = {link.kind for link in tried}
    names = {"master": f"port {said.report.plan.master_port.value}", **_TABLE["ports"]}
    ports = [name for kind, name in names.items() if kind in kinds]
    possible = len(said.hosts) * (len(said.hosts) - 1)
    whole = "" if len(pairs) == possible else f"; of {possible} that there can be"
    ways = " both ways" if both else ""
    through = f" ({', '.join(ports[:-1])}{' and ' * (len(ports) > 1)}{ports[-1]}{whole})" if ports else ""
    load = f", with {mesh.load // 1024} KB each way" if said.passes("large-packets-lost") else ""
    return f"{len(good)} of {len(pairs)} connections work{ways}{through}{load}" if pairs else ""


def _network(said: _PassedResults) -> str:
    connections = _connections(said)
    return _join(connections, _offers(said) if connections else "")


def _software(said: _PassedResults) -> str:
    named = (row for row in said.report.seen.facts if row.area == "software" and row.key not in _UNNAMED)
    return _join(*(said(row.key, f"{row.title} {{}}", f"no {row.title}") for row in named))


_UNNAMED = ("os", "kernel", "python_path", "governor", "numa_balancing", "huge_pages", "swappiness")


def _training(said: _PassedResults) -> str:
    seen = RunNumbers(said.report.training.runs[-1])
    learned = seen.loss
    losses = [value for value in learned.curve if value is not None] if learned else []
    slowest = seen.links[0] if seen.links else None
    return _join(
        f"{seen.ranks}, {learned.steps if learned else 0} steps",
        f"loss {losses[0]:.2f} → {losses[-1]:.2f}" if losses else "",
        f"slowest link {' - '.join(slowest.hosts)} {rate_text(slowest.rate)} each way"
        if slowest and not said.unjudged_rates()
        else "",
    )


_COMPUTED: Mapping[str, Callable[[_PassedResults], str]] = {
    "hosts": _hosts,
    "clocks": _clocks,
    "number of devices": _devices,
    "free devices": lambda said: "free" if any(said.passes(vendor.busy) for vendor in VENDORS) else "",
    "free port": lambda said: (
        f"port {said.report.plan.master_port.value} free" if said.passes("port-in-use") else ""
    ),
    "connections": _network,
    "packages": _software,
    "training": _training,
}
"""Rows of the lines that are more than facts in words, or checks that passed."""

NOT_FOR_THIS = "does not apply"
MOST_REASONS = 4
"""The most reasons that are shown: the JSON has them all."""


def passed_lines(report: Report) -> tuple[Measurement, ...]:
    """The checks that passed, by area, with their hosts unless they passed on all."""
    said = _PassedResults(report)
    lines = []
    for area in (*AREAS, OTHER):
        named = grouped((said.where_passed(check), check) for check in said.passed if area_of(check) == area)
        if named:
            text = "; ".join(f"{where}{', '.join(ids)}" for where, ids in named.items())
            lines.append(Measurement(area, text))
    skipped: dict[str, str] = {}
    for result in report.results:
        if result.status is Status.SKIP and result.check not in said.passed:
            skipped.setdefault(result.check, result.reason or "for another reason")
    reasons = Counter(skipped.values())
    if number := sum(reasons.values()):
        told = [f"{count} ({reason})" for reason, count in reasons.most_common(MOST_REASONS)]
        if rest := number - sum(count for _, count in reasons.most_common(MOST_REASONS)):
            told.append(f"{rest} for other reasons")
        checks = f"{number} check{'' if number == 1 else 's'}"
        lines.append(Measurement(NOT_FOR_THIS, f"{checks}: {', '.join(told)}"))
    return tuple(lines)
