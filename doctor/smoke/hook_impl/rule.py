"""The rule: equal inside a model-parallel group, different between replicas. Pure.

A part that a rank did not give, or that could not be read, is not compared: stages of a pipeline may lack it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from doctor.smoke.hook_impl.verdict import Divergence

PARTS = ("tokens", "mask", "labels")
if TYPE_CHECKING:  # Python 3.8 cannot evaluate them
    Call = Mapping[int, Mapping[str, str]]
    """Rank -> part -> hash."""


class HookLayout(NamedTuple):
    """`groups` are model-parallel groups; the ranks of each of `replicas` belong to different replicas."""

    groups: tuple[tuple[int, ...], ...] = ()
    replicas: tuple[tuple[int, ...], ...] = ()
    told: bool = True


def neighbours(world: int, size: int) -> HookLayout:
    """Groups of `size` neighbouring ranks."""
    return HookLayout(
        tuple(tuple(range(first, first + size)) for first in range(0, world, size)),
        tuple(tuple(range(first, world, size)) for first in range(size)),
    )


def from_data(calls: Sequence[Call]) -> HookLayout:
    """Ranks that always read the same tokens form a group: if they are replicas, that itself is wrong."""
    read = {}
    for rank in sorted(set(calls[0]).intersection(*calls[1:])):
        tokens = [call[rank].get("tokens", "") for call in calls]
        read[rank] = " ".join(tokens) if all(tokens) else ""
    return HookLayout(tuple(_alike(read)), told=False)


def divergences(calls: Sequence[Call], layout: HookLayout) -> tuple[Divergence, ...]:
    """What is wrong in the calls so far, each with the call in which it began."""
    return (
        *(one for part in PARTS for group in layout.groups for one in _inside(calls, layout, part, group)),
        *(one for ranks in layout.replicas for one in _same_tokens(calls, layout, ranks)),
        *(
            Divergence("same", "mask", same, ranks, 1, layout.told)
            for ranks in layout.replicas
            for same in _same_masks(calls, ranks)
        ),
    )


def ungrouped(call: Call, layout: HookLayout) -> tuple[int, ...]:
    """The ranks that gave tokens and were compared with no other rank, because their layout is unknown."""
    grouped = {rank for group in layout.groups for rank in group}
    return () if layout.told else tuple(r for r in call if call[r].get("tokens") and r not in grouped)


def compares(call: Call, layout: HookLayout) -> bool:
    """Whether at least two ranks gave something that the rule compares between them."""
    pairs = [(part, ranks) for part in PARTS for ranks in layout.groups]
    pairs += [(part, ranks) for part in ("tokens", "mask") for ranks in layout.replicas]
    return any(sum(bool(call.get(rank, {}).get(part)) for rank in ranks) > 1 for part, ranks in pairs)


def _inside(
    calls: Sequence[Call], layout: HookLayout, part: str, group: tuple[int, ...]
) -> Iterable[Divergence]:
    for number, call in enumerate(calls, 1):
        hashes = {rank: call[rank][part] for rank in group if call.get(rank, {}).get(part)}
        counted = Counter(hashes.values()).most_common()
        if len(counted) > 1:
            right, votes = counted[0]
            # Only a majority decides who is right.
            decided = 2 * votes > len(hashes)
            ranks = tuple(rank for rank in hashes if not decided or hashes[rank] != right)
            yield Divergence("differs", part, ranks, tuple(hashes), number, layout.told)
            return


def _same_tokens(calls: Sequence[Call], layout: HookLayout, ranks: tuple[int, ...]) -> Iterable[Divergence]:
    """Replicas that read the same tokens."""
    known: set[int] = set()
    for number, call in enumerate(calls, 1):
        for same in _alike({rank: call.get(rank, {}).get("tokens", "") for rank in ranks}):
            if not known.issuperset(same):
                known.update(same)
                yield Divergence("same", "tokens", same, ranks, number, layout.told)


def _same_masks(calls: Sequence[Call], ranks: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Only masks that change from call to call count: others are not drawn but fixed, as causal ones are."""
    drawn = {}
    for rank in ranks:
        seen = [call.get(rank, {}).get("mask", "") for call in calls]
        drawn[rank] = " ".join(seen) if len(seen) > 1 and all(seen) and len(set(seen)) == len(seen) else ""
    return _alike(drawn)


def _alike(hashes: Mapping[int, str]) -> list[tuple[int, ...]]:
    """The groups of at least two ranks that share a hash; "" is not a hash."""
    by_hash: dict[str, list[int]] = {}
    for rank, value in hashes.items():
        if value:
            by_hash.setdefault(value, []).append(rank)
    return [tuple(same) for same in by_hash.values() if len(same) > 1]
