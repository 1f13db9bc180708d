"""Markup that cannot be broken: all text is cleaned and escaped here, and what is opened is closed.

Only this file makes `Html`. A plain string is text of others, whatever is in it; joining it to `Html` gives a
plain string again, so that a slip shows markup as text and never text as markup.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from doctor.text.nodeset import cut, fold
from doctor.text.printable import clean

_VOID = {"meta", "br"}
LONGEST = 32
"""Of a list of hosts that is shown whole, in characters."""


class Html(str):
    """Markup of ours, with everything in it escaped."""

    __slots__ = ()


NOTHING = Html("")


def text(value: str) -> Html:
    return Html(html.escape(clean(value), quote=True))


def join(parts: Iterable[str], between: str = "") -> Html:
    """Plain strings among the parts are text."""
    return Html(text(between).join(part if isinstance(part, Html) else text(part) for part in parts))


def tag(name: str, /, *inner: str, **attributes: str | int | bool | None) -> Html:
    """`class_` and `aria_label` become class and aria-label; what is None or False is left out."""
    words = [name]
    for key, value in attributes.items():
        spelt = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(spelt)
        elif value is not None and value is not False:
            words.append(f'{spelt}="{text(str(value))}"')
    opened = f"<{' '.join(words)}>"
    return Html(opened) if name in _VOID else Html(f"{opened}{join(inner)}</{name}>")


def section(id: str, title: str, *inner: str) -> Html:
    """A part of the page under its heading; nothing where it is empty."""
    whole = join(inner)
    if not whole:
        return NOTHING
    return tag("section", tag("h2", title, id=f"{id}-title"), whole, id=id, aria_labelledby=f"{id}-title")


def table(caption: str, heads: Iterable[str], rows: Iterable[Html], *, kind: str | None = None) -> Html:
    """One that scrolls by itself where the screen is narrow, also by keys."""
    columns = join(tag("th", head, scope="col") for head in heads)
    whole = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", columns)),
        tag("tbody", *rows),
        class_=kind,
    )
    return scrolling(caption, whole)


def scrolling(name: str, *inner: str) -> Html:
    return tag("div", *inner, class_="scroll", role="region", aria_label=name, tabindex=0)


def pill(word: str, kind: str) -> Html:
    """The word says it; the colour only helps."""
    return tag("span", word, class_=f"pill {kind}")


def folded(summary: str, *inner: str) -> Html:
    return tag("details", tag("summary", summary), *inner)


def listed(hosts: Sequence[str]) -> Html:
    """Of hosts; where they are many, the whole list is behind a fold."""
    whole = fold(hosts)
    if len(whole) <= LONGEST:
        return text(whole)
    return folded(f"{len(hosts)} hosts: {cut(whole, LONGEST)}", whole)
