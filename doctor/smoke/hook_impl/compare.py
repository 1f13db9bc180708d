"""One call of the hook: hash, exchange, judge on rank 0, send the verdict to all ranks. Never raises."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from doctor.smoke.hook_impl import channel as channels
from doctor.smoke.hook_impl import place as places
from doctor.smoke.hook_impl import rule
from doctor.smoke.hook_impl.digest import digest
from doctor.smoke.hook_impl.verdict import (
    AGREE,
    DIVERGE,
    Divergence,
    Verdict,
    explained,
    from_plain,
    not_compared,
)
from doctor.text.printable import clean
from doctor.text.ranks import ranks_text

TAKEN = (
    "that rank has called already: another process has the same number, or DOCTOR_HOOK_DIR is not empty but "
    "holds an earlier run"
)
UNGROUPED = "and nothing says which of them belong together; pass the groups, tensor_parallel= or replicas="
_calls: list[dict[int, dict[str, str]]] = []
_reported: set[Divergence | str] = set()


def compare(
    call: int,
    parts: Mapping[str, Any],
    *,
    model: Any,
    data: Any,
    tensor_parallel: int | None,
    replicas: int | None,
    wait: float,
) -> Verdict:
    """The verdict of this call, on every rank; rank 0 prints what is new in it."""
    rank = 0
    try:
        rank, world, source = places.place()
        if world < 2:
            raise places.NotComparable(f"according to {source}, the job has one rank")
        way = channels.channel()
        size = _group_size(world, tensor_parallel, replicas)
        own = _hashed(parts)
        own.update(model=channels.group_ranks(model), data=channels.group_ranks(data))
        if way.there(f"{call}", f"{rank}"):
            raise places.NotComparable(f"according to {source}, this is rank {rank}, and {TAKEN}")
        way.put(f"{call}", f"{rank}", json.dumps(own))
        verdict = _judged(way, call, world, size, wait) if rank == 0 else _verdict_of_rank_0(way, call, wait)
    except places.NotComparable as error:
        verdict = not_compared(call, str(error))
    except Exception as error:  # no error here is worth losing the job
        verdict = not_compared(call, f"{type(error).__name__}: {str(error)[:200]}")
    return _report_once(rank, verdict)


def _hashed(parts: Mapping[str, Any]) -> dict[str, Any]:
    hashes, unread = {}, {}
    for part, value in parts.items():
        if value is not None:
            try:
                hashes[part] = digest(value)
            except Exception as error:  # tensors of any library may raise anything
                unread[part] = f"the {part} cannot be read ({type(error).__name__}: {str(error)[:100]})"
    return {"hashes": hashes, "unread": unread}


def _group_size(world: int, tensor_parallel: int | None, replicas: int | None) -> int | None:
    """The number of ranks in a model-parallel group, if known."""
    size = tensor_parallel or places.number("DOCTOR_HOOK_TENSOR_PARALLEL") or None
    count = replicas or places.number("DOCTOR_HOOK_REPLICAS") or None
    if size is None and count is not None:
        if world % count:
            raise ValueError(f"{world} ranks cannot be {count} replicas")
        size = world // count
    if size is not None and world % size:
        raise ValueError(f"{world} ranks cannot form groups of {size}")
    return size


def _judged(way: channels.Channel, call: int, world: int, size: int | None, wait: float) -> Verdict:
    box = f"{call}"
    missing: tuple[int, ...] = ()
    if not channels.await_(lambda: way.count(box) >= world, wait):
        missing = tuple(rank for rank in range(world) if not way.there(box, f"{rank}"))
    seen = {rank: json.loads(way.take(box, f"{rank}")) for rank in range(world) if rank not in missing}
    _calls.append({rank: one["hashes"] for rank, one in seen.items()})
    unread = {part: why for one in seen.values() for part, why in one["unread"].items()}
    layout = _layout(seen, world, size)
    found = rule.divergences(_calls, layout)
    if found:
        verdict = Verdict(DIVERGE, call, found, missing, tuple(unread.values()), explained(found))
    elif missing:
        verdict = not_compared(call, f"{ranks_text(missing)} did not call within {wait:g} s", missing)
    elif lonely := rule.ungrouped(_calls[-1], layout):
        alone = f"{ranks_text(lonely)} have the same tokens as no other rank"
        if len(lonely) == len(seen):
            alone = "no two ranks have the same tokens"
        verdict = not_compared(call, f"{alone}, {UNGROUPED}")
    elif not rule.compares(_calls[-1], layout):
        verdict = not_compared(call, "; ".join(unread.values()) or _nothing_compared(layout))
    else:
        text = "\n".join(f"doctor: not compared: {why}." for why in unread.values())
        verdict = Verdict(AGREE, call, unread=tuple(unread.values()), text=text)
    way.put(f"{call}-verdict", "0", json.dumps(verdict.plain()))
    return verdict


def _nothing_compared(layout: rule.HookLayout) -> str:
    if not any(any(hashes.values()) for hashes in _calls[-1].values()):
        return "no rank gave anything"
    if layout.told:
        return "no two ranks that gave something are in one group, or are known to be replicas"
    return f"no two ranks have the same tokens, {UNGROUPED}"


def _layout(seen: Mapping[int, Any], world: int, size: int | None) -> rule.HookLayout:
    groups, replicas = (
        tuple(sorted({tuple(one[kind]) for one in seen.values() if one[kind]})) for kind in ("model", "data")
    )
    if groups or replicas:
        return rule.HookLayout(groups or rule.from_data(_calls).groups, replicas)
    return rule.from_data(_calls) if size is None else rule.neighbours(world, size)


def _verdict_of_rank_0(way: channels.Channel, call: int, wait: float) -> Verdict:
    # Rank 0 may itself have waited for this long.
    if not channels.await_(lambda: way.there(f"{call}-verdict", "0"), wait + 2):
        return not_compared(call, f"rank 0 did not answer within {wait + 2:g} s", (0,))
    return from_plain(json.loads(way.take(f"{call}-verdict", "0")))


def _report_once(rank: int, verdict: Verdict) -> Verdict:
    """Print what rank 0 has not printed before."""
    parts: list[Divergence | str] = [*verdict.divergences] or [verdict.text]
    news = {part for part in parts if part} - _reported
    if rank == 0 and news:
        print(clean(verdict.text), file=sys.stderr, flush=True)
    _reported.update(news)
    return verdict
