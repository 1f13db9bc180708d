"""Markup that untrusted text cannot break: all text is cleaned and escaped here, and every tag is closed.

Only this file makes `Html`. A plain string counts as untrusted text; joining it to `Html` gives a plain
string again, so that a mistake shows markup as text and never text as markup.
"""

import html
from collections.abc import Callable, Iterable, Sequence

from doctor.expect import moment
from doctor.report.page.names import Called, named
from doctor.text.nodeset import cut
from doctor.text.printable import clean
from doctor.text.speech import t

_VOID = {"meta", "br", "wbr"}
_QUOTES = {"code", "pre", "style", "script"}
_SAID = {"aria_label", "title", "alt"}
LONGEST = 32
"""A longer list of hosts, in characters, is folded."""


class Html(str):
    """Our own markup; all text in it is escaped."""

    __slots__ = ()


NOTHING = Html("")


def text(value: str) -> Html:
    """A sentence, in the language that is spoken."""
    return verbatim(t(value))


def verbatim(value: str) -> Html:
    return Html(html.escape(clean(value), quote=True))


def join(parts: Iterable[str], between: str = "", say: Callable[[str], Html] = text) -> Html:
    """Joins the parts; plain strings among them are text and are escaped."""
    return Html(verbatim(between).join(part if isinstance(part, Html) else say(part) for part in parts))


def tag(name: str, /, *inner: str, **attributes: str | int | bool | None) -> Html:
    """An element. `class_` and `aria_label` become class and aria-label; None and False are left out."""
    words = [name]
    for key, value in attributes.items():
        spelt = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(spelt)
        elif value is not None and value is not False:
            said = text if key in _SAID else verbatim
            words.append(f'{spelt}="{said(str(value))}"')
    opened = f"<{' '.join(words)}>"
    return (
        Html(opened)
        if name in _VOID
        else Html(f"{opened}{join(inner, say=verbatim if name in _QUOTES else text)}</{name}>")
    )


def section(id: str, title: str, *inner: str) -> Html:
    """A part of the page under its heading; nothing if it is empty."""
    whole = join(inner)
    if not whole:
        return NOTHING
    return tag("section", tag("h2", title, id=f"{id}-title"), whole, id=id, aria_labelledby=f"{id}-title")


def table(caption: str, heads: Iterable[str], rows: Iterable[Html], *, kind: str | None = None) -> Html:
    """A table that scrolls on its own on a narrow screen, by keys too."""
    columns = join(tag("th", head, scope="col") for head in heads)
    whole = tag(
        "table", tag("caption", caption), tag("thead", tag("tr", columns)), tag("tbody", *rows), class_=kind
    )
    return scrolling(caption, whole)


def scrolling(name: str, *inner: str) -> Html:
    hint = tag("p", "scroll sideways", class_="sideways", aria_hidden="true")
    return tag("div", hint, *inner, class_="scroll", role="region", aria_label=name, tabindex=0)


def pill(word: str, kind: str) -> Html:
    """A word on a coloured background; it can be read without the colour."""
    return tag("span", word, class_=f"pill {kind}")


def folded(summary: str, *inner: str) -> Html:
    return tag("details", tag("summary", summary), *inner)


def listed(hosts: Sequence[str], called: Called | None = None) -> Html:
    """The names of hosts, folded if there are many."""
    whole = named(hosts, called or {})
    if len(whole) <= LONGEST:
        return _at_commas(whole)
    return folded(f"{len(hosts)} hosts: {cut(whole, LONGEST)}", _at_commas(whole))


def _at_commas(names: str) -> Html:
    """Names that a narrow column breaks behind commas, and not before a bracket."""
    return Html(text(names).replace(",", ",<wbr>"))


def time_tag(started: str) -> Html:
    """The time as a tag. A recording may hold any text as its time: an invalid one is shown as it is."""
    when = moment(started)
    if when is None:
        return tag("span", started)
    return tag("time", f"{when:%Y-%m-%d %H:%M:%S} UTC", datetime=f"{when:%Y-%m-%dT%H:%M:%SZ}")
