"""Hosts × hosts: which host reached which, and how fast the links between hosts were."""

from collections.abc import Mapping, Sequence
from statistics import median

from doctor.mesh import Link, MeshResult
from doctor.report.page.card import CardKind, Cell, Grid, Medium, Part, Row, Section, Square, Table
from doctor.report.page.smoke import LinkRates, number_text, rate_text
from doctor.text.grouped import grouped
from doctor.text.hostprogram import sections

MOST_HOSTS = 64
"""With more hosts a grid of all pairs is too large to read; then only hosts of failed pairs are shown."""
MOST_ROWS = 60
LOW = 0.7
"""A link below this share of the median is marked."""
_WORDS = sections(__file__, "connections.txt")
_SAID = "Row: the host that connects. Column: the host that it connects to. ✓ works, ✗ fails, · not tried."
Pair = tuple[str, str]


def connections(mesh: MeshResult, hosts: Sequence[str]) -> Section:
    """Which host reached which; `hosts` in the order of the report."""
    tried = grouped(((link.source, link.target), link) for link in mesh.links)
    tested = {pair: seen for pair, seen in tried.items() if any(link.tested for link in seen)}
    lost = [way for link in mesh.links if link.lost for way in link.ways if way.failed]
    bad = {pair for pair, seen in tested.items() if any(link.failed for link in seen)}
    bad |= {(way.source, way.target) for way in lost}
    there = {host for pair in tried for host in pair}
    shown = there if len(there) <= MOST_HOSTS else {host for pair in bad for host in pair}
    names = tuple(host for host in hosts if host in shown)
    left_out = (f"{out.host} took no part: {out.reason}." for out in mesh.left_out[:MOST_ROWS])
    parts: list[Part] = [Row("", (*_in_words(tested, bad, len(there)), *left_out))]
    if 1 < len(names) <= MOST_HOSTS:
        squares = {pair: _square(pair, pair in bad) for pair in tested.keys() | bad}
        parts.append(Grid("Connections", _SAID, names, squares))
    failed = [*(link for pair in sorted(tested) for link in tested[pair] if link.failed), *lost]
    parts += [_failures(failed)] if failed else []
    return Section("Network", parts=tuple(parts), on=Medium.HTML)


def _square(pair: Pair, failed: bool) -> Square:
    if failed:
        return Square("✗", CardKind.FAIL, f"{pair[0]} does not reach {pair[1]}")
    return Square("✓", CardKind.GOOD, "works")


def _in_words(tested: Mapping[Pair, object], bad: set[Pair], hosts: int) -> tuple[str, str]:
    both = {tuple(sorted(pair)) for pair in tested if pair[::-1] in tested}
    broken = {tuple(sorted(pair)) for pair in bad}
    said = f"{len(tested) - len(bad)} of {len(tested)} connections between {hosts} hosts work"
    said += f"; {len(both - broken)} of {len(both)} pairs work both ways." if both else "."
    every = len(tested) == hosts * (hosts - 1)
    return said, "Each host connected to each other one." if every else "Not every pair was tried."


def _failures(links: Sequence[Link]) -> Table:
    """Equal failures share a row, by target or by source, whichever needs fewer rows."""
    by_target: dict[tuple[str, ...], dict[str, None]] = {}
    by_source: dict[tuple[str, ...], dict[str, None]] = {}
    for link in links:
        why = _WORDS["outcomes"].get(link.outcome, link.outcome)
        port = _WORDS["ports"][link.kind] + ("" if link.kind == "ephemeral" else f" {link.port}")
        by_target.setdefault((link.target, port, why), {})[link.source] = None
        by_source.setdefault((link.source, port, why), {})[link.target] = None
    rows: list[tuple[Cell, ...]]
    if len(by_source) < len(by_target):
        rows = [((one,), tuple(many), port, why) for (one, port, why), many in by_source.items()]
    else:
        rows = [(tuple(many), (one,), port, why) for (one, port, why), many in by_target.items()]
    return Table("Connections that failed", ("from", "to", "on", "what happened"), tuple(rows))


def links_grid(links: Sequence[LinkRates], hosts: Sequence[str]) -> Grid | None:
    """How fast pairs of hosts exchanged data. None for one pair, and for too many hosts."""
    met = {host for link in links for host in link.hosts}
    if not 2 < len(met) <= MOST_HOSTS:
        return None
    usual, most = median(link.rate for link in links), links[-1].rate
    unit, per = ("GB/s", 1e9) if usual >= 1e9 else ("MB/s", 1e6)
    pairs: dict[Pair, Square] = {}
    for link in links:
        low = link.rate < LOW * usual
        shown = number_text(link.rate / per) + (" ▾" if low else "")
        square = Square(shown, CardKind.WARN if low else None, share=link.rate / most)
        pairs |= {link.hosts: square, link.hosts[::-1]: square}
    said = (
        f"Median {rate_text(usual)}, slowest {rate_text(links[0].rate)} ({' and '.join(links[0].hosts)}). "
        f"{unit} each way; the darker, the faster. ▾ is below {LOW:.0%} of the median, · did not meet."
    )
    return Grid("Links", said, tuple(host for host in hosts if host in met), pairs)
