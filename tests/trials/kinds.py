"""The faults of the trials: those of `doctor smoke --inject`, and those that are injected from outside."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tests.lab import Host
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
from tests.trials.outcome import Truth

DATA = "eth1"
"""The ranks' network. SSH has a network of its own, so that a fault of one does not affect the other."""

Scope = Literal["rank", "replica", "host", "everybody"]


@dataclass(frozen=True, slots=True)
class Inside:
    """A fault that the run itself makes: `--inject KIND@rank[:step]`."""

    kind: str
    checks: frozenset[str]
    scope: Scope = "rank"
    late: bool = True
    """Whether its step is drawn; otherwise it has its default step."""

    @property
    def name(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True)
class Outside:
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


def _inside(checks: str, kinds: str, scope: Scope = "rank", *, late: bool = True) -> list[Inside]:
    return [Inside(kind, frozenset(checks.split()), scope, late) for kind in kinds.split()]


INSIDE = {
    each.kind: each
    for each in (
        *_inside("smoke-not-started", "never-join", late=False),
        *_inside("smoke-crash", "kill exception exit"),
        *_inside("smoke-hang", "stop stuck spin"),
        *_inside("smoke-mismatch", "skip extra shape dtype op order"),
        *_inside("smoke-mask-divergence", "mask mask-stray mask-hash mask-time mask-ahead"),
        *_inside("smoke-mask-divergence", "same-data", "replica"),
        *_inside("smoke-mask-divergence", "shuffled", "replica", late=False),
        *_inside("smoke-desync", "no-sync", "replica"),
        *_inside("smoke-desync", "param-bit"),
        *_inside("smoke-desync", "other-init", late=False),
        *_inside("smoke-corruption", "grad-bit stale"),
        *_inside("smoke-loss-nan", "nan"),
        *_inside("smoke-collective-wrong", "wrong-result"),
        *_inside("smoke-loss-stall", "frozen", "everybody"),
        *_inside("smoke-loss-stall", "lr-explode", "everybody", late=False),
        *_inside("smoke-straggler", "slow", late=False),
    )
}

STARTED, HANG, CRASH, REACH = (
    frozenset({"smoke-not-started"}),
    frozenset({"smoke-hang"}),
    frozenset({"smoke-crash"}),
    frozenset({"port-unreachable", "smoke-not-started"}),
)
BROKEN_IMPORT = """
import sys

class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "{name}":
            raise ImportError("lib{name}_cpu.so: cannot open shared object file: No such file or directory")

sys.meta_path.insert(0, Broken())
"""
STUCK_IMPORT = """
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "{name}":
            time.sleep(600)

sys.meta_path.insert(0, Slow())
"""


def _stop(host: Host, rank: Rank) -> None:
    del host
    rank.send(signal.SIGSTOP)


def _kill(host: Host, rank: Rank) -> None:
    del host
    rank.send(signal.SIGKILL)


def _hide(host: Host, python: JobPython) -> None:
    without_package(host, python.framework, python)


def _at_import(host: Host, code: str, python: JobPython) -> None:
    sitecustomize(host, code.replace("{name}", python.framework), python)


MIDST = ("collectives", "train", "audit", "bandwidth")
OUTSIDE = {
    each.kind: each
    for each in (
        Outside("stopped", HANG, strike=_stop, scope="rank", phases=MIDST),
        Outside("killed", CRASH, strike=_kill, scope="rank", phases=MIDST),
        Outside("cable", HANG, strike=lambda host, _: host.link_down(DATA)),
        Outside("blackhole", HANG, strike=lambda host, _: silence(host, DATA)),
        Outside("hole", frozenset({"large-packets-lost"}), before=lambda host, _: swallow_large(host, DATA)),
        Outside("late-hole", HANG, strike=lambda host, _: swallow_large(host, DATA, "output")),
        Outside("reset", HANG | CRASH, strike=lambda host, _: reset_connections(host)),
        Outside("lost", CRASH | HANG, strike=lambda host, _: host.power_off()),
        Outside("closed", REACH, before=lambda host, _: no_new_connections(host, DATA)),
        Outside("one-way", REACH, before=lambda host, _: no_way_out(host, DATA)),
        Outside("no-torch", STARTED | {"torch-missing"}, before=_hide),
        Outside("broken-torch", STARTED, before=lambda host, own: _at_import(host, BROKEN_IMPORT, own)),
        Outside("stuck-import", STARTED, before=lambda host, own: _at_import(host, STUCK_IMPORT, own)),
        Outside("shm", STARTED | CRASH, before=lambda host, _: full_shm(host)),
        Outside(
            "slow-link",
            frozenset({"smoke-slow-link"}),
            before=lambda host, _: host.slow_link("100mbit", DATA),
        ),
    )
}

NOT_JUDGED = {"mindspore": ("slow-link",)}
"""Framework -> the faults that its runs say they do not judge."""


def fault_of(word: str) -> Inside | Outside:
    return INSIDE[word] if word in INSIDE else OUTSIDE[word]


def truth_of(fault: Inside | Outside, rank: int, host: str, tp: int) -> Truth:
    """The guilty party if it is done to this rank of this host, with replicas of `tp` ranks."""
    if fault.scope == "everybody":
        return Truth(fault.checks, frozenset(), frozenset())
    if fault.scope == "host":
        return Truth(fault.checks, frozenset({host}), None)
    first = rank - rank % tp
    replica = range(first, first + tp) if fault.scope == "replica" else (rank,)
    return Truth(fault.checks, frozenset({host}), frozenset(replica))


def order() -> list[str]:
    """All faults as the table lists them."""
    return ["healthy", "healthy beside hogs", *INSIDE, *(each.name for each in OUTSIDE.values())]
