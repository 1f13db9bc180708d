"""The sections of the smoke runs: how each went in a few lines, its losses, its ranks and their links."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from doctor.facts.smoke import JudgedRun
from doctor.floors import Floor
from doctor.judge.verdict import Report
from doctor.model import Status
from doctor.report.page import smoke
from doctor.report.page.card import CardKind, Cell, Chart, Medium, Part, Row, Section, Table, Words
from doctor.report.page.connections import links_grid
from doctor.report.page.losses import LossDrawing, LossLine, axes
from doctor.report.page.smoke_losses import loss_drawing, loss_drawings
from doctor.rules.accept import collective_rates
from doctor.rules.alone import TIMES, host_rates, rate_text
from doctor.rules.smoke import together
from doctor.smoke.onhost.sweepplan import size_text
from doctor.smoke.soak import Soak
from doctor.text.grouped import grouped
from doctor.text.hostprogram import sections
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

TITLE = "Smoke"
BLOCKS = "▁▂▃▄▅▆▇█"
_SAID = sections(__file__, "training.txt")
BY_SIZE = _SAID["drawings"]
CURVE = 8
"""The characters of the loss curve."""
LONGEST = 100
"""The most characters of a version that a host reported."""
MOST_RANKS, MOST_PAIRS, FEW_PAIRS = 16, 12, 5
"""The most rows of the tables; a terminal has room for a few pairs."""
GOOD, BAD, OPEN = CardKind.GOOD, CardKind.FAIL, CardKind.OPEN
_OUTCOMES = {"pass": ("passed", GOOD), "fail": ("failed", BAD), "skipped": ("interrupted", OPEN)}
Line = tuple[Words, ...]


def training_sections(report: Report, on: Medium) -> Iterator[Section]:
    """None if no smoke run was asked for. A terminal only sums up the repeated runs."""
    runs, why = report.training.runs, report.training.not_made
    if why and not runs:
        yield Section(TITLE, ((Words(f"not made: {why}"),),))
    for number, run in enumerate(runs if on in Medium.HTML | Medium.MARKDOWN else runs[:1]):
        seen = smoke.RunNumbers(run, None if number else report.training.net_seconds)
        lines = (*_lines(seen, report, on), *(() if number else _repeats(runs)))
        title = f"Repeated without {_gone(runs[number - 1], run)}" if number else TITLE
        yield Section(title, lines, tuple(_parts(seen, report, f"loss-{number + 1}", on)))


def _parts(seen: smoke.RunNumbers, report: Report, id: str, on: Medium) -> Iterator[Part]:
    """Without -v, a terminal shows only what is wrong."""
    whole = on is not Medium.BRIEF
    if whole or seen.loss_charged:
        yield from _charts(seen.run, id, on)
    if whole or seen.slow or seen.loss_charged:
        yield from _ranks(seen.run, on)
    if whole or seen.slow_hosts:
        yield from _links(seen, [host.name for host in report.hosts], on)
    yield from collectives_table(seen.run, report.training.floor)
    yield from _rates_by_size(seen.run, id)
    yield from alone_table(seen.run)
    if (soak := report.training.soak) and seen.run is report.training.runs[0]:
        yield from _soak_table(soak, on)


def _charts(run: JudgedRun, id: str, on: Medium) -> Iterator[Part]:
    worst = loss_drawing(run)
    drawings = loss_drawings(run, id) if on is Medium.HTML else (worst,) if worst else ()
    yield from (Chart("Losses", drawing) for drawing in drawings)
    if (left := len(run.plan.cells) - len(drawings)) and on is Medium.HTML:
        yield Row("", (f"{left} more cells learned more than these.",))


def _lines(seen: smoke.RunNumbers, report: Report, on: Medium) -> Iterator[Line]:
    yield Words(f"{_who(seen)}:"), *_course(seen)
    yield tuple(_phases(seen))
    speed = () if seen.tokens is None else (Words(f"{smoke.number_text(seen.tokens)} tokens a second"),)
    yield _listed([*speed, Words(seen.idle), *_speeds(seen), *_judged(report)], ";")
    if on is not Medium.BRIEF:
        told = [Words(f"{name} {version}"[:LONGEST]) for name, version in seen.versions.items()]
        peak = max((host.peak_memory for host in seen.run.result.hosts), default=0)
        yield _listed([*told, *((Words(f"{peak / 1e6:.0f} MB a rank"),) if peak else ())], ",")
    yield (Words(seen.comparison),)
    if seen.injected:
        latency = seen.run.result.end.latency
        after = "" if latency is None else f"(the run was ended {latency:.2f} s after it took effect)"
        yield (
            Words("injected on purpose:"),
            Words(seen.injected, CardKind.WARN),
            Words(after, CardKind.WARN),
        )
    reasons = grouped((reason, host) for host, reason in seen.left_out.items())
    yield from ((Words(f"left out: {fold(hosts)} ({reason})"),) for reason, hosts in reasons.items())


def _who(seen: smoke.RunNumbers) -> str:
    plan = seen.run.plan
    counts = {len(plan.on(host)) for host in plan.hosts}
    each = f" × {counts.pop()}" if len(counts) == 1 else ""
    hosts = f"{len(plan.hosts)} hosts{each}" if len(plan.hosts) > 1 else "one host"
    return f"{seen.ranks} ({hosts}), {seen.trained_with[:LONGEST]}, {seen.layout}"


def _course(seen: smoke.RunNumbers) -> Iterator[Words]:
    """The outcome of the run, and what it learned."""
    run, learned = seen.run, seen.loss
    good = False if seen.loss_charged else smoke.is_enough(learned)
    if seen.outcome == "skipped":
        yield Words(f"interrupted in the {seen.last_phase} phase,", OPEN)
    elif seen.outcome == "fail":
        yield Words("failed,", BAD)
        if run.result.end.kind != "done":
            yield Words(f"ended in the {seen.last_phase} phase,")
    steps = learned.steps if learned else 0
    done = f"{steps} of {run.plan.steps}" if steps < run.plan.steps else str(steps)
    values = [value for value in learned.curve if value is not None] if learned else []
    pace = seen.step_seconds if learned else None
    yield Words(f"{done} step{'' if done == '1' else 's'}", after="," if values or pace is not None else "")
    told = bool(learned and learned.drop is not None and learned.limit is not None)
    after = "," if pace is not None else ""
    if values:
        yield Words(f"loss {_loss(values[0])} → {_loss(values[-1])}")
        yield Words(curve(values), {True: GOOD, False: BAD, None: None}[good], "" if told else after)
    if learned and learned.drop is not None and learned.limit is not None:
        yield Words("(good:" if good else "(not good:", GOOD if good else BAD)
        said = f"learned {100 * learned.drop:.0f} %, needed {100 * learned.limit:.0f} %"
        yield Words(said, after=f"){after}")
    if pace is not None:
        yield Words(f"{smoke.number_text(1e3 * pace)} ms a step")


def curve(values: Sequence[float]) -> str:
    """The values as a curve of a few characters, scaled from the least to the largest."""
    size = min(CURVE, len(values))
    parts = [values[len(values) * n // size : len(values) * (n + 1) // size] for n in range(size)]
    means = [sum(part) / len(part) for part in parts]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    return "".join(BLOCKS[round((mean - low) / span * (len(BLOCKS) - 1))] for mean in means)


def _phases(seen: smoke.RunNumbers) -> Iterator[Words]:
    shown = [row for row in seen.phases if row.status != "skipped" or row.seconds]
    for row in shown:
        unit, after = (" s", "") if row is shown[-1] else ("", " ")
        failed = row.status == "fail"
        yield Words(row.name, None, f" {row.seconds:.1f}{unit}{'' if failed else after}")
        if failed:
            yield Words("failed", BAD, after)
    if missing := [row.name for row in seen.phases if row not in shown]:
        yield Words(f"(not reached: {', '.join(missing)})", CardKind.SOFT)


def _judged(report: Report) -> Iterator[Words]:
    """Whether these numbers are good: the results of the checks that compare ranks and links."""
    blamed = {each.check for each in report.results if each.status in (Status.FAIL, Status.WARN)}
    # Links are compared with each other, and not only the two directions of each.
    compared = any(together(run.plan) > 2 for run in report.training.runs)
    for check, good, bad in (
        ("smoke-straggler", "no rank is slow", "slow ranks"),
        ("smoke-slow-link", "no link is slow" if compared else "", "slow links"),
    ):
        both = (check, "accept-slow-link") if check == "smoke-slow-link" else (check,)
        statuses = {result.status for result in report.results if result.check in both}
        if blamed.intersection(both) or (check == "smoke-straggler" and "smoke-contention" in blamed):
            yield Words(bad, BAD)
        elif statuses == {Status.PASS} and good:
            yield Words(good, GOOD)


def _speeds(seen: smoke.RunNumbers) -> Iterator[Words]:
    """How fast the links were."""
    if not (found := seen.links):
        return
    slowest, fastest = smoke.rate_text(found[0].rate), smoke.rate_text(found[-1].rate)
    pair, trip = " - ".join(found[0].hosts), f"{1e3 * max(link.round_trip for link in found):.2f} ms"
    span = slowest if slowest == fastest else f"{slowest} ({pair}) to {fastest}"
    one = len(found) == 1
    yield Words(f"link {pair} {slowest} each way" if one else f"links {span} each way")
    yield Words(f"round trip {trip}" if one else f"round trips up to {trip}")
    if (worst := max(link.resent for link in found)) > smoke.MANY_RESENT:
        yield Words(f"up to {worst:.1%} of TCP segments sent again")


def _loss(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 1e4 else f"{value:.1e}"


def _repeats(runs: Sequence[JudgedRun]) -> Iterator[Line]:
    for before, run in pairwise(runs):
        checks = dict.fromkeys(charge.check for charge in run.charges if charge.is_fault)
        named = (Words(f"({', '.join(checks)})"),) if checks else ()
        word, kind = _OUTCOMES[smoke.RunNumbers(run).outcome]
        gone = _gone(before, run)
        yield Words(f"repeated without {gone}:" if gone else "repeated:"), Words(word, kind), *named


def _gone(before: JudgedRun, run: JudgedRun) -> str:
    return fold([host for host in before.plan.hosts if host not in run.plan.hosts])


def _listed(words: Sequence[Words], sign: str) -> Line:
    said = [each for each in words if each.text]
    return tuple(replace(each, after="" if each is said[-1] else sign) for each in said)


def _ranks(run: JudgedRun, on: Medium) -> Iterator[Table]:
    paces = smoke.rank_paces(run)
    shown = smoke.worst_paces(paces, MOST_RANKS)
    note = ""
    if rest := [pace for pace in paces if pace not in shown]:
        least, most = (1e3 * each([pace.step for pace in rest]) for each in (min, max))
        note = f"{ranks_text([pace.rank for pace in rest], most=3)}: {least:.1f} to {most:.1f} ms a step"
    if paces:
        rows = tuple(_rank(run, pace, with_device=on is Medium.HTML) for pace in shown)
        yield _table("Ranks", rows, note)


def _rank(run: JudgedRun, pace: smoke.RankPace, *, with_device: bool) -> tuple[Cell, ...]:
    bad, slow = BAD if pace.check else None, pace.check in smoke.SLOW
    device = run.plan.seat(pace.rank).device if with_device else None
    known = pace.loss is not None
    return (
        Words(str(pace.rank), bad),
        Words(pace.host if device is None else f"{pace.host} device {device}", bad),
        f"{1e3 * pace.step:.1f}",
        Words(f"{1e3 * pace.late:+.1f} ms", bad if slow else None),
        f"{1e3 * pace.wait:.1f} ms",
        f"{pace.loss:.2f}" if known else "-",
        Words(f"{100 * pace.loss_share:.0f} %" if known else "-", None if slow else bad),
        Words(pace.check, CardKind.SOFT),
    )


def _links(seen: smoke.RunNumbers, hosts: Sequence[str], on: Medium) -> Iterator[Part]:
    """All pairs, if they are not too many for a page; else the slowest, each with its share of the median."""
    links = seen.links
    if on is Medium.HTML and (grid := links_grid(links, hosts)):
        yield grid
    elif len(links) > 1:
        usual = median(link.rate for link in links)
        rows = []
        for link in links[: MOST_PAIRS if on is Medium.HTML else FEW_PAIRS]:
            bad = BAD if seen.slow_hosts & set(link.hosts) else None
            pair, share = " - ".join(link.hosts), f"{100 * link.rate / usual:.0f} %"
            trip = f"{1e3 * link.round_trip:.2f} ms"
            rows.append((Words(pair, bad), Words(smoke.rate_text(link.rate), bad), Words(share, bad), trip))
        yield _table("Slowest pairs", rows)


def _table(label: str, rows: Sequence[tuple[Cell, ...]], note: str = "") -> Table:
    heads = tuple(map(str.strip, _SAID["heads"][label].split(";")))
    return Table(label, heads, tuple(rows), note=note, short=True)


def collectives_table(run: JudgedRun, floor: Floor | None) -> Iterator[Table]:
    """Each collective with the largest size and with the smallest one; of those inside hosts, the slowest."""
    rows: list[tuple[Cell, ...]] = []
    for name, own in grouped((f"{each.scope} {each.op}", each) for each in collective_rates(run)).items():
        sizes = grouped((each.bytes, each) for each in own)
        first = max(sizes[min(sizes)], key=lambda each: each.least_ms)
        last = min(sizes[max(sizes)], key=lambda each: each.bus_bytes_per_second)
        times, bus = (first.least_ms, first.median_ms, first.worst_ms), last.bus_bytes_per_second / 1e9
        numbers = bus, *times, last.algorithm_bytes_per_second / 1e9
        ranks = f"{last.ranks} ({last.host})" if last.host else f"{last.ranks}"
        by_size = curve([min(each.bus_bytes_per_second for each in sizes[size]) for size in sorted(sizes)])
        rows.append((name, size_text(last.bytes), ranks, *(f"{each:.3g}" for each in numbers), by_size))
    if rows:
        more = "" if floor and floor.collectives else " No floor judges them (--floor)."
        yield _table("Collectives", rows, _SAID["notes"]["Collectives"] + more)


def _rates_by_size(run: JudgedRun, id: str) -> Iterator[Chart]:
    """A drawing of all collectives in each place; each doubling of the size is a step."""
    for scope, rates in grouped((each.scope, each) for each in collective_rates(run)).items():
        lines = []
        for op, own in grouped((each.op, each) for each in rates).items():
            sizes = grouped((each.bytes.bit_length() - 1, each.bus_bytes_per_second / 1e9) for each in own)
            lines.append(LossLine(op, [*sizes], [*map(min, sizes.values())]))
        by_size = LossDrawing(
            tuple(lines),
            axes(lines),
            BY_SIZE[scope],
            id=f"{id}-{scope}",
            title="Bus bandwidth",
            across="size",
            tick=lambda doublings: size_text(1 << doublings),
        )
        yield Chart("Bus bandwidth", by_size, Medium.HTML)


def alone_table(run: JudgedRun) -> Iterator[Table]:
    """What hosts do alone: the slowest, the middle and the fastest rank or folder."""
    rows: list[tuple[Cell, ...]] = []
    for name, own in grouped((each.name, each) for each in host_rates(run) if each.passes).items():
        least, *_, most = sorted(own, key=lambda each: -each.rate if each.what in TIMES else each.rate) * 2
        middle = rate_text(own[0].what, median(each.rate for each in own))
        stretch = max(each.stretch for each in own)
        rows.append((name, least.text, least.host, middle, most.text, f"{stretch:.2f}" if stretch else ""))
    if rows:
        yield _table("Each host alone", rows, _SAID["notes"]["Each host alone"])


def _soak_table(soak: Soak, on: Medium) -> Iterator[Table]:
    """What each host did by the second; a terminal has room for those that varied most."""
    found = sorted(
        (v[1] / max(v), what, host, v) for what, own in soak.told.items() for host, v in own.items()
    )
    shown = found[: MOST_RANKS if on in Medium.HTML | Medium.MARKDOWN else MOST_PAIRS]
    rows = [(what, host, *(rate_text(what, each) for each in told)) for _, what, host, told in shown]
    note, more = f"{soak.done} rounds.", len(found) - len(shown)
    note += f" {more} more varied less." if more else ""
    if rows:
        yield _table("Rounds of the soak", rows, note)
