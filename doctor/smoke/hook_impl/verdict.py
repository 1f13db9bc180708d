"""What the hook found, as a value and as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from doctor.text.ranks import ranks_text

AGREE, DIVERGE, NOT_COMPARED = "agree", "diverge", "not compared"
_SHOWN = 8


@dataclass(frozen=True)
class Divergence:
    """One part of the batch that is wrong on some ranks.

    `kind` "differs": `ranks` differ from the rest of their model-parallel `group`, or, if they are the whole
    group, from each other. `kind` "same": `ranks` belong to different replicas and have the same. `since`
    counts calls from 1. Not `sure`: the layout was not given but inferred from the data.
    """

    kind: str
    part: str
    ranks: tuple[int, ...]
    group: tuple[int, ...]
    since: int
    sure: bool = True


@dataclass(frozen=True)
class Verdict:
    """`status` is "agree", "diverge" or "not compared"; `text` explains it, and is empty if all is well."""

    status: str
    call: int
    divergences: tuple[Divergence, ...] = ()
    missing: tuple[int, ...] = ()
    """Ranks that did not call in time."""
    unread: tuple[str, ...] = ()
    """Why some parts that ranks gave could not be hashed."""
    text: str = ""

    @property
    def ranks(self) -> tuple[int, ...]:
        """All ranks that diverge."""
        return tuple(sorted({rank for divergence in self.divergences for rank in divergence.ranks}))

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def from_plain(seen: dict[str, Any]) -> Verdict:
    divergences = tuple(
        Divergence(**{**one, "ranks": tuple(one["ranks"]), "group": tuple(one["group"])})
        for one in seen["divergences"]
    )
    return Verdict(
        seen["status"], seen["call"], divergences, tuple(seen["missing"]), tuple(seen["unread"]), seen["text"]
    )


class Diverged(RuntimeError):
    """Raised on request, on every rank; `verdict` says what was found."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.text)
        self.verdict = verdict


def not_compared(call: int, why: str, missing: Iterable[int] = ()) -> Verdict:
    text = f"doctor: the batches of the ranks were not compared: {why}."
    return Verdict(NOT_COMPARED, call, missing=tuple(missing), text=text)


def explained(divergences: tuple[Divergence, ...]) -> str:
    """The text for people: what differs, what that does, and where to look."""
    lines = ["doctor: the ranks do not train on what they should:"]
    shown = _folded(divergences)
    lines += [f"doctor:   {line}" for line in shown[:_SHOWN]]
    if len(shown) > _SHOWN:
        lines.append(f"doctor:   … and {len(shown) - _SHOWN} more")
    return "\n".join([*lines, *(f"doctor: {line}" for line in _advice(divergences))])


def _folded(divergences: tuple[Divergence, ...]) -> list[str]:
    """One line for divergences of the same part from the same call on."""
    alike: dict[tuple[str, str, bool, int], list[Divergence]] = {}
    for one in divergences:
        alike.setdefault((one.kind, one.part, one.ranks == one.group, one.since), []).append(one)
    lines = []
    for (kind, part, whole, since), ones in alike.items():
        start = f"from call {since} on: "
        ranks = "; ".join(ranks_text(one.ranks) for one in ones)
        if kind == "same":
            lines.append(f"{start}the same {part} in different replicas: {ranks}")
        elif whole:
            lines.append(f"{start}not the same {part} inside a model-parallel group: {ranks}")
        else:
            ranks = "; ".join(f"{ranks_text(one.ranks)} of {ranks_text(one.group)}" for one in ones)
            lines.append(f"{start}not the {part} of the rest of the model-parallel group: {ranks}")
    return lines


def _advice(divergences: tuple[Divergence, ...]) -> list[str]:
    differing = {one.part for one in divergences if one.kind == "differs"}
    lines = []
    if "tokens" in differing:
        lines.append(
            "All ranks of a model-parallel group must read the same samples: give the sampler the number"
        )
        lines.append("and the count of the replicas (data-parallel ranks), not those of the processes.")
        if "mask" in differing:
            lines.append(
                "If these are the tokens after masking: seed the mask by the replica, not by the rank."
            )
    elif differing:
        lines += [
            "The tokens are equal, so the loader is right: something is drawn in each process by itself,",
            "and a model split over these ranks cannot learn from it. Seed every random stream (python,",
            "numpy, the framework, loader workers) with seed + replica, never with seed + rank or the time.",
        ]
    if any(one.kind == "same" for one in divergences):
        lines.append(
            "Replicas must see different samples: shard the data by replica, and let the seed depend on it."
        )
    if any(not one.sure for one in divergences):
        lines.append(
            "The layout was taken from the data; pass the groups, tensor_parallel= or replicas= to be sure."
        )
    return lines
