"""Charges ranks that entered another collective than their schedule has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from doctor.smoke.judge.charge import Charge
from doctor.smoke.judge.deviation import PageDeviation
from doctor.smoke.judge.exits import ending_words
from doctor.smoke.judge.phrases import (
    call_words,
    consequences,
    doing,
    evidence_of,
    page_words,
    shown_words,
)
from doctor.smoke.judge.stopped_cell import EndedCell, by_host, cells_with
from doctor.smoke.result import RankSeen, SmokeResult
from doctor.text.interpreter import to_type


def judge_mismatch(result: SmokeResult) -> Iterator[Charge]:
    for cell in cells_with(result, "mismatch"):
        alike: dict[object, list[int]] = {}
        for rank, found in sorted(cell.off.items(), key=lambda item: item[1].sample.position):
            alike.setdefault((found.kind, found.due, _what(found)), []).append(rank)
        for ranks in alike.values():
            for hosts, here in by_host(result.plan, [result.ranks[rank] for rank in ranks]):
                yield _charge(cell, hosts, here)


def _charge(cell: EndedCell, hosts: tuple[str, ...], ranks: Sequence[RankSeen]) -> Charge:
    first = cell.off[ranks[0].rank]
    sample, python = first.sample, to_type(cell.python_of(ranks[0]))
    return Charge(
        check="smoke-mismatch",
        kind=first.kind,
        summary=_summary(first),
        expected=call_words(first.due) if first.due else "no further collective",
        actual=page_words(sample),
        ranks=tuple(seen.rank for seen in ranks),
        hosts=hosts,
        victims=cell.others(cell.off),
        phase=sample.phase,
        step=sample.step if sample.phase == "train" else None,
        # The program that dies is often not the one at fault.
        evidence=(*evidence_of(ranks), *consequences(cell, cell.off, _ending)),
        commands=(
            # All ranks run the same program: one that does something else has another torch, or bad memory.
            f"{python} -c 'import torch; print(torch.__version__, torch.__file__)'",
            "dmesg -T | grep -iE 'mce|edac|hardware error' | tail",
        ),
    )


def _ending(seen: RankSeen) -> str:
    return f"{seen.error.type}: {seen.error.text}" if seen.error else f"its process {ending_words(seen)}"


def _what(found: PageDeviation) -> object:
    sample = found.sample
    return sample.group, sample.op, sample.dtype, sample.bytes, sample.step


def _summary(found: PageDeviation) -> str:
    sample, due = found.sample, found.due
    if due is None:
        return f"it entered {shown_words(sample)}, though all its collectives were done"
    call = due.call
    name = f"{call.group} {call.op} {due.seq} of "
    name += f"training step {call.step}" if due.phase == "train" else f"the {due.phase} phase"
    other = f"it entered {shown_words(sample)} where {call_words(due)} was due"
    return {
        "dtype": f"it entered {name} with {sample.dtype} data instead of {call.dtype}",
        "shape": f"it entered {name} with {sample.bytes} bytes instead of {call.bytes}",
        "op": f"it called {sample.op} where its peers called {call.op}, as {name}",
        "skip": f"it skipped a collective: {other}",
        "extra": f"it called one collective too many: {other}",
        "order": f"it swapped two collectives or left one out: {other}",
        "phase": f"it skipped a collective: it is {doing(sample.phase, sample.step)} and never entered "
        f"{call_words(due)}",
    }[found.kind]
