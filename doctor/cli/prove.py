"""`doctor explain --run HOSTS`: the checks of a conclusion, made on the hosts, and what they prove."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from doctor.judge.verdict import Report
from doctor.logs.explained import Explained, Proof, Proved
from doctor.logs.judge.parties import bare
from doctor.logs.model import Charge
from doctor.model import Finding, Status
from doctor.report.headline import title
from doctor.run.examination import run_and_judge
from doctor.run.request import ExamFlags, Ready, Request
from doctor.text.nodeset import fold

FAILS = (Status.FAIL, Status.WARN)


def examined(request: Request, checks: Sequence[str], ready: Ready | None = None) -> Report | None:
    """None where no check of hosts is among them. What only a training shows is left to `doctor smoke`."""
    only = tuple(id for id in checks if not id.startswith("smoke-"))
    if not only:
        return None
    what = replace(request.what, only=only)
    asked = replace(request, command="check", what=ExamFlags(only=only, checks=what.checks), save=None)
    _, report = run_and_judge(asked, ready=ready)
    return report


def proofs(explained: Explained, report: Report | None) -> tuple[Proof, ...]:
    """Of each cause: one of its checks fails now on a host that the logs name, or they pass there."""
    charges = explained.conclusion.charges
    return tuple(_proof(explained, place, charges[place], report) for place in explained.roots)


def _proof(explained: Explained, place: int, charge: Charge, report: Report | None) -> Proof:
    asked = [id for id in charge.checks if not id.startswith("smoke-")]
    if not charge.checks:
        return Proof(place, Proved.OPEN, "no check of hosts can show it")
    if report is None or not asked:
        return Proof(place, Proved.OPEN, "only a training shows it: doctor smoke" if not asked else "")
    at = _hosts_of_addresses(report)
    said = [at.get(bare(each.host or each.address or "")[0]) or each.host for each in charge.who]
    named = list(filter(None, said))
    there = [host.name for host in report.hosts if any(same(host.name, name) for name in named)]
    if named and not there:
        return Proof(place, Proved.OPEN, f"{fold(named)} is not among the hosts that were examined")
    failing = [f for f in report.findings if f.check in asked and f.status in FAILS]
    here = [f for f in failing if not named or not f.hosts or set(f.hosts) & set(there)]
    if here:
        first = min(here, key=lambda f: (f.status is not Status.FAIL, asked.index(f.check)))
        where = fold([host for host in first.hosts if not named or host in there]) or "the hosts"
        return Proof(place, Proved.PROVED, f"{first.check} fails on {where}: {title(first)}{_unsure(named)}")
    elsewhere = "".join(_elsewhere(failing[:1]))
    passed = _decided(report, asked, there, Status.PASS)
    left = [id for id in asked if id not in passed]
    if not passed:
        return Proof(place, Proved.OPEN, f"{_names(left)} could not be decided{elsewhere}")
    where = fold(there) if there else "all hosts"
    passes = "passes" if len(passed) == 1 else "pass"
    if undecided := _decided(report, left, there, Status.UNKNOWN):
        says = f"{_names(undecided)} could not be decided; {_names(passed)} {passes} on {where}{elsewhere}"
        return Proof(place, Proved.OPEN, says)
    if unseen := explained.unseen_of(charge):
        look = "does not look" if len(passed) == 1 else "do not look"
        return Proof(place, Proved.OPEN, f"{_names(passed)} {passes} on {where}, but {look} at {unseen}")
    return Proof(place, Proved.GONE, f"{_names(passed)} {passes} on {where}{elsewhere}")


def _hosts_of_addresses(report: Report) -> dict[str, str]:
    """As the plan of those that were examined has them."""
    found: dict[str, str] = {}
    for host in report.plan.hosts:
        for address in (host.given, host.data.value if host.data else ""):
            if ip := bare(address)[0]:
                found[ip] = host.name
    return found


def same(one: str, other: str) -> bool:
    """Whether two names may be those of one host: as `node3` and `node3.example.org` are."""
    a, b = one.lower().split("."), other.lower().split(".")
    if any(part.isdigit() for part in (a[0], b[0])):  # an address
        return a == b
    return a[0] == b[0] and (len(a) == 1 or len(b) == 1 or a == b)


def _decided(report: Report, checks: Sequence[str], hosts: Sequence[str], status: Status) -> list[str]:
    """The checks that came out so on one of the hosts, and nowhere there otherwise worse."""
    return [
        id
        for id in checks
        if any(
            result.check == id and result.status is status and (not hosts or {*result.hosts} & {*hosts})
            for result in report.results
        )
    ]


def _elsewhere(findings: Sequence[Finding]) -> Iterator[str]:
    yield from (f"; {each.check} fails on {each.nodeset or 'all'}" for each in findings)


def _unsure(named: Sequence[str]) -> str:
    return "" if named else " (no log names the host)"


def _names(checks: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(checks[:-1]), checks[-1]))) if checks else "nothing"
