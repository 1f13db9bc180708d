"""What logs say as one page for a browser, with the pieces and the style of every report."""

from __future__ import annotations

from collections.abc import Iterator

from doctor import __version__
from doctor.logs.explained import Explained, headline, last_words, place_of, told_at, whom, why_unknown
from doctor.logs.loss.figure import losses_figure
from doctor.logs.model import Charge, Line, LogFile, Outcome
from doctor.logs.report import word
from doctor.model import Confidence
from doctor.report.html.markup import NOTHING, Html, folded, join, pill, section, table, tag
from doctor.report.html.page import POLICY, STYLE
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

WORDS = {
    Outcome.NAMED: ("Named", "fail"),
    Outcome.CLEAN: ("Clean", "good"),
    Outcome.UNKNOWN: ("Unknown", "open"),
}
MOST_LINES = 40
MOST_FILES = 300
MOST_STORY = 300


def as_html(explained: Explained) -> bytes:
    made = [
        ("causes", "Causes", _causes(explained)),
        ("odd", "Odd lines", _odd(explained)),
        ("beside", "Other attempts and jobs", _beside(explained)),
        ("story", "What happened when", _story(explained)),
        ("loss", "Loss", losses_figure(explained.logs.curves, explained.conclusion.charges)),
        ("prove", "Prove it on the hosts", _prove(explained)),
        ("open", "Not known", _open(explained)),
        ("files", "What was read", _files(explained)),
    ]
    parts = [(id, title, section(id, title, part)) for id, title, part in made if part]
    name, _ = WORDS[explained.conclusion.outcome]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{name}: {_title(explained)} · cluster-doctor"),
        Html(f"<style>{STYLE.read_text()}</style>"),
    )
    top = _head(explained, [(id, title) for id, title, _ in parts])
    foot = tag("footer", tag("p", f"Made by cluster-doctor {__version__}.", class_="soft"))
    body = tag("body", top, tag("main", *(part for _, _, part in parts)), foot)
    return join((Html("<!doctype html>\n"), tag("html", head, body, lang="en"), Html("\n"))).encode()


def _title(explained: Explained) -> str:
    found = explained.conclusion
    if found.outcome is Outcome.UNKNOWN:
        return why_unknown(explained)
    roots = explained.roots
    if found.outcome is Outcome.CLEAN or not roots:
        return "nothing in what was read complains"
    return headline(found.charges[roots[0]])


def _head(explained: Explained, parts: list[tuple[str, str]]) -> Html:
    found = explained.conclusion
    name, kind = WORDS[found.outcome]
    rows = [
        tag(
            "li",
            pill(word(charge), _kind(charge)),
            tag("a", whom(charge.who) or "no single rank", href=f"#f{place + 1}"),
            tag("span", charge.says),
            tag("code", charge.symptom or ""),
        )
        for place, charge in enumerate(found.charges)
        if charge.because is None
    ]
    started = f" · {explained.started}" if explained.started else ""
    return tag(
        "header",
        tag("p", f"doctor {explained.command} · {explained.read}{started}", class_="soft"),
        tag("h1", pill(name, kind), " ", tag("span", _title(explained))),
        tag("p", last_words(explained), class_="lead"),
        tag("ul", *rows, class_="guilty") if len(rows) > 1 else NOTHING,
        tag("nav", *(tag("a", text, href=f"#{id}") for id, text in parts), aria_label="Parts of this page"),
    )


def _kind(charge: Charge) -> str:
    return "open" if charge.confidence is Confidence.SUSPECT else "fail"


def _causes(explained: Explained) -> Html:
    """Each cause, and below it what it led to."""
    charges = explained.conclusion.charges
    cards = []
    for root in explained.roots:
        led = [charges.index(each) for each in explained.led_to(root)]
        cards += [_card(explained, place, place != root) for place in (root, *led)]
    return join(cards)


def _card(explained: Explained, place: int, symptom: bool) -> Html:
    charge = explained.conclusion.charges[place]
    rows = (join((tag("dt", name), tag("dd", said))) for name, said in _rows(explained, place) if said)
    commands = "\n".join(charge.remedy.commands) if charge.remedy and not symptom else ""
    kind = "open" if symptom else _kind(charge)
    return tag(
        "article",
        tag(
            "h3",
            pill("LED TO" if symptom else word(charge), kind),
            tag("span", headline(charge), class_="who"),
            tag("code", charge.symptom or ""),
        ),
        tag("dl", *rows),
        join((tag("p", "type:", class_="soft"), tag("pre", commands, tabindex=0))) if commands else NOTHING,
        _quotes(charge.lines, symptom),
        id=f"f{place + 1}",
        class_=f"{kind} symptom" if symptom else kind,
    )


def _rows(explained: Explained, place: int) -> Iterator[tuple[str, str]]:
    charge = explained.conclusion.charges[place]
    if proof := explained.proof_of(place):
        yield "on the hosts", f"{proof.proved.value}{': ' if proof.says else ''}{proof.says}"
    yield "known by", "\n".join(charge.how)
    causes = [f"{number}. {cause}" for number, cause in enumerate(charge.causes, 1)]
    yield "causes", "\n".join(charge.causes if len(causes) == 1 else causes)
    yield "seen", f"in {charge.count} lines" if charge.count > 1 else ""
    yield "certainty", charge.confidence.value


def _quotes(lines: tuple[Line, ...], fold_them: bool) -> Html:
    if not lines:
        return NOTHING
    shown = "\n".join(f"{place_of(line)}: {line.text}" for line in lines[:MOST_LINES])
    inside = tag("pre", shown, class_="quoted", tabindex=0)
    return folded(f"Lines ({len(lines)})", inside) if fold_them else inside


def _odd(explained: Explained) -> Html:
    found = explained.conclusion
    if found.outcome is Outcome.NAMED:
        return NOTHING
    far = explained.progress if found.outcome is Outcome.UNKNOWN else ()
    parts = [_quotes(found.odd, False)]
    parts += [tag("h3", "How far each rank was"), _quotes(far, False)] if far else []
    return join(parts)


def _story(explained: Explained) -> Html:
    rows = [
        join((tag("dt", when), tag("dd", says)))
        for when, says in told_at(explained.conclusion.story[:MOST_STORY])
    ]
    timed = any(at is not None for at, _ in explained.conclusion.story)
    return tag("dl", *rows) if timed else NOTHING


def _beside(explained: Explained) -> Html:
    rows = explained.conclusion.beside
    return tag("ul", *(tag("li", row) for row in rows)) if rows else NOTHING


def _prove(explained: Explained) -> Html:
    commands = explained.proves()
    return tag("pre", "\n".join(commands), tabindex=0) if commands else NOTHING


def _open(explained: Explained) -> Html:
    """Always there: what was not told belongs to what was told."""
    rows = (*explained.conclusion.open, *explained.unread)
    if not rows:
        return tag("p", "Everything that was given was read.")
    return tag("ul", *(tag("li", row) for row in rows[:MOST_FILES]))


def _files(explained: Explained) -> Html:
    files = explained.logs.files
    if not files:
        return NOTHING
    more = len(files) - MOST_FILES
    return join(
        (
            table("Files", ("File", "Lines", "Written by", "Of"), map(_file, files[:MOST_FILES])),
            tag("p", f"{more} more are in the JSON.") if more > 0 else NOTHING,
        )
    )


def _file(file: LogFile) -> Html:
    ranks = file.ranks or (() if file.who.rank is None else (file.who.rank,))
    of = " on ".join(filter(None, (ranks_text(ranks, most=4) if ranks else "", fold([file.who.host or ""]))))
    return tag(
        "tr",
        tag("th", file.name, scope="row"),
        tag("td", f"{file.lines:,}", class_="number"),
        tag("td", ", ".join(form.value for form in file.forms[:4])),
        tag("td", of),
    )
