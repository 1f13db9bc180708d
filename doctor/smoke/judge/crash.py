"""Charges processes that died and hosts that were lost. Those that died because a peer did are victims."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote

from doctor.model import Confidence, Evidence
from doctor.smoke.judge.charge import SmokeCharge, worded
from doctor.smoke.judge.exits import LOG, ORDER, commands, ending_words, remedy, said, way_of
from doctor.smoke.judge.phrases import SHOWN, consequences, doing, evidence, last_lines, one_line
from doctor.smoke.judge.stopped_cell import READY, EndedCell, by_host, cells_with, place_of
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.result import RankOutcome, SmokeResult
from doctor.text.grouped import grouped


def judge_crash(result: SmokeResult) -> Iterator[SmokeCharge]:
    yield from _lost_hosts(result)
    for cell in cells_with(result, "crash"):
        yield from _dead(cell)


def _lost_hosts(result: SmokeResult) -> Iterator[SmokeCharge]:
    if result.end.kind == "interrupted":
        return
    for host in result.hosts:
        if host.lost is not None:
            what, why = "lost host", host.lost.summary
            detail = Evidence("ssh", one_line(host.lost.detail or why))
            shell = (f"ping -c 3 {quote(host.host)}", *host.lost.commands)
        elif host.trouble and result.end.kind == "trouble" and had_started(result, host.host):
            what, why = "lost agent", one_line(host.trouble)
            detail = Evidence("agent", last_lines(host.trouble))
            shell = ("uptime", LOG)
        else:
            continue
        cells = {seat.cell for seat in result.plan.on(host.host)}
        yield SmokeCharge(
            *worded(what, why=why),
            hosts=(host.host,),
            victims=tuple(s.rank for s in result.plan.seats if s.cell in cells and s.host != host.host),
            confidence=Confidence.STRONG,
            evidence=(detail,),
            commands=shell,
        )


def had_started(result: SmokeResult, host: str) -> bool:
    """Whether any rank of the host got as far as waiting for the others."""
    ranks = [result.ranks[seat.rank] for seat in result.plan.on(host)]
    return any(seen.started or PHASES.index(seen.phase) >= READY for seen in ranks)


def _dead(cell: EndedCell) -> Iterator[SmokeCharge]:
    ways = {seen.rank: way_of(seen) for seen in cell.fallen}
    way = next(way for way in ORDER if way in ways.values())
    guilty = [seen for seen in cell.fallen if ways[seen.rank] == way]
    for ending, ranks in grouped((_ending(seen), seen) for seen in guilty).items():
        if len(ranks) == len(cell.ranks) and len(cell.hosts) > 1:
            charge = _charge(cell, way, ending, ranks, guilty)
            yield replace(charge, summary=f"{charge.summary}, and so did all ranks", ranks=())
        else:
            for hosts, here in by_host(cell.plan, ranks):
                yield replace(_charge(cell, way, ending, here, guilty), hosts=hosts)


def _ending(seen: RankOutcome) -> str:
    if seen.error is None:
        return f"its process {ending_words(seen)}"
    advice = next(filter(_ADVICE.search, _SENTENCES.split(" ".join(said(seen).split()))), "")
    return f"it stopped with {seen.error.type}: {one_line(seen.error.text)}" + (
        f"; it was told: {one_line(advice)}" if advice and advice not in seen.error.text else ""
    )


_SENTENCES = re.compile(r"(?<=[.!?]) +(?=[A-Z])")
_ADVICE = re.compile(r"\b(?:(?:down|up)grade|reinstall|(?:pip|conda) install)\b", re.IGNORECASE)
"""A library that does not fit another often says on stderr what to do, and then raises something obscure."""


def _charge(
    cell: EndedCell, way: str, ending: str, ranks: Sequence[RankOutcome], guilty: Sequence[RankOutcome]
) -> SmokeCharge:
    first = ranks[0]
    phase, step = place_of(first)
    return SmokeCharge(
        *worded("dead", way=way, ending=ending, doing=doing(phase, step), actual=_actual(first), phase=phase),
        ranks=tuple(seen.rank for seen in ranks),
        victims=cell.others(seen.rank for seen in guilty),
        step=step if phase == "train" else None,
        evidence=(
            *(each for seen in ranks[:SHOWN] for each in _words(seen)),
            *consequences(cell, [seen.rank for seen in guilty], _ending),
        ),
        commands=commands(first),
        remedy=remedy(first),
    )


def _actual(seen: RankOutcome) -> str:
    if seen.exit is None:
        return "an exception"
    how = f"signal {seen.exit.signal}" if seen.exit.signal is not None else f"exit status {seen.exit.code}"
    return f"{how} after {seen.exit.after:.1f} s"


def _words(seen: RankOutcome) -> list[Evidence]:
    found = []
    if seen.error is not None and seen.error.trace:
        found.append(Evidence(f"trace of rank {seen.rank}", last_lines(seen.error.trace, 12)))
    if seen.exit is not None and seen.exit.words.strip():
        found.append(Evidence(f"last words of rank {seen.rank}", last_lines(seen.exit.words)))
    return found + evidence(seen)
