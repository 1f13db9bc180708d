"""The faults of the trials: those of `doctor smoke --inject`, and those that are injected from outside."""

import signal
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, convert

from tests.lab import Host
from tests.support.cases import from_cases
from tests.support.smoke.faults import (
    JobPython,
    full_shm,
    no_new_connections,
    no_way_out,
    reset_connections,
    silence,
    sitecustomize,
    swallow_large,
    without_package,
)
from tests.support.smoke.pages import Rank
from tests.trials.kindfile import entries
from tests.trials.outcome import Truth

DATA = "eth1"
"""The ranks' network. SSH has a network of its own, so that a fault of one does not affect the other."""

Scope = Literal["rank", "replica", "host", "everybody"]


class Inside(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault that the run itself makes: `--inject KIND@rank[:step]`."""

    kind: str
    checks: frozenset[str]
    scope: Scope = "rank"
    late: bool = True
    """Whether its step is drawn; otherwise it has its default step."""

    @property
    def name(self) -> str:
        return self.kind


class Outside(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault that the trial makes: before the run, or during the run to a rank or to its host."""

    kind: str
    checks: frozenset[str]
    before: Callable[[Host, JobPython], object] | None = None
    strike: Callable[[Host, Rank], object] | None = None
    scope: Scope = "host"
    phases: tuple[str, ...] = ("train",)
    """The phases in which it strikes; one of them is drawn."""

    @property
    def name(self) -> str:
        return f"{self.kind} *"


BROKEN_IMPORT = from_cases(__file__, "BROKEN_IMPORT", str)
STUCK_IMPORT = from_cases(__file__, "STUCK_IMPORT", str)


def _at_import(host: Host, code: str, python: JobPython) -> None:
    sitecustomize(host, code.replace("{name}", python.framework), python)


BEFORE: Mapping[str, Callable[[Host, JobPython], object]] = {
    "hole": lambda host, _: swallow_large(host, DATA),
    "closed": lambda host, _: no_new_connections(host, DATA),
    "one-way": lambda host, _: no_way_out(host, DATA),
    "no-torch": lambda host, python: without_package(host, python.framework, python),
    "broken-torch": lambda host, python: _at_import(host, BROKEN_IMPORT, python),
    "stuck-import": lambda host, python: _at_import(host, STUCK_IMPORT, python),
    "shm": lambda host, _: full_shm(host),
    "slow-link": lambda host, _: host.slow_link("100mbit", DATA),
}
STRIKES: Mapping[str, Callable[[Host, Rank], object]] = {
    "stopped": lambda _, rank: rank.send(signal.SIGSTOP),
    "killed": lambda _, rank: rank.send(signal.SIGKILL),
    "cable": lambda host, _: host.link_down(DATA),
    "blackhole": lambda host, _: silence(host, DATA),
    "late-hole": lambda host, _: swallow_large(host, DATA, "output"),
    "reset": lambda host, _: reset_connections(host),
    "lost": lambda host, _: host.power_off(),
}


def _acts(kind: str) -> dict[str, Any]:
    return {"before": BEFORE.get(kind), "strike": STRIKES.get(kind)}


FAULTS = entries(__file__)
INSIDE = {each.kind: each for each in convert(FAULTS["inside"], list[Inside])}
OUTSIDE = {
    each.kind: each
    for each in convert([row | _acts(row["kind"]) for row in FAULTS["outside"]], list[Outside])
}
HEALTHY = ("healthy", "healthy beside hogs")
ORDER = (*HEALTHY, *INSIDE, *(each.name for each in OUTSIDE.values()))
"""All rows of the table."""
STAGED = ("peer", "tag")
"""Kinds that need the stages of a pipeline."""
NOT_JUDGED = {"mindspore": ("slow-link",)}
"""Framework -> the faults that its runs say they do not judge."""


def fault_of(word: str) -> Inside | Outside:
    return INSIDE[word] if word in INSIDE else OUTSIDE[word]


def truth_of(
    fault: Inside | Outside, rank: int, replica: Iterable[int], host_of: Callable[[int], str]
) -> Truth:
    """The guilty party if it is done to this rank, whose replica has these ranks."""
    if fault.scope == "everybody":
        return Truth(fault.checks, frozenset(), frozenset())
    if fault.scope == "host":
        return Truth(fault.checks, frozenset({host_of(rank)}), None)
    guilty = frozenset(replica if fault.scope == "replica" else (rank,))
    return Truth(fault.checks, frozenset(map(host_of, guilty)), guilty)
