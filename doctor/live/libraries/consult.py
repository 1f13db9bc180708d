"""All opinions on one job, and how they contradict each other."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from doctor.live.evidence import JobMember, LiveEvidence
from doctor.live.libraries import logs, ras, recorder, torch_npu
from doctor.live.libraries.groups import named
from doctor.live.libraries.opinions import Opinion, OpinionKind, Trust
from doctor.live.libraries.rank_finder import RankFinder
from doctor.text.printable import clean_line

ASKED: tuple[Callable[[RankFinder], Opinion | None], ...] = (
    ras.opinion,
    recorder.opinion,
    torch_npu.opinion,
    logs.heartbeat,
    logs.scheduler,
)


MOST = 64
"""The most subjects of an opinion that are kept."""


def opinions(evidence: LiveEvidence, ranks: Sequence[JobMember]) -> tuple[Opinion, ...]:
    """All opinions on the job of these ranks: strong ones first, silent ones last."""
    who = RankFinder(evidence, tuple(ranks))
    found = [_printable(each) for ask in ASKED if (each := ask(who)) is not None]
    found.sort(key=lambda each: (each.kind is OpinionKind.SILENT, each.trust is not Trust.STRONG))
    return tuple(
        replace(each, against=tuple(_against(each, other) for other in found if contradict(each, other)))
        for each in found
    )


def _printable(said: Opinion) -> Opinion:
    """The opinion with printable texts only, and not too many: a job chooses the names of groups, operations
    and hosts.
    """
    lines, subjects = tuple(clean_line(line)[:4096] for line in said.evidence[:16]), said.subjects
    more, words = max(0, len(subjects) - MOST), clean_line(said.words)[:4096]
    return replace(said, words=words, subjects=subjects[:MOST], more=more, evidence=lines)


def contradict(one: Opinion, other: Opinion) -> bool:
    """Whether the two cannot both be true. A subject with an unknown rank contradicts nothing."""
    kinds = {one.kind, other.kind}
    if one is other or OpinionKind.SILENT in kinds:
        return False
    if OpinionKind.MOVES in kinds or OpinionKind.LAUNCHED in kinds:
        return one.kind is not other.kind
    known = all(each.rank is not None for opinion in (one, other) for each in opinion.subjects)
    return known and not one.ranks & other.ranks


def _against(one: Opinion, other: Opinion) -> str:
    says = {
        OpinionKind.BLAMES: f"blames {named(other.subjects)}",
        OpinionKind.MISMATCH: f"sees {named(other.subjects)} in different operations",
        OpinionKind.LAUNCHED: "sees all ranks in the same operation",
        OpinionKind.MOVES: "sees the job move",
    }
    return f"{other.source.label} {says[other.kind]}; {one.source.label} does not"[:4096]
