"""The report of logs as a page: the rank that ended the job comes first."""

import shlex
from collections.abc import Iterable, Iterator

from doctor.logs.explanation import (
    Explanation,
    ProofState,
    clean_words,
    headline,
    last_words,
    named_word,
    place_of,
    told_at,
    whom,
    why_unknown,
)
from doctor.logs.loss.drawing import drawing, hardly_falls
from doctor.logs.model import LogCause, LogFile, LogLine, LogOutcome, Role
from doctor.logs.naming import LONG, short_names
from doctor.logs.reading.stacks import own_frame
from doctor.logs.search import read_instead
from doctor.model import Confidence
from doctor.report.page.card import (
    Card,
    CardKind,
    Chart,
    Medium,
    Page,
    Pairs,
    Part,
    Row,
    RowForm,
    Step,
    Table,
)
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

_WORDS = {LogOutcome.CLEAN: ("Clean", CardKind.GOOD), LogOutcome.UNKNOWN: ("Unknown", CardKind.OPEN)}
_PROVED = {
    ProofState.PROVED: ("proved", CardKind.FAIL),
    ProofState.GONE: ("not seen any more", CardKind.GOOD),
    ProofState.OPEN: ("undecided", CardKind.OPEN),
}
LINES = 3
"""Lines of a charge that are quoted without -v; the others are only counted."""
AROUND = 5
"""Lines of the program that are shown above and below the one that raised the exception."""
LED_TO = 4
FEW = 8
LEFT = 4
CAUSES = 4
ELSEWHERE = "/data/run7/*.log"
"""An example of a place where a job writes."""


def page_of(explained: Explanation) -> Page:
    found, quotes = explained.conclusion, _Quotes(explained)
    if found.outcome is LogOutcome.NAMED:
        name, kind = named_word(explained), CardKind.FAIL
    else:
        name, kind = _WORDS[found.outcome]
    first = next((found.charges[n].symptom for n in explained.roots if found.charges[n].symptom), None)
    return Page(
        explained.command,
        explained.started,
        name,
        kind,
        _title(explained),
        last_words(explained),
        _about(explained),
        tuple(_cards(explained, quotes)),
        "Causes",
        parts=tuple(_parts(explained, quotes)),
        after=(Step("More: ", f"doctor explain {first}"),) if kind is CardKind.FAIL and first else (),
    )


def _title(explained: Explanation) -> str:
    found, roots = explained.conclusion, explained.roots
    if found.outcome is LogOutcome.UNKNOWN:
        return why_unknown(explained)
    if found.outcome is LogOutcome.CLEAN or not roots:
        return clean_words(found)
    return headline(found.charges[roots[0]])


def _about(explained: Explanation) -> tuple[tuple[str, str], ...]:
    read = explained.conclusion.read
    return ((read, f", in {explained.folder}" if explained.folder else ""),) if read else ()


class _Quotes:
    """Quotes lines with their place: a file has its full name once, after that a short one."""

    def __init__(self, explained: Explanation) -> None:
        self._short = short_names(file.name for file in explained.logs.files)
        self._shown: set[str] = set()

    def of(self, lines: Iterable[LogLine], few: int = 0) -> tuple[str, ...]:
        """Every output shows `few` of the lines; the names of the others do not count as shown."""
        return tuple(self._quoted(line, place < few) for place, line in enumerate(lines))

    def _quoted(self, line: LogLine, shown: bool) -> str:
        known = line.file in self._shown
        if shown:
            self._shown.add(line.file)
        name = self._short.get(line.file, line.file) if known and len(line.file) > LONG else line.file
        return (
            f"{name}:{line.number}: {' / '.join(' '.join(each.split()) for each in (line.text, *line.rest))}"
        )


def _cards(explained: Explanation, quotes: _Quotes) -> Iterator[Card]:
    """One card for each cause; without a cause, one for each charge. HTML pages also get the consequences."""
    found = explained.conclusion
    if found.outcome is LogOutcome.UNKNOWN:
        rows = tuple(_most_telling(explained, quotes))
        told = not rows and bool(found.charges) and why_unknown(explained) == headline(found.charges[0])
        rows = rows or tuple(_rows(explained, 0, quotes) if told else _looked_for(explained))
        yield Card("UNKNOWN", says=why_unknown(explained), rows=rows, on=Medium.ALL if rows else Medium.TEXT)
        for place, charge in enumerate(found.charges[told:], told):
            yield Card(says=headline(charge), rows=tuple(_rows(explained, place, quotes)), on=Medium.ALL)
    for place in explained.roots if found.outcome is LogOutcome.NAMED else ():
        yield _cause(explained, place, quotes)
        for charge in explained.led_to(place):
            rows = tuple(_rows(explained, found.charges.index(charge), quotes, alone=False))
            tag = charge.symptom or ""
            yield Card("LED TO", says=headline(charge), tag=tag, rows=rows, on=Medium.HTML, follows=True)


def _most_telling(explained: Explanation, quotes: _Quotes) -> Iterator[Row]:
    """The line to look at first, who wrote it, and why this one."""
    found = explained.conclusion
    if found.odd:
        line = found.odd[0]
        whole = not line.rest and why_unknown(explained).endswith(" ".join(line.text.split()))
        at = quotes.of((line,), 1)[0]
        yield Row("look at", (at[: len(place_of(line))] if whole else at,), RowForm.QUOTED)
        by = whom((found.odd[0].who,))
        why = "; ".join(filter(None, (f"{by} wrote it" if by else "", found.telling)))
        yield Row("because", (why,) if why else ())


def _looked_for(explained: Explanation) -> Iterator[Row]:
    """Where a log of the job was looked for in vain, what was read instead, and what to type."""
    if (search := explained.in_vain) is None:
        return
    since = f", written since {search.since}" if search.since else ""
    yield Row("looked in", (", ".join(search.patterns) + since,))
    quiet = ("nothing there complains",) if explained.logs.files else ()
    yield Row("read", (*read_instead(explained.logs), *quiet) or ("nothing",))
    command = explained.way.typed("logs", explained.asked, (("--path", ELSEWHERE),))
    if not explained.asked:
        command = f"doctor explain {ELSEWHERE}"
    older = " (--since 7d also finds older ones)" if search.since else ""
    yield Row("do", (f"# Say where the job writes its logs{older}:", command), RowForm.TYPED)


def _cause(explained: Explanation, place: int, quotes: _Quotes) -> Card:
    charge = explained.conclusion.charges[place]
    unsure = charge.confidence is Confidence.SUSPECT
    proof, rows = explained.proof_of(place), list(_rows(explained, place, quotes))
    if proof:
        head, kind = _PROVED[proof.proved]
        says = (proof.says,) if proof.says else ()
        rows.insert(0, Row("on hosts", says, on=Medium.ALWAYS, head=head, kind=kind))
    return Card(
        "SUSPECT" if unsure else "FAIL",
        CardKind.OPEN if unsure else CardKind.FAIL,
        says=headline(charge),
        tag=charge.symptom or ("" if unsure else charge.confidence.value),
        rows=tuple(rows),
        ids=(f"f{place + 1}",),
    )


def _rows(explained: Explanation, place: int, quotes: _Quotes, *, alone: bool = True) -> Iterator[Row]:
    """The rows of a charge. If not `alone`, it is a consequence, and the remedy of its cause is enough."""
    charge = explained.conclusion.charges[place]
    yield Row("known by", charge.how)
    lines = quotes.of(charge.lines, LINES if alone else 0)
    yield Row("lines", lines, RowForm.QUOTED, Medium.ALL if alone else Medium.FULL, LINES)
    if alone and charge.symptom and (raised := _raised_at(charge)):
        yield Row("raised at", ("{}:{}".format(*raised),))
    led = tuple(map(_consequence, explained.led_to(place)))
    if alone and (line := _raised(charge)):  # a page has room for the innermost calls before it
        yield Row("traceback", line.frames, RowForm.QUOTED, Medium.HTML)
    yield Row("led to", led, on=Medium.TEXT, few=LED_TO, noun="consequences")
    many = len(charge.causes) > 1
    form = RowForm.NUMBERED if many else RowForm.WORDS
    yield Row("causes" if many else "why", charge.causes, form, few=CAUSES, noun="causes")
    yield Row("counted", (f"{charge.count} lines",) if charge.count > 1 else (), on=Medium.FULL)
    if charge.symptom and charge.confidence is not Confidence.SUSPECT:  # otherwise the head says it
        yield Row("certainty", (charge.confidence.value,), on=Medium.FULL)
    if alone and charge.remedy and charge.remedy.commands:
        yield Row("do", charge.remedy.commands, RowForm.TYPED)
    elif alone:
        yield from _where_raised(charge)


def _where_raised(charge: LogCause) -> Iterator[Row]:
    """The command that shows the place in the program where the exception was raised."""
    if place := _raised_at(charge):
        file, number = place
        hosts = sorted({who.host for who in charge.who if who.host})
        where = f"type on {hosts[0]}:" if hosts else "type where the program is:"
        command = f"sed -n '{max(1, number - AROUND)},{number + AROUND}p' {shlex.quote(file)}"
        yield Row("do", (command,), RowForm.TYPED, head=where)


def _raised_at(charge: LogCause) -> tuple[str, int] | None:
    """The file and the line of the program, if all who are charged raised it there."""
    line = _raised(charge)
    several = {own_frame(each.frames) for each in charge.lines if each.frames}
    one = line is not None and len(several) < 2 and "SyntaxError" not in line.text
    return own_frame(line.frames) if line and one else None


def _raised(charge: LogCause) -> LogLine | None:
    """The exception of those who are charged, if its traceback is known: others show where they waited."""
    ranks = {None, *(each.rank for each in charge.who)}
    return next((line for line in charge.lines if line.frames and line.who.rank in ranks), None)


def _consequence(charge: LogCause) -> str:
    more = ", ".join(filter(None, (charge.symptom, f"{charge.count} lines" if charge.count > 1 else "")))
    return headline(charge) + (f" ({more})" if more else "")


def _parts(explained: Explanation, quotes: _Quotes) -> Iterator[Part]:
    found = explained.conclusion
    if len(found.odd) > 1 and found.outcome is not LogOutcome.NAMED:
        yield Row("Other odd lines", quotes.of(found.odd[1:], FEW), RowForm.QUOTED, few=FEW)
    if explained.progress and found.outcome is LogOutcome.UNKNOWN:
        yield Row("How far each rank was", quotes.of(explained.progress, FEW), RowForm.QUOTED, few=FEW)
    if found.ways:
        yield Row("How it ran", found.ways)
    if found.beside:
        yield Row("Other attempts and jobs", found.beside)
    if timed := sum(at is not None for at, _ in found.story):
        on = Medium.ALL if timed > 1 else Medium.FULL
        yield Pairs("What happened when", (*_story(explained),), on, FEW, "moments", aligned=True)
    if losses := drawing(explained.logs.curves, found.charges):
        yield Chart("Loss", losses, Medium.ALL if _draws_losses(explained) else Medium.FULL)
        if found.outcome is LogOutcome.CLEAN and any(map(hardly_falls, losses.lines)):
            yield Row("If the loss should fall further", ("doctor explain loss-stalled",), RowForm.TYPED)
    if commands := explained.proves():
        yield Row("Prove it on the hosts", commands, RowForm.TYPED)
    told = explained.in_vain and found.outcome is LogOutcome.UNKNOWN and not (found.odd or found.charges)
    if unknown := (*found.open, *(() if told else explained.not_found), *explained.unread):
        yield Row("Not known", unknown, few=LEFT, noun="such lines")
    else:  # an HTML page has room to say that nothing was left out
        yield Row("Not known", ("Everything that was given was read.",), on=Medium.HTML)
    if files := explained.logs.files:
        heads = ("File", "Lines", "Written by", "Ranks and hosts")
        yield Table("What was read", heads, tuple(map(_file, files)), Medium.HTML | Medium.VERBOSE)


def _story(explained: Explanation) -> Iterator[tuple[str, str]]:
    """The time line. What all else followed from is its first line, also if the time of that is not known:
    who only waited, or lost somebody, did not begin it.
    """
    found = explained.conclusion
    roots = [found.charges[root] for root in explained.roots if found.outcome is LogOutcome.NAMED]
    sure = [each for each in roots if each.role is Role.ROOT and each.confidence is not Confidence.SUSPECT]
    causes = (headline(each).split("; ")[0] for each in sure if not each.says.startswith("unknown who"))
    timed = [says for at, says in found.story if at is not None]
    first = [cause for cause in causes if not any(says.startswith(cause) for says in timed)]
    yield from (("first", cause) for cause in first)
    yield from told_at([moment for moment in found.story if not moment[1].startswith((*first,))])


def _draws_losses(explained: Explanation) -> bool:
    """Whether the losses show a fault, or nothing else does."""
    found = explained.conclusion
    of_losses = any((each.symptom or "").startswith("loss-") for each in found.charges)
    return of_losses or found.outcome is not LogOutcome.NAMED


def _file(file: LogFile) -> tuple[str, ...]:
    ranks = ranks_text(file.ranks, most=4) if file.ranks else ""
    of = " on ".join(filter(None, (ranks, fold([file.who.host or ""]))))
    return file.name, f"{file.lines:,}", ", ".join(form.value for form in file.forms[:4]), of
