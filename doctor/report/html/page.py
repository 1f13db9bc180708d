"""A page as HTML: a single file without network access and scripts."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from doctor import __version__
from doctor.report.html.cards import cards_part, kind_class, part_inside
from doctor.report.html.markup import NOTHING, Html, join, pill, section, tag, time_tag, verbatim
from doctor.report.page.card import Card, HostTable, Medium, Page
from doctor.text.late import late
from doctor.text.speech import sign, spoken, t, t_parts

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Even if hostile markup got into the page, nothing would be fetched, run or sent."""
STYLE = Path(__file__).with_name("page.css")
MOST = 12
"""The most cards that are named at the top; all of them follow below."""
LONGEST = 120
"""The most characters of a name there."""
SHORT = 48
"""A title of more characters is set in smaller letters."""
_WORD = late(r"\w[\w.-]*\w|\w")
_NO_ID = late(r"[^a-z0-9]+")
_MORE = late(r"; \d+ more causes?(?=\.$)")
Section = tuple[str, str, Html]
"""An id, a title and the markup."""


def as_html(page: Page) -> bytes:
    made = [each for each in _sections(page) if each[2]]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", verbatim(f"{t(page.word)}{sign(': ')}{t(page.title)} · cluster-doctor")),
        Html(f"<style>{STYLE.read_text()}</style>"),
    )
    foot = tag("footer", tag("p", f"Made by cluster-doctor {__version__}.", class_="soft"))
    body = tag("body", _top(page, made), tag("main", *(whole for _, _, whole in made)), foot)
    return join(
        (Html("<!doctype html>\n"), tag("html", head, body, lang=spoken().value), Html("\n"))
    ).encode()


def _sections(page: Page) -> Iterator[Section]:
    """The table of hosts comes first: it is the shortest picture of the whole."""
    parts = [part for part in page.parts if Medium.HTML in part.on]
    first = [part for part in parts if isinstance(part, HostTable)]
    yield from (_section(part.label, part_inside(part)) for part in first)
    yield _section(page.cards_title, cards_part(page.cards), id="findings")
    for number, one in enumerate(page.each, 1):
        inside = (cards_part(one.cards), *(part_inside(part) for part in one.parts if Medium.HTML in part.on))
        yield _section(one.title, *inside, tag("p", one.says, class_=kind_class(one.kind)), id=f"job{number}")
    yield from (_section(part.label, part_inside(part)) for part in parts if part not in first)
    yield _section("Notes", tag("ul", *(tag("li", note) for note in page.notes)) if page.notes else NOTHING)


def _section(title: str, *inside: Html, id: str = "") -> Section:
    id = id or _NO_ID.sub("-", title.lower())
    return id, title, section(id, title, *inside)


def _top(page: Page, parts: Sequence[Section]) -> Html:
    about = (verbatim(t(strong) + t_parts(rest)) for strong, rest in page.about)
    when = (" · ", time_tag(page.started)) if page.started else ()
    rows = _culprit_links(page)
    return tag(
        "header",
        tag("p", f"doctor {page.command}", *when, class_="soft"),
        tag(
            "h1",
            pill(page.word, kind_class(page.kind)),
            " ",
            tag("span", page.title),
            class_="long" if len(page.title) > SHORT else None,
        ),
        tag("p", page.says, class_="lead") if _is_new(page.says, page) else NOTHING,
        tag("ul", *rows, class_="guilty") if rows else NOTHING,
        *(tag("p", line, class_="soft") for line in about),
        *(tag("p", f"{step.label}{step.text}", class_="soft") for step in page.after),
        tag(
            "nav",
            *(tag("a", title, href=f"#{id}") for id, title, _ in parts),
            aria_label="Parts of this page",
        ),
    )


def _is_new(says: str, page: Page) -> bool:
    """Whether neither the title nor the list of culprits says it already."""
    said, known = (
        set(_WORD.findall(text.casefold())) for text in (_MORE.sub("", says), f"{page.word} {page.title}")
    )
    return not said <= known | {"is", "are"}


def _culprit_links(page: Page) -> list[Html]:
    """The culprits with links to their cards; empty if the title says the same."""
    cards = [card for one in (page, *page.each) for card in one.cards if card.ids and not card.follows]
    if len(cards) == 1 and page.title.startswith((cards[0].sentence, f"{cards[0].who}: {cards[0].says}")):
        return []
    more = (tag("a", f"and {len(cards) - MOST} more", href=f"#{card.ids[0]}") for card in cards[MOST:])
    return [*map(_link, cards[:MOST]), *(tag("li", each) for each in islice(more, 1))]


def _link(card: Card) -> Html:
    name = card.who or card.says
    return tag(
        "li",
        pill(card.word, kind_class(card.kind)) if card.word else NOTHING,
        tag("a", name if len(name) <= LONGEST else f"{name[:LONGEST]}…", href=f"#{card.ids[0]}"),
        tag("span", card.says) if card.who else NOTHING,
        tag("code", t(card.tag)),
    )
