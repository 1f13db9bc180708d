"""Charges ranks that entered a different collective than their schedule has.

A charge states only what is proved: what was called instead of what, whether too few or too many were
entered, and the step only if the rank's own reports leave no other. One collective too few or too many is
paired with the next one of the same kind, so it comes to light later than it happened.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from doctor.smoke.judge import phrases
from doctor.smoke.judge.charge import SmokeCharge, worded
from doctor.smoke.judge.deviation import Lapse, PageDeviation, counted, due_bytes
from doctor.smoke.judge.exits import ending_words
from doctor.smoke.judge.stopped_cell import EndedCell, by_host, cells_with
from doctor.smoke.onhost.shape import ScheduledCall
from doctor.smoke.result import RankOutcome, SmokeResult
from doctor.text.grouped import grouped


@dataclass(frozen=True, slots=True)
class _Proof:
    """What one rank did, and the training `step` in which it did so; None if that is unknown."""

    page: PageDeviation
    lapse: Lapse | None
    step: int | None

    @property
    def kind(self) -> str:
        if self.lapse is None:
            return self.page.kind
        return "skip" if self.lapse.entered < self.lapse.due else "extra"


def judge_mismatch(result: SmokeResult) -> Iterator[SmokeCharge]:
    for cell in cells_with(result, "mismatch"):
        proofs = {rank: _proof(cell, rank, found) for rank, found in cell.off.items()}
        ordered = sorted(proofs.items(), key=lambda item: item[1].page.sample.position)
        for ranks in grouped(((proof.kind, _what(proof)), rank) for rank, proof in ordered).values():
            for hosts, here in by_host(result.plan, [result.ranks[rank] for rank in ranks]):
                yield _charge(cell, hosts, here, proofs[here[0].rank])


def judge_sizes(result: SmokeResult) -> Iterator[SmokeCharge]:
    """Ranks of a whole run whose calls of a step had other sizes: a backend may take them, and go on."""
    for number, ranks in enumerate(result.plan.cells if result.end.kind == "done" else ()):
        shape = result.plan.shape(number)._replace(seed=0)
        for place, rank in enumerate(ranks):
            steps = (said for said in result.ranks[rank].steps if said.sizes and said.step < shape.steps)
            for said, due in ((said, due_bytes(shape, place)[said.step]) for said in steps):
                if wrong := next((group for group in due if said.sizes.get(group) != due[group]), None):
                    got = said.sizes.get(wrong, 0)
                    words = worded("sizes", step=said.step, group=wrong, got=got, due=due[wrong])
                    yield SmokeCharge(*words, ranks=(rank,), step=said.step)
                    break


def _proof(cell: EndedCell, rank: int, found: PageDeviation) -> _Proof:
    sample = found.sample
    right, lapse = counted(cell.result.ranks[rank].steps, cell.shape, cell.plan.seat(rank).place)
    if found.kind in ("op", "dtype", "shape", "peer", "tag"):
        # Its number in its group is right, so the wrong call is this one.
        return _Proof(found, None, sample.step if sample.phase == "train" else None)
    if lapse is not None:
        return _Proof(found, lapse, lapse.step)
    return _Proof(found, None, sample.step if sample.phase == "train" and right == sample.step else None)


def _charge(
    cell: EndedCell, hosts: tuple[str, ...], ranks: Sequence[RankOutcome], proof: _Proof
) -> SmokeCharge:
    sample, framework = proof.page.sample, cell.plan.framework
    python = cell.result.python_on(cell.plan.seat(ranks[0].rank).host)
    summary, expected = _words(proof, cell.entries(ranks[0].rank), [seen.rank for seen in cell.ranks])
    phase = "train" if proof.lapse else sample.phase
    values = {"words": summary, "expected": expected, "seen": phrases.page_words(sample)}
    return SmokeCharge(
        *worded("mismatch", kind=proof.kind, phase=phase, **values),
        ranks=tuple(seen.rank for seen in ranks),
        hosts=hosts,
        victims=cell.others(cell.off),
        step=proof.step,
        # The program that dies is often not the one at fault.
        evidence=(*phrases.evidence_of(ranks), *phrases.consequences(cell, cell.off, _ending)),
        commands=(
            # All ranks run the same program: one that deviates has a different framework, or bad memory.
            f"{python} -c 'import {framework}; print({framework}.__version__, {framework}.__file__)'",
            "dmesg -T | grep -iE 'mce|edac|hardware error' | tail",
        ),
    )


def _ending(seen: RankOutcome) -> str:
    return f"{seen.error.type}: {seen.error.text}" if seen.error else f"its process {ending_words(seen)}"


def _what(proof: _Proof) -> object:
    sample = proof.page.sample
    shown = sample.group, sample.op, sample.dtype, sample.bytes, sample.step, sample.end, sample.tag
    return proof.lapse or (proof.page.due, shown)


def _words(proof: _Proof, entries: Sequence[ScheduledCall], ranks: Sequence[int]) -> tuple[str, str]:
    """What the rank did, and what was due."""
    if proof.lapse is not None:
        return _lapse_words(proof.lapse, entries)
    sample, due = proof.page.sample, proof.page.due
    expected = phrases.call_words(due) if due else "no further collective"
    if due is None:
        return f"it entered {phrases.shown_words(sample)}, though all its collectives were done", expected
    call = due.call
    name = phrases.of_phase(f"{call.group} {call.op} {due.seq}", due.phase, call.step)
    other = f"it entered {phrases.shown_words(sample)} where {phrases.call_words(due)} was due"
    if not sample.inside:
        other = f"{phrases.call_words(due)} was due, and it has entered {sample.position} collectives"
    until = ""
    if proof.step is None:
        moment = f"training step {sample.step}" if sample.phase == "train" else f"the {sample.phase} phase"
        until = f", in {moment} or before"
    values = {"sample": sample, "call": call, "name": name, "other": other, "until": until}
    ends = {"peer": ranks[sample.end % len(ranks)], "due_peer": ranks[call.end]}
    return phrases.MISMATCHES[proof.page.kind].format(**values, **ends), expected


def _lapse_words(lapse: Lapse, entries: Sequence[ScheduledCall]) -> tuple[str, str]:
    place = f"training step {lapse.step}"
    due = f"{_times(lapse.due, lapse.group)} in {place}"
    calls = [entry for entry in entries if (entry.phase, entry.call.step) == ("train", lapse.step)]
    mine = [entry for entry in calls if entry.call.group == lapse.group]
    if len(mine) == 1 and lapse.entered == 0:
        return f"it left out {phrases.call_words(mine[0])}", phrases.call_words(mine[0])
    entered = f"it entered {_times(lapse.entered, lapse.group)} in {place} instead of {lapse.due}"
    if lapse.entered < lapse.due:
        return f"it left out a collective: {entered}", due
    return f"it called one collective too many: {entered}", due


def _times(number: int, group: str) -> str:
    return f"{number} {group} collective{'' if number == 1 else 's'}"
