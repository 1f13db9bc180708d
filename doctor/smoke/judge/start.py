"""Charges hosts that could not start their ranks, and ranks that never joined the others."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from doctor.job.framework import FRAMEWORKS
from doctor.model import Confidence, Evidence, Severity
from doctor.smoke.judge.charge import SmokeCharge, ranks_text, worded
from doctor.smoke.judge.crash import had_started
from doctor.smoke.judge.exits import IN_KERNEL
from doctor.smoke.judge.network import failing_network, network_charges
from doctor.smoke.judge.phrases import doing, evidence_of, last_lines, one_line, state_words
from doctor.smoke.judge.stopped_cell import READY, EndedCell, by_host, cells_with, looks, only_host, phase_of
from doctor.smoke.onhost.page import PHASES
from doctor.smoke.result import RankOutcome, SmokeResult

IMPORTS = {"torch": "import torch, torch.distributed", "mindspore": "import mindspore"}
"""Framework -> what its ranks import first."""
SLOW_NAMES = 2.0
"""A reverse lookup that takes this many seconds is mentioned: torch does one for each connection."""


def judge_start(result: SmokeResult) -> Iterator[SmokeCharge]:
    yield from _troubled_hosts(result)
    told = False
    for cell in cells_with(result, "stall"):
        if cell.stall.kind not in ("behind", "together"):
            continue
        if any(PHASES.index(phase_of(seen)) > READY for seen in cell.living):
            yield from _never_joined(cell)
        elif not told:  # no rank may join before all ranks of all cells are ready
            told = True
            yield from _never_ready(cell)


def _troubled_hosts(result: SmokeResult) -> Iterator[SmokeCharge]:
    if result.end.kind == "interrupted":
        return
    framework = result.plan.framework
    for host in result.hosts:
        started = had_started(result, host.host)
        if not host.trouble or host.lost or (result.end.kind == "trouble" and started):
            continue
        what, words = "left behind" if started else "not started", one_line(host.trouble)
        yield SmokeCharge(
            *worded(what, words=words, framework=FRAMEWORKS[framework]),
            hosts=(host.host,),
            victims=() if started else tuple(s.rank for s in result.plan.seats if s.host != host.host),
            severity=Severity.WARN if started and result.end.kind == "done" else None,
            evidence=(Evidence("agent", last_lines(host.trouble, 8)),),
            commands=() if started else (f"{host.to_type} -c 'import {framework}'",),
        )


def _never_ready(cell: EndedCell) -> Iterator[SmokeCharge]:
    """All ranks of the run wait for those that are not ready."""
    living = [seen for seen in cell.result.ranks if not seen.done and seen.exit is None]
    late = [seen for seen in living if PHASES.index(phase_of(seen)) < READY]
    if not late:
        yield SmokeCharge(
            *worded("store"),
            hosts=(cell.plan.head,),
            victims=tuple(seen.rank for seen in living),
            confidence=Confidence.SUSPECT,
        )
        return
    stuck = [seen for seen in late if _is_proved(seen)]
    yield from _behind(cell, stuck, [seen for seen in living if seen not in late])


def _never_joined(cell: EndedCell) -> Iterator[SmokeCharge]:
    stall = cell.stall
    late = [cell.ranks[place] for place in stall.places]
    if phase_of(late[0]) == "join" and failing_network(cell):
        # A rank that cannot connect holds up others: failed connections show better which one is first.
        yield from network_charges(cell, "ranks are joining the process group and do not get in")
        return
    if stall.kind == "behind":
        rest = [seen for seen in cell.living if seen not in late]
        yield from _behind(cell, [seen for seen in late if _is_proved(seen)], rest)
        return
    yield SmokeCharge(
        *worded("together", seconds=_seconds(cell)),
        hosts=only_host(cell),
        victims=tuple(seen.rank for seen in cell.living),
        confidence=Confidence.SUSPECT,
        evidence=(*_names(cell), *evidence_of(late)),
        commands=("ip -br addr", "getent hosts $(hostname)"),
    )


def _behind(
    cell: EndedCell, late: Sequence[RankOutcome], rest: Sequence[RankOutcome]
) -> Iterator[SmokeCharge]:
    """`late` are the last ranks, for which `rest` wait; if `rest` is empty, all are equally late."""
    if not late:
        yield SmokeCharge(
            *worded("unproved", seconds=_seconds(cell)),
            victims=tuple(seen.rank for seen in cell.living),
            confidence=Confidence.SUSPECT,
            evidence=evidence_of(cell.living),
        )
        return
    if not rest:
        yield replace(_late(cell, only_host(cell), late, rest), ranks=())
        return
    for hosts, here in by_host(cell.plan, late):
        yield _late(cell, hosts, here, rest)


def _late(
    cell: EndedCell, hosts: tuple[str, ...], late: Sequence[RankOutcome], rest: Sequence[RankOutcome]
) -> SmokeCharge:
    first = late[0]
    phase = phase_of(first)
    pages = looks(first)
    doing_what = f"it is still {doing(phase, pages[-1].step)}" if pages else "nothing was ever heard from it"
    # In the join phase a rank may also be held up by a peer.
    sure = Confidence.STRONG if phase == "join" else Confidence.CERTAIN
    waiting = "like all the others"
    if rest:
        wait = "waits" if len(rest) == 1 else "wait"
        waiting = f"and {ranks_text(seen.rank for seen in rest)} {wait} for it"
    python = cell.result.python_on(cell.plan.seat(first.rank).host)
    values = {"doing": doing_what, "waiting": waiting, "seconds": _seconds(cell)}
    return SmokeCharge(
        *worded("behind", **values, words=state_words(first), phase=phase),
        ranks=tuple(seen.rank for seen in late),
        hosts=hosts,
        victims=tuple(seen.rank for seen in rest),
        confidence=sure if pages else Confidence.SUSPECT,
        evidence=(*evidence_of(late), *_names(cell)),
        commands=(
            f"time {python} -c '{IMPORTS[cell.plan.framework]}'",
            *(IN_KERNEL if first.state == "D" else ()),
        ),
    )


def _is_proved(seen: RankOutcome) -> bool:
    """Whether the rank was seen twice at the same place, or never: a single look proves nothing."""
    pages = looks(seen)[-2:]
    return not seen.samples or (len(pages) == 2 and pages[0].version == pages[1].version)


def _seconds(cell: EndedCell) -> str:
    limit = cell.result.end.limit
    return f"{limit:.1f} s" if limit is not None else f"{cell.result.end.seconds:.0f} s of the run"


def _names(cell: EndedCell) -> Iterator[Evidence]:
    for name in cell.hosts if cell.plan.framework == "torch" else ():
        host = cell.result.host(name)
        if host is not None and host.reverse_dns is not None and host.reverse_dns >= SLOW_NAMES:
            yield Evidence(
                f"reverse lookup on {name}",
                f"for the head's address took {host.reverse_dns:.1f} s; torch does one for each connection",
            )
