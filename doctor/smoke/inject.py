"""Injected faults, as the user asks for them: `KIND@rank[:step][/group]`. `onhost/inject.py` makes them."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import msgspec

from doctor.errors import UsageError, suggest
from doctor.smoke.events import Phase
from doctor.smoke.result import Injection
from doctor.text.hostprogram import table

_FORM = re.compile(r"([A-Za-z-]{1,40})@(\d{1,7})(?::(\d{1,7}))?(?:/([a-z]{1,9}))?", re.ASCII)

EARLY = ("cp", "ep")
"""Groups that are called in the collectives phase alone."""


@dataclass(frozen=True, slots=True)
class InjectionKind:
    """One kind of fault. `check` must find it: at the injected rank, at that rank's replica or at all ranks
    together (`reach`). `first` is the default step: the first one, or that after a third of all. With
    fewer than `ranks` ranks, `stage` of them in a stage, `replicas` replicas or `steps` steps it would change
    nothing, or nothing that sets the rank apart from the others.
    """

    title: str
    check: str
    first: Literal["never", "start", "third"] = "third"
    takes_step: bool = True
    phase: Phase = "train"
    ranks: int = 1
    stage: int = 1
    replicas: int = 1
    steps: int = 1
    reach: Literal["rank", "replica", "everybody"] = "rank"
    groups: str = ""
    """The groups whose call it can change, beside that of the replicas."""
    group: str = ""
    """The one that is meant if none is named, if not that of the replicas."""

    def first_step(self, steps: int) -> int | None:
        return {"never": None, "start": 0, "third": steps // 3}[self.first]


KINDS = {
    name: msgspec.convert(
        {"title": title, "check": check, **dict(word.split("=") for each in how for word in each.split())},
        InjectionKind,
        strict=False,
    )
    for name, title, check, *how in table(__file__, "inject.txt")
}


def parse_injection(
    text: str,
    ranks: int,
    steps: int,
    replicas: int | None = None,
    stage: int | None = None,
    formed: Collection[str] | None = None,
) -> Injection:
    """The injection that `--inject` asks for; if known, the replicas of each cell, the ranks of a stage, and
    the groups of the training.
    """
    shown = f"--inject {text[:60]!r}"
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{shown} is not KIND@rank[:step]", f"for instance stuck@{ranks - 1}:{steps // 2}")
    name, rank = match[1].lower(), int(match[2])
    kind = KINDS.get(name)
    if kind is None:
        near = suggest(name, KINDS)
        raise UsageError(f"{shown}: there is no fault {name!r}", near or f"faults: {', '.join(KINDS)}")
    if rank >= ranks:
        raise UsageError(f"{shown}: there is no rank {rank}", f"ranks of this run: 0 to {ranks - 1}")
    if missing := _missing(kind, ranks, stage, replicas, steps):
        raise UsageError(f"{shown} would change nothing visible", f"it needs {missing}; this run has fewer")
    there = [each for each in kind.groups.split(",") if formed is None or each in formed]
    group = match[4] or kind.group
    if group and group not in there:
        words = f"{shown}: {name} changes no call of a group {group!r} here"
        raise UsageError(words, f"groups: {', '.join(there)}" if there else "")
    early = group in EARLY
    if match[3] is None:
        return Injection(name, rank, None if early else kind.first_step(steps), group)
    if early or not kind.takes_step:
        plain = f"{name}@{rank}/{group}" if early else f"{name}@{rank}"
        raise UsageError(f"{shown}: {name} happens at no particular step", f"give it as {plain}")
    if int(match[3]) >= steps:
        raise UsageError(f"{shown}: there is no step {match[3]}", f"steps of this run: 0 to {steps - 1}")
    return Injection(name, rank, int(match[3]), group)


def _missing(kind: InjectionKind, ranks: int, stage: int | None, replicas: int | None, steps: int) -> str:
    """What the fault needs and the run lacks; "" if nothing."""
    if ranks < kind.ranks:
        return f"{kind.ranks} ranks"
    if stage is not None and stage < kind.stage:
        return f"{kind.stage} ranks of one stage"
    if replicas is not None and replicas < kind.replicas:
        return f"{kind.replicas} data-parallel replicas"
    return f"{kind.steps} steps" if steps < kind.steps else ""
