"""The history of a fleet as a page, and as JSON."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from doctor.errors import EXIT_FAULT, EXIT_INCONCLUSIVE, EXIT_OK
from doctor.history.drain import Drained
from doctor.history.envelope import HistoryPart, HistoryReport, Machine
from doctor.history.fleet import Fleet
from doctor.history.kept import Kept
from doctor.report.files.envelope import EnvelopeRun, entry_of, outcome_of
from doctor.report.page.card import Card, CardKind, Grid, Medium, Page, Pairs, Part, Row, Square, Table
from doctor.text.nodeset import fold

FLAPS = 2
"""A check that came back within a week at least this often flaps."""
MOST_DAYS = 92
"""The days of the drawing: the last ones of the history."""
MOST_ROWS = 200
FEW = 20
_DAYS = "✗ faulty on that day, ✓ examined and not faulty. Without a sign: not decided."
_MARKS = {True: Square("✗", CardKind.FAIL, "faulty"), False: Square("✓", CardKind.GOOD, "not faulty")}


def exit_code_of(fleet: Fleet, found: Drained) -> int:
    """No fault of today is proved: was there anything to read, and are more faulty than may be drained?"""
    if fleet.empty:
        return EXIT_INCONCLUSIVE
    return EXIT_FAULT if found.withheld else EXIT_OK


def beyond(found: Drained) -> str:
    """What is said loudly if the budget does not reach."""
    listed, withheld = len(found.faulty), fold(each.name for each in found.withheld)
    return (
        f"called faulty: {listed + len(found.withheld)}; --most-drained lets {listed} be drained:"
        f" {withheld} not listed. If so many fail, look for what they share."
    )


def new_of(found: Drained, last: str) -> str:
    """What the last run changed; empty if nothing."""
    new = [
        (fold(each.name for each in machines if each.called and each.called.since == last), said)
        for machines, said in (
            ((*found.faulty, *found.withheld), "called faulty"),
            (found.cleared, "cleared"),
        )
    ]
    return ", ".join(f"{hosts} {said}" for hosts, said in new if hosts)


def headline(fleet: Fleet) -> str:
    if fleet.empty:
        return "No run was found"
    if suspects := _suspects(fleet):
        return f"Usual suspects: {fold(each.name for each in suspects)}"
    return "No machine fails more often than chance gives"


def _suspects(fleet: Fleet) -> list[Machine]:
    return sorted((one for one in fleet.machines if one.suspect), key=lambda one: (one.chance, one.name))


def _by_faults(fleet: Fleet) -> list[Machine]:
    return sorted(fleet.machines, key=lambda one: (-one.faulty, -sum(one.ended.values()), one.name))


def page_of(folders: Sequence[Path], kept: Kept, fleet: Fleet, found: Drained) -> Page:
    empty, suspects = fleet.empty, _suspects(fleet)
    read = f" runs: {fleet.runs}, machines: {len(fleet.machines)}"
    return Page(
        "history",
        fleet.last,
        "Undecided" if empty else "History",
        CardKind.OPEN if empty else CardKind.WARN if suspects else CardKind.GOOD,
        headline(fleet),
        f"{headline(fleet)}.",
        (
            (", ".join(os.path.join(each, "") for each in folders), read),
            *([("", f"from {fleet.first} to {fleet.last}")] if fleet.first else []),
        ),
        tuple(_card(machine, len(fleet.machines)) for machine in suspects),
        "Usual suspects",
        parts=(*_called(fleet, found), *_parts(kept, fleet)),
        notes=(*_of_the_shadow(fleet), *(f"{said}." for said in kept.open_to_others)),
    )


def _card(machine: Machine, machines: int) -> Card:
    days = sum(machine.fell.values())
    odds = f"1 in {1 / machine.chance:,.0f}" if machine.chance > 1e-6 else "less than 1 in a million"
    rows = (
        Row("found", tuple(f"{check}: {number} of {days} days" for check, number in machine.fell.items())),
        Row("chance", (f"that any of {machines} machines has so many: {odds}",)),
        Row("serial number", (machine.serial,) if machine.serial else ()),
        Row("names", tuple(machine.names) if len(machine.names) > 1 else ()),
    )
    return Card(
        "SUSPECT",
        CardKind.WARN,
        machine.name,
        f"became faulty on {days} days; chance gives it {machine.expected:.1f}",
        tag=next(iter(machine.fell)),
        rows=tuple(row for row in rows if row.lines),
    )


def _called(fleet: Fleet, found: Drained) -> Iterator[Part]:
    failed, cleared = fleet.enough
    for label, machines in (
        (f"Called faulty after {failed} faulty runs in a row", (*found.faulty, *found.withheld)),
        (f"Cleared after {cleared} runs in a row that found it repaired", found.cleared),
    ):
        rows = [
            (each.name, each.called.since[:10], ", ".join(each.called.checks))
            for each in machines
            if each.called
        ]
        yield from _table(label, ("HOST", "FROM", "CHECKS"), rows)


def _of_the_shadow(fleet: Fleet) -> Iterator[str]:
    if fleet.shadow:
        drained, wrong = (sum(getattr(each, key) for each in fleet.shadow) for key in ("drained", "wrong"))
        yield (
            f"In the shadow, a gate would have drained hosts {drained} times; {wrong} of these times the next"
            " run there found nothing."
        )


def _parts(kept: Kept, fleet: Fleet) -> Iterator[Part]:
    machines = _by_faults(fleet)
    troubled = [each for each in machines if each.checks]
    rows = [
        (
            each.name,
            f"{each.faulty} of {each.runs}",
            min(known.first for known in each.checks.values())[:10],
            max(known.last for known in each.checks.values())[:10],
            ", ".join(f"{check} ({known.runs})" for check, known in each.checks.items()),
        )
        for each in troubled
    ]
    yield from _table("Who was faulty", ("HOST", "RUNS", "FIRST", "LAST", "CHECKS (RUNS)"), rows)
    found = [(each, check, known.returns) for each in troubled for check, known in each.checks.items()]
    flapping = [(each.name, check, str(returns)) for each, check, returns in found if returns >= FLAPS]
    yield from _table("Checks that flap", ("HOST", "CHECK", "CAME BACK"), flapping)
    ended = [(each.name, str(number), why) for each in machines for why, number in each.ended.items()]
    yield from _table("Jobs that ended", ("HOST", "JOBS", "WHY"), ended)
    gates = [
        (each.name, str(each.runs), str(each.drained), str(each.wrong), ", ".join(each.checks))
        for each in fleet.shadow
        if each.drained
    ]
    yield from _table("In the shadow", ("HOST", "RUNS", "DRAINED", "GONE BY THE NEXT RUN", "CHECKS"), gates)
    if troubled:
        yield _days(troubled[:MOST_ROWS], sorted({day for each in machines for day in each.days}))
    if kept.passed_over:
        yield Pairs("Passed over", tuple(kept.passed_over.items()), few=FEW, noun="files")


def _table(label: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[Table]:
    for on, most in ((Medium.BRIEF, FEW), (Medium.FULL, MOST_ROWS)) if rows else ():
        more = f"{len(rows) - most} more are in the JSON." if len(rows) > most else ""
        yield Table(label, heads, tuple(rows[:most]), on, more)


def _days(machines: Sequence[Machine], days: Sequence[str]) -> Grid:
    """Host × day, newest first. Machines that had one name in turn are told apart by their numbers."""
    often = Counter(each.name for each in machines)
    named = {
        each.name if often[each.name] == 1 else f"{each.name} ({each.serial or '?'})": each
        for each in machines
    }
    squares = {
        (name, day): _MARKS[faulty] for name, each in named.items() for day, faulty in each.days.items()
    }
    return Grid("Days", _DAYS, tuple(named), squares, Medium.HTML, tuple(days[: -MOST_DAYS - 1 : -1]))


def history_report(folders: Sequence[Path], kept: Kept, fleet: Fleet, found: Drained) -> HistoryReport:
    names = dict.fromkeys(each.name for each in fleet.machines)
    return HistoryReport(
        run=EnvelopeRun(command="history", started=fleet.last),
        **outcome_of(
            exit_code_of(fleet, found), headline(fleet), names, {}, (), proves=False
        ),  # it examines none
        history=entry_of(
            HistoryPart,
            fleet,
            folders=tuple(map(str, folders)),
            machines=tuple(_by_faults(fleet)),
            passed_over=kept.passed_over,
            open_to_others=tuple(kept.open_to_others),
            fail_after=fleet.enough[0],
            clear_after=fleet.enough[1],
            withheld=tuple(each.name for each in found.withheld),
        ),
    )
