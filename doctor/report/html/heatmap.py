"""Tables of host × host: which host reached which, and how fast the links between hosts were."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from doctor.mesh import Link, MeshResult
from doctor.report.html.markup import NOTHING, Html, join, listed, scrolling, table, tag
from doctor.report.page.smoke import LinkRates, number_text, rate_text
from doctor.text.speech import in_sentences

MOST_HOSTS = 64
"""With more hosts a table of all pairs is too large to read; then only hosts of failed pairs are shown."""
MANY = 20
"""With more hosts than this, the cells are smaller on paper."""
MOST_ROWS = 60
LOW = 0.7
"""A link below this share of the median is marked."""
_WHY = {
    "refused": "refused",
    "no-route": "no route",
    "dropped": "no answer",
    "reset": "reset",
    "silent": "connected, then silence",
    "wrong-answer": "another program answered",
    "error": "an error",
    "lost": "large packets are lost",
}
_PORT = {
    "master": "master port",
    "hccl": "HCCL's port",
    "mccl": "MindSpore's port",
    "ephemeral": "ephemeral port",
}
Pair = tuple[str, str]


def mesh_part(mesh: MeshResult | None, hosts: Sequence[str]) -> Html:
    """Which host reached which; `hosts` in the order of the report."""
    tried: dict[Pair, list[Link]] = {}
    for link in mesh.links if mesh else ():
        tried.setdefault((link.source, link.target), []).append(link)
    tested = {pair: seen for pair, seen in tried.items() if any(link.tested for link in seen)}
    if mesh is None or not tried:
        return NOTHING
    lost = [way for link in mesh.links if link.lost for way in link.ways if way.failed]
    bad = {pair for pair, seen in tested.items() if any(link.failed for link in seen)}
    bad |= {(way.source, way.target) for way in lost}
    there = {host for pair in tried for host in pair}
    shown = there if len(there) <= MOST_HOSTS else {host for pair in bad for host in pair}
    names = [host for host in hosts if host in shown]
    return join(
        (
            tag("p", _in_words(tested, bad, len(there), mesh)),
            _matrix(names, tested, bad) if 1 < len(names) <= MOST_HOSTS else NOTHING,
            _failures([*(link for pair in sorted(tested) for link in tested[pair] if link.failed), *lost]),
        )
    )


def _in_words(tested: Mapping[Pair, object], bad: set[Pair], hosts: int, mesh: MeshResult) -> Html:
    both = {tuple(sorted(pair)) for pair in tested if pair[::-1] in tested}
    broken = {tuple(sorted(pair)) for pair in bad}
    said = f"{len(tested) - len(bad)} of {len(tested)} connections between {hosts} hosts work"
    said += f"; {len(both - broken)} of {len(both)} pairs work both ways. " if both else ". "
    every = len(tested) == hosts * (hosts - 1)
    said += "Each host connected to each other one." if every else "Not every pair was tried."
    left = "".join(f" {out.host} took no part: {out.reason}." for out in mesh.left_out[:MOST_ROWS])
    return join((said, left))


def _matrix(names: Sequence[str], tested: Mapping[Pair, object], bad: set[Pair]) -> Html:
    def cell(pair: Pair) -> Html:
        if pair[0] == pair[1]:
            return tag("td", class_="none")
        if pair not in tested:
            return tag("td", "·", class_="none", aria_label="not tried")
        if pair in bad:
            return tag("td", "✗", class_="fail", aria_label=f"{pair[0]} does not reach {pair[1]}")
        return tag("td", "✓", class_="good", aria_label="works")

    said = "Row: the host that connects. Column: the host that it connects to. ✓ works, ✗ fails, · not tried."
    return _square("Connections", said, names, cell)


def _square(title: str, said: str, names: Sequence[str], cell: Callable[[Pair], Html]) -> Html:
    heads = (tag("th", tag("span", name), scope="col") for name in names)
    rows = (tag("tr", tag("th", one, scope="row"), *(cell((one, two)) for two in names)) for one in names)
    whole = tag(
        "table",
        tag("caption", title),
        tag("thead", tag("tr", tag("td"), *heads)),
        tag("tbody", *rows),
        class_="matrix many" if len(names) > MANY else "matrix",
    )
    return join((tag("p", said, class_="soft"), scrolling(title, whole)))


def _failures(links: Sequence[Link]) -> Html:
    """Equal failures share a row, by target or by source, whichever needs fewer rows."""
    by_target: dict[tuple[str, ...], dict[str, None]] = {}
    by_source: dict[tuple[str, ...], dict[str, None]] = {}
    for link in links:
        why = _WHY.get(link.outcome, link.outcome)
        port = f"{_PORT[link.kind]}" + ("" if link.kind == "ephemeral" else f" {link.port}")
        by_target.setdefault((link.target, port, why), {})[link.source] = None
        by_source.setdefault((link.source, port, why), {})[link.target] = None
    rows: list[tuple[list[str], list[str], str, str]]
    if len(by_source) < len(by_target):
        rows = [([one], [*many], port, why) for (one, port, why), many in by_source.items()]
    else:
        rows = [([*many], [one], port, why) for (one, port, why), many in by_target.items()]
    if not rows:
        return NOTHING
    more = f" The first {MOST_ROWS} of {len(rows)}." if len(rows) > MOST_ROWS else ""
    shown = (
        tag(
            "tr",
            tag("th", listed(sources), scope="row", class_="names"),
            tag("td", listed(targets)),
            tag("td", port),
            tag("td", why),
        )
        for sources, targets, port, why in rows[:MOST_ROWS]
    )
    heads = ("from", "to", "on", "what happened")
    return table(f"Connections that failed.{more}", heads, shown)


def links_part(links: Sequence[LinkRates], hosts: Sequence[str]) -> Html:
    """How fast pairs of hosts exchanged data, with the slowest pair by name."""
    if not links:
        return NOTHING
    usual, most = median(link.rate for link in links), max(link.rate for link in links)
    met = {host for link in links for host in link.hosts}
    names = [host for host in hosts if host in met]
    slowest = links[0]
    said = f"{len(links)} pairs met. Median {rate_text(usual)} each way; slowest "
    said += f"{rate_text(slowest.rate)} ({slowest.hosts[0]} and {slowest.hosts[1]})."
    low = [link for link in links if link.rate < LOW * usual]
    near = f"{len(low)} below {LOW:.0%} of the median." if low else "All are near the median."
    few = len(names) <= MOST_HOSTS
    return join(
        (
            tag("p", in_sentences(said, near)),
            _rates(names, links, usual, most) if few and len(names) > 2 else NOTHING,
            NOTHING if few and len(names) > 2 else _slowest(links, usual),
        )
    )


def _rates(names: Sequence[str], links: Iterable[LinkRates], usual: float, most: float) -> Html:
    rates = {link.hosts: link for link in links} | {link.hosts[::-1]: link for link in links}
    unit, per = ("GB/s", 1e9) if usual >= 1e9 else ("MB/s", 1e6)

    def cell(pair: Pair) -> Html:
        link = rates.get(pair)
        if link is None:
            return tag("td", "" if pair[0] == pair[1] else "·", class_="none")
        low = link.rate < LOW * usual
        shown = number_text(link.rate / per) + (" ▾" if low else "")
        return tag("td", shown, class_="heat low" if low else "heat", style=f"--share:{link.rate / most:.2f}")

    said = f"{unit} each way; the darker, the faster. ▾ is below {LOW:.0%} of the median, · did not meet."
    return _square("Links", said, names, cell)


def _slowest(links: Sequence[LinkRates], usual: float) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", " and ".join(link.hosts), scope="row"),
            tag("td", rate_text(link.rate), class_="number"),
            tag("td", f"{link.rate / usual:.0%}", class_="number"),
            tag("td", f"{1e3 * link.round_trip:.2f} ms", class_="number"),
        )
        for link in links[:12]
    ]
    return table("Slowest pairs", ("hosts", "each way", "of the median", "round trip"), rows)
