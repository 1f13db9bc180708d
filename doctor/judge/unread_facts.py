"""Facts that a host did not give and that no check reports: noted, because they were not examined."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from doctor.api import Check, Fact, OptionalNeed
from doctor.facts.software import PYTHON, Python
from doctor.judge.engine import Facts
from doctor.judge.hung_tools import HungTools
from doctor.model import MissingFact, Result, Status
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold

SHOWN = 8
MOST = 200
"""The most characters of a reason, because a host may have written part of it."""


def unread_facts(
    always: Sequence[Fact[Any]],
    checks: Sequence[Check],
    results: Sequence[Result],
    facts: Facts,
    hung: HungTools,
    cut: Collection[str],
) -> Iterator[str]:
    """`always`: what the plan needs. A `cut` answer, and a tool that `hung`, are already reported."""
    tried = {result.check for result in results if result.status is not Status.SKIP}
    without = [
        n.need for check in checks if check.id in tried for n in check.needs if isinstance(n, OptionalNeed)
    ]
    told = {
        (host, result.reason.partition(":")[0])
        for result in results
        if result.status in (Status.UNKNOWN, Status.CRASH) and result.reason
        for host in result.hosts
    }
    lacking: dict[tuple[str, str], list[str]] = {}
    for fact in dict.fromkeys([*always, *(need for need in without if isinstance(need, Fact))]):
        for host in facts.hosts:
            asked = fact.name in facts.heard[host].captures or fact.name in facts.heard[host].missing
            known = host in cut or (host, fact.name) in told or (fact.group and (host, fact.group) in hung)
            value = facts.get(host, fact) if asked and not known else None
            if isinstance(value, MissingFact) and not value.absent:
                lacking.setdefault((fact.name, value.reason[:MOST]), []).append(host)
    for (name, reason), hosts in list(lacking.items())[:SHOWN]:
        yield f"{name} of {fold(hosts)} could not be read: {reason}"
    if len(lacking) > SHOWN:
        yield f"{len(lacking) - SHOWN} more facts could not be read"


def unread_packages(facts: Facts) -> Iterator[str]:
    """Packages of the interpreter of which nothing can be compared."""
    lacking = grouped((said, host) for host, own in facts.all(PYTHON).items() for said in _unversioned(own))
    for (what, why), hosts in lacking.items():
        yield f"{what} of {fold(hosts)} could not be read: {why}"


def _unversioned(python: Python) -> Iterator[tuple[str, str]]:
    if not python.version:
        yield "packages", "no interpreter was found"
    yield from ((name, "its files hold no version") for name in sorted(python.unversioned))
