"""Whose connections broke while ranks were inside a collective, by what the kernels of all hosts show.

MindSpore's MCCL neither reports a connection that was reset nor makes it again: its ranks wait forever.
"""

from dataclasses import dataclass

from doctor.model import Confidence, Evidence
from doctor.smoke.judge.charge import SmokeCharge, worded
from doctor.smoke.judge.stopped_cell import EndedCell

Pair = tuple[str, str]
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class BrokenConnections:
    """Pairs of hosts whose ranks were connected. `cut`: no connection is left."""

    cut: tuple[Pair, ...]
    intact: tuple[Pair, ...]

    @property
    def suspects(self) -> tuple[str, ...]:
        """The host that is in all cut pairs, or both hosts of the only one; else nobody."""
        shared = sorted(set(self.cut[0]).intersection(*self.cut)) if self.cut else []
        return tuple(shared) if self.intact or len(self.cut) == 1 else ()


def broken_connections(cell: EndedCell) -> BrokenConnections:
    """Only connections that both kernels showed count, and only if no process of a rank has ended."""
    if any(seen.exit for seen in cell.ranks):
        return BrokenConnections((), ())
    ends = {
        end: (host.host, kept)
        for host in cell.result.hosts
        if host.host in cell.hosts
        for kept, shown in ((True, host.kept), (False, host.broken))
        for end in shown
    }
    pairs: dict[Pair, bool] = {}
    for end, (host, kept) in ends.items():
        near, _, far = end.partition(" ")
        other, also_kept = ends.get(f"{far} {near}", (host, False))
        if host < other:
            pairs[host, other] = pairs.get((host, other), False) or (kept and also_kept)
    cut, intact = ([pair for pair in sorted(pairs) if pairs[pair] is whole] for whole in (False, True))
    return BrokenConnections(tuple(cut), tuple(intact))


def accuse_broken(cell: EndedCell, found: BrokenConnections, hang: SmokeCharge) -> SmokeCharge:
    """The charge if ranks `hang` inside a collective, the network works, and connections broke before."""
    suspects, cut = found.suspects, len(found.cut)
    one = len(suspects) == 1
    name = "broken connections of a host" if one else "broken connections"
    return SmokeCharge(
        *worded(name, hang=hang.summary, cut=cut, all=cut + len(found.intact), phase=hang.phase),
        hosts=suspects,
        victims=tuple(seen.rank for seen in cell.living if cell.plan.seat(seen.rank).host not in suspects),
        step=hang.step,
        confidence=Confidence.STRONG if one else Confidence.SUSPECT,
        evidence=(
            *_shown("connections that broke", found.cut),
            *_shown("connections that held", found.intact),
            *hang.evidence,
        ),
        commands=hang.commands,
        undecided=len(suspects) > 1,
    )


def _shown(source: str, pairs: tuple[Pair, ...]) -> tuple[Evidence, ...]:
    more = f" (+{len(pairs) - _SHOWN})" if len(pairs) > _SHOWN else ""
    text = ", ".join(f"{one} - {other}" for one, other in pairs[:_SHOWN])
    return (Evidence(source, text + more),) if pairs else ()
