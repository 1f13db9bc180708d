"""Charges the ranks that keep the others waiting: stopped, stuck outside of collectives, or cut off."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from shlex import quote

from doctor.model import Confidence, Evidence, Severity
from doctor.smoke.judge import stopped_cell
from doctor.smoke.judge.broken_connections import accuse_broken, broken_connections
from doctor.smoke.judge.charge import SmokeCharge, ranks_text, worded
from doctor.smoke.judge.exits import IN_KERNEL, LOG, SHELL
from doctor.smoke.judge.network import COMMANDS, failing_network, lost_each_other, network_charges
from doctor.smoke.judge.phrases import call_words, doing, evidence_of, page_words, state_words
from doctor.smoke.onhost.shape import ScheduledCall
from doctor.smoke.result import RankOutcome, SmokeResult
from doctor.text.interpreter import PLAIN

_MOST_WAITS = 16


def judge_hang(result: SmokeResult) -> Iterator[SmokeCharge]:
    for cell in stopped_cell.cells_with(result, "stopped"):
        yield from _stopped(cell)
    for cell in stopped_cell.cells_with(result, "stall"):
        yield from _stalled(cell)
    for cell in stopped_cell.cells_with(result, "connection"):
        what = "ranks lost their connections to each other"
        if failing_network(cell):
            yield from network_charges(cell, what, *stopped_cell.where(cell.fallen[0]))
        else:
            yield lost_each_other(cell)
    yield from _slow(list(stopped_cell.cells_with(result, "slow")))


def judge_hiccups(result: SmokeResult) -> Iterator[SmokeCharge]:
    """Charges for cells that stood still for long and then went on. As no rank moved, none is named."""
    for hiccup in result.hiccups:
        cell = stopped_cell.EndedCell(result, result.plan.seat(hiccup.rank).cell)
        yield SmokeCharge(
            *worded("hiccup", seconds=hiccup.seconds, phase=hiccup.phase),
            hosts=stopped_cell.only_host(cell),
            victims=tuple(seen.rank for seen in cell.ranks),
            confidence=Confidence.STRONG,
            severity=Severity.WARN,
            commands=("uptime", LOG),
        )


def _stopped(cell: stopped_cell.EndedCell) -> Iterator[SmokeCharge]:
    for hosts, here in stopped_cell.by_host(cell.plan, cell.stopped):
        first = here[0]
        phase, step = stopped_cell.where(first)
        by = "a signal (SIGSTOP, SIGTSTP) or a frozen container"
        if first.state == "t":
            traced = re.match(r"Traced by (process \d+ \([^)]+\))$", first.stack, re.M)
            by = f"{traced[1]}, which traces it" if traced else "a debugger or tracer"
        during = f"in the {phase} phase" if step is None else f"in training step {step}"
        yield SmokeCharge(
            *worded("stopped", by=by, during=during, seen=first, words=state_words(first), phase=phase),
            ranks=tuple(seen.rank for seen in here),
            hosts=hosts,
            victims=cell.others(seen.rank for seen in cell.stopped),
            step=step,
            evidence=evidence_of(here),
            commands=SHELL["stopped"],
        )


def _stalled(cell: stopped_cell.EndedCell) -> Iterator[SmokeCharge]:
    stall = cell.stall
    if stall.kind == "outside":
        guilty = [cell.ranks[place] for place in stall.places]
        proved = [seen for seen in guilty if len(stopped_cell.looks(seen)) > 1]
        if not proved:
            waiting = ranks_text(_waiting_for(cell, guilty))
            names = ranks_text(seen.rank for seen in guilty)
            yield replace(_nobody(cell, "one look", guilty, waiting=waiting, names=names), hosts=())
        for hosts, here in stopped_cell.by_host(cell.plan, proved):
            yield _outside(cell, hosts, here, guilty)
    elif stall.kind == "alone" and cell.shape.world == 1:
        found = _nobody(cell, "the only rank", cell.living)
        yield replace(found, ranks=(cell.ranks[0].rank,), victims=(), confidence=Confidence.CERTAIN)
    elif stall.kind == "alone":
        yield _nobody(cell, "all stand still", cell.living)
    elif stall.kind == "inside":
        yield from _inside(cell)


def _inside(cell: stopped_cell.EndedCell) -> Iterator[SmokeCharge]:
    """A collective that all its members have entered does not end."""
    sinks = [cell.ranks[place] for place in cell.stall.places]
    calls = {seen.rank: cell.entries(seen.rank)[stopped_cell.looks(seen)[-1].position - 1] for seen in sinks}
    first = min(calls.values(), key=lambda call: call.position)
    within = [rank for rank, call in calls.items() if call == first]
    are = "are all" if len(within) > 1 else "is"
    what = f"{ranks_text(within)} {are} inside {call_words(first)} and it does not end"
    hosts = {host for seen in sinks for host in _members_on(cell, seen, calls[seen.rank])}
    if len(hosts) == 1:
        found = _nobody(cell, "inside", sinks, words=f"{what}; all of its members are on this host")
        yield replace(found, hosts=tuple(hosts), confidence=Confidence.STRONG)
    elif failing_network(cell):
        yield from network_charges(cell, what, *stopped_cell.where(sinks[0]))
    else:
        known = "the hosts reach each other" if cell.result.mesh else "the network was not tested meanwhile"
        found = _nobody(cell, "inside", sinks, words=f"{what}; {known}, and no single rank is behind")
        broken = broken_connections(cell)
        yield accuse_broken(cell, broken, replace(found, summary=what)) if broken.cut else found


def _members_on(cell: stopped_cell.EndedCell, seen: RankOutcome, entry: ScheduledCall) -> Iterator[str]:
    """The hosts of all members, also of those that have left: gloo lets a rank go once it has its data."""
    for member in entry.call.members or cell.shape.members(entry.call.group, cell.plan.seat(seen.rank).place):
        yield cell.plan.seat(cell.ranks[member].rank).host


def _outside(
    cell: stopped_cell.EndedCell,
    hosts: tuple[str, ...],
    here: Sequence[RankOutcome],
    guilty: Sequence[RankOutcome],
) -> SmokeCharge:
    """Ranks of one host that never entered what others wait in, described by the one furthest behind."""
    first = min(here, key=lambda seen: stopped_cell.looks(seen)[-1].position)
    page = stopped_cell.looks(first)[-1]
    due = cell.entries(first.rank)[page.position]
    waiting = _waiting_for(cell, here)
    wait = "waits" if len(waiting) == 1 else "wait"
    phase, step = stopped_cell.where(first)
    values = {"due": call_words(due), "waiting": ranks_text(waiting), "wait": wait, "page": page_words(page)}
    return SmokeCharge(
        *worded("outside", **values, limit=_limit(cell), words=state_words(first), phase=phase),
        ranks=tuple(seen.rank for seen in here),
        hosts=hosts,
        victims=cell.others(seen.rank for seen in guilty),
        step=step,
        evidence=(*evidence_of(here), *_waits(cell)),
        commands=_commands(cell, first),
    )


def _nobody(
    cell: stopped_cell.EndedCell, name: str, ranks: Sequence[RankOutcome], **values: str
) -> SmokeCharge:
    phase, step = stopped_cell.where(ranks[0])
    return SmokeCharge(
        *worded(name, **values, limit=_limit(cell), phase=phase),
        hosts=stopped_cell.only_host(cell),
        victims=tuple(seen.rank for seen in cell.living),
        step=step,
        confidence=Confidence.SUSPECT,
        evidence=(*_waits(cell), *evidence_of(ranks)),
        commands=COMMANDS if len(cell.hosts) > 1 else (LOG,),
    )


def _slow(cells: Sequence[stopped_cell.EndedCell]) -> Iterator[SmokeCharge]:
    """A warning if time ran out while ranks were still moving: nothing is proved to be broken."""
    if not cells:
        return
    living = [seen for cell in cells for seen in cell.living]
    last = min(living, key=lambda seen: page.position if (page := stopped_cell.last_look(seen)) else 0)
    end = cells[0].result.end
    name = "deadline" if end.kind == "deadline" else "moved"
    phase, step = stopped_cell.where(last)
    values = {"seconds": end.seconds, "limit": _limit(cells[0]), "rank": last.rank}
    yield SmokeCharge(
        *worded(name, **values, doing=doing(*stopped_cell.place_of(last)), phase=phase),
        hosts=stopped_cell.only_host(cells[0]) if len(cells) == 1 else (),
        victims=tuple(seen.rank for seen in living),
        step=step,
        confidence=Confidence.SUSPECT,
        severity=Severity.WARN,
        evidence=evidence_of([last]),
        commands=("uptime", "top -b -n 1 | head -20"),
    )


def _waiting_for(cell: stopped_cell.EndedCell, late: Iterable[RankOutcome]) -> list[int]:
    """The ranks that wait in a collective for one of these."""
    places = {cell.plan.seat(seen.rank).place for seen in late}
    waits = cell.stall.waits
    return [cell.ranks[place].rank for place in sorted(waits) if places & set(waits[place])]


def _waits(cell: stopped_cell.EndedCell) -> Iterator[Evidence]:
    lines = []
    for place, others in sorted(cell.stall.waits.items()):
        seen = cell.ranks[place]
        call = call_words(cell.entries(seen.rank)[stopped_cell.looks(seen)[-1].position - 1])
        names = ranks_text(cell.ranks[other].rank for other in others)
        names = names if others else "nobody: all have entered"
        lines.append(f"rank {seen.rank} is inside {call} and waits for {names}")
    if lines:
        more = [f"and {len(lines) - _MOST_WAITS} more"] if len(lines) > _MOST_WAITS else []
        yield Evidence("who waits for whom", "\n".join(lines[:_MOST_WAITS] + more))


def _commands(cell: stopped_cell.EndedCell, seen: RankOutcome) -> tuple[str, ...]:
    """Commands for its host: the ranks are gone by now, but what made one hang may still be visible."""
    found = IN_KERNEL if seen.state == "D" else ()
    if len(cell.plan.hosts) == 1:
        return found or (LOG,)
    host = cell.plan.seat(seen.rank).host
    python = cell.result.python_on(host)
    return (*found, f"doctor smoke {quote(host)}" + (f" --python {python}" if python != PLAIN else ""))


def _limit(cell: stopped_cell.EndedCell) -> str:
    limit = cell.result.end.limit
    still = [page.still for seen in cell.living if (page := stopped_cell.last_look(seen))]
    return f"{limit if limit is not None else min(still, default=0.0):.1f} s"
