"""The report of logs as a page: the rank that ended the job comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from doctor.logs.explained import Explained, Proved, headline, last_words, place_of, told_at, why_unknown
from doctor.logs.loss.drawn import drawing
from doctor.logs.model import Charge, Line, LogFile, Outcome
from doctor.model import Confidence
from doctor.report.card import Card, Chart, Form, Kind, On, Page, Pairs, Part, Row, Table
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

WORDS = {
    Outcome.NAMED: ("Named", Kind.FAIL),
    Outcome.CLEAN: ("Clean", Kind.GOOD),
    Outcome.UNKNOWN: ("Unknown", Kind.OPEN),
}
_PROVED = {Proved.PROVED: Kind.FAIL, Proved.GONE: Kind.GOOD, Proved.OPEN: Kind.OPEN}
LINES = 3
"""Lines of a charge that are quoted without -v; the others are only counted."""
LED_TO = 4
FEW = 8
LEFT = 4
CAUSES = 4


def page_of(explained: Explained) -> Page:
    found = explained.conclusion
    name, kind = WORDS[found.outcome]
    first = next((found.charges[n].symptom for n in explained.roots if found.charges[n].symptom), None)
    return Page(
        explained.command,
        explained.started,
        name,
        kind,
        _title(explained),
        last_words(explained),
        ((explained.read, ""),) if explained.read else (),
        tuple(_cards(explained)),
        "Causes",
        parts=tuple(_parts(explained)),
        after=(("More: ", f"doctor explain {first}"),) if found.outcome is Outcome.NAMED and first else (),
    )


def _title(explained: Explained) -> str:
    found, roots = explained.conclusion, explained.roots
    if found.outcome is Outcome.UNKNOWN:
        return why_unknown(explained)
    if found.outcome is Outcome.CLEAN or not roots:
        return "nothing in what was read complains"
    return headline(found.charges[roots[0]])


def _cards(explained: Explained) -> Iterator[Card]:
    """One card for each cause; without a cause, one for each charge. HTML pages also get the consequences."""
    found = explained.conclusion
    if found.outcome is Outcome.UNKNOWN:
        yield Card("UNKNOWN", says=why_unknown(explained), on=On.TEXT)
        for place, charge in enumerate(found.charges):
            yield Card(says=headline(charge), rows=tuple(_rows(explained, place)), on=On.ALL)
    for place in explained.roots if found.outcome is Outcome.NAMED else ():
        yield _cause(explained, place)
        for charge in explained.led_to(place):
            rows = tuple(_rows(explained, found.charges.index(charge), alone=False))
            tag = charge.symptom or ""
            yield Card("LED TO", says=headline(charge), tag=tag, rows=rows, on=On.HTML, follows=True)


def _cause(explained: Explained, place: int) -> Card:
    charge = explained.conclusion.charges[place]
    unsure = charge.confidence is Confidence.SUSPECT
    proof, rows = explained.proof_of(place), list(_rows(explained, place))
    if proof:
        head, kind = proof.proved.value, _PROVED[proof.proved]
        says = (proof.says,) if proof.says else ()
        rows.insert(0, Row("on hosts", says, on=On.ALWAYS, head=head, kind=kind))
    return Card(
        "SUSPECT" if unsure else "FAIL",
        Kind.OPEN if unsure else Kind.FAIL,
        says=headline(charge),
        tag=charge.symptom or charge.confidence.value,
        rows=tuple(rows),
        ids=(f"f{place + 1}",),
    )


def _rows(explained: Explained, place: int, *, alone: bool = True) -> Iterator[Row]:
    """The rows of a charge. Not `alone`: it is a consequence; the remedy of its cause is enough."""
    charge = explained.conclusion.charges[place]
    yield Row("known by", charge.how)
    yield Row("lines", _quoted(charge.lines), Form.QUOTED, On.ALL if alone else On.FULL, LINES)
    led = tuple(map(_consequence, explained.led_to(place)))
    yield Row("led to", led, on=On.TEXT, few=LED_TO, noun="consequences")
    many = len(charge.causes) > 1
    form = Form.NUMBERED if many else Form.WORDS
    yield Row("causes" if many else "why", charge.causes, form, few=CAUSES, noun="causes")
    yield Row("counted", (f"{charge.count} lines",) if charge.count > 1 else (), on=On.FULL)
    yield Row("certainty", (charge.confidence.value,), on=On.FULL)
    if charge.remedy and alone:
        yield Row("do", charge.remedy.commands, Form.TYPED)


def _quoted(lines: Iterable[Line]) -> tuple[str, ...]:
    return tuple(f"{place_of(line)}: {' '.join(line.text.split())}" for line in lines)


def _consequence(charge: Charge) -> str:
    times = f"{charge.count} lines" if charge.count > 1 else ""
    more = ", ".join(filter(None, (charge.symptom, times)))
    return headline(charge) + (f" ({more})" if more else "")


def _parts(explained: Explained) -> Iterator[Part]:
    found = explained.conclusion
    if found.odd and found.outcome is not Outcome.NAMED:
        yield Row("First odd lines", _quoted(found.odd), Form.QUOTED, few=FEW)
    if explained.progress and found.outcome is Outcome.UNKNOWN:
        yield Row("How far each rank was", _quoted(explained.progress), Form.QUOTED, few=FEW)
    if found.beside:
        yield Row("Other attempts and jobs", found.beside)
    if timed := sum(at is not None for at, _ in found.story):
        on = On.ALL if timed > 1 else On.FULL
        yield Pairs("What happened when", (*told_at(found.story),), on, FEW, "moments", aligned=True)
    if losses := drawing(explained.logs.curves, found.charges):
        yield Chart("Loss", losses, On.ALL if _draws_losses(explained) else On.FULL)
    if commands := explained.proves():
        yield Row("Prove it on the hosts", commands, Form.TYPED)
    if unknown := (*found.open, *explained.unread):
        yield Row("Not known", unknown, few=LEFT, noun="such lines")
    else:  # an HTML page has room to say that nothing was left out
        yield Row("Not known", ("Everything that was given was read.",), on=On.HTML)
    if files := explained.logs.files:
        heads = ("File", "Lines", "Written by", "Ranks and hosts")
        yield Table("What was read", heads, tuple(map(_file, files)), On.HTML)


def _draws_losses(explained: Explained) -> bool:
    """Whether the losses show a fault, or nothing else does."""
    found = explained.conclusion
    of_losses = any((each.symptom or "").startswith("loss-") for each in found.charges)
    return of_losses or found.outcome is not Outcome.NAMED


def _file(file: LogFile) -> tuple[str, ...]:
    ranks = file.ranks or (() if file.who.rank is None else (file.who.rank,))
    of = " on ".join(filter(None, (ranks_text(ranks, most=4) if ranks else "", fold([file.who.host or ""]))))
    return file.name, f"{file.lines:,}", ", ".join(form.value for form in file.forms[:4]), of
