"""The worst outcome of each check on each host, taken from the findings, with the reason.

A suspect that a cause has cleared is in no finding, and so it is not a culprit here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from doctor.model import Status
from doctor.report.files.envelope import Envelope, FindingEntry

WORST = tuple(Status[name] for name in ("SKIP", "PASS", "WAIVED", "UNKNOWN", "WARN", "CRASH", "FAIL"))
NO_HOST = ""
"""The host of findings that are not about a single host."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """`reason` says why a check does not apply; `findings` are those of the worst status."""

    status: Status
    reason: str = ""
    findings: tuple[FindingEntry, ...] = ()


def outcomes(envelope: Envelope) -> Mapping[str, Mapping[str, CheckOutcome]]:
    """Host -> check -> outcome, in the order of the report; NO_HOST comes last."""
    table: dict[str, dict[str, CheckOutcome]] = {host.name: {} for host in envelope.hosts}
    clear = (each for each in envelope.results if each.status in (Status.PASS, Status.SKIP))
    told = [(each.hosts, each.check, CheckOutcome(each.status, each.reason or "")) for each in clear]
    told += [(each.hosts, each.check, CheckOutcome(each.status, "", (each,))) for each in envelope.findings]
    for hosts, check, outcome in told:
        for host in hosts or (NO_HOST,):
            _note(table, host, check or envelope.KEY, outcome)
    order = {check: number for number, check in enumerate(dict.fromkeys(r.check for r in envelope.results))}
    last = len(order)
    return {
        host: dict(sorted(row.items(), key=lambda item: order.get(item[0], last)))
        for host, row in table.items()
    }


def _note(table: dict[str, dict[str, CheckOutcome]], host: str, check: str, new: CheckOutcome) -> None:
    row = table.setdefault(host, {})
    old = row.get(check, new)
    if WORST.index(new.status) >= WORST.index(old.status):
        more = old.findings if old is not new and old.status is new.status else ()
        row[check] = CheckOutcome(new.status, new.reason, (*more, *new.findings))
