"""Injected faults, as the user asks for them: `KIND@rank[:step]`. `onhost/inject.py` carries them out."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from doctor.errors import UsageError, suggest
from doctor.smoke.events import Phase
from doctor.smoke.result import Injection

_FORM = re.compile(r"([A-Za-z-]{1,40})@(\d{1,7})(?::(\d{1,7}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class InjectionKind:
    """One kind of fault. `check` must find it: at the injected rank, at that rank's replica or at all ranks
    together (`reach`). `first` is the default step as a fraction of all steps; None if it has no step. With
    fewer than `ranks` ranks, `replicas` replicas or `steps` steps it would change nothing, or nothing that
    sets the rank apart from the others.
    """

    title: str
    check: str
    first: Fraction | None = Fraction(1, 3)
    takes_step: bool = True
    phase: Phase = "train"
    ranks: int = 1
    replicas: int = 1
    steps: int = 1
    reach: Literal["rank", "replica", "everybody"] = "rank"


_START = Fraction(0)
KINDS = {
    "never-join": InjectionKind(
        "sleeps instead of joining", "smoke-not-started", None, takes_step=False, phase="join", ranks=2
    ),
    "kill": InjectionKind("is killed by SIGKILL", "smoke-crash"),
    "stop": InjectionKind("is stopped by SIGSTOP", "smoke-hang"),
    "stuck": InjectionKind("sleeps forever", "smoke-hang"),
    "spin": InjectionKind("runs in an endless loop", "smoke-hang"),
    "exception": InjectionKind("raises an exception", "smoke-crash"),
    "exit": InjectionKind("exits with code 7 without a word", "smoke-crash"),
    "skip": InjectionKind("leaves out a collective", "smoke-mismatch", ranks=2),
    "extra": InjectionKind("calls a collective twice", "smoke-mismatch", ranks=2),
    "shape": InjectionKind("calls a collective with one element less", "smoke-mismatch", ranks=2),
    "dtype": InjectionKind("calls a collective with float64", "smoke-mismatch", ranks=2),
    "op": InjectionKind("broadcasts instead of reducing", "smoke-mismatch", ranks=2),
    "order": InjectionKind("calls a collective too early", "smoke-mismatch", ranks=2),
    "mask": InjectionKind(
        "draws its mask with a seed of its own (seed + rank)", "smoke-mask-divergence", _START
    ),
    "mask-stray": InjectionKind(
        "draws one random number too many, which changes its masks from then on", "smoke-mask-divergence"
    ),
    "mask-hash": InjectionKind(
        "seeds its libraries and its mask with Python's salted hash()", "smoke-mask-divergence", _START
    ),
    "mask-time": InjectionKind(
        "seeds its libraries and its mask with the time", "smoke-mask-divergence", _START
    ),
    "mask-ahead": InjectionKind(
        "draws the mask and the random numbers of the step after", "smoke-mask-divergence", _START
    ),
    "same-data": InjectionKind(
        "its replica trains on the data of the one beside it",
        "smoke-mask-divergence",
        _START,
        replicas=2,
        reach="replica",
    ),
    "no-sync": InjectionKind(
        "its replica throws the summed gradient away", "smoke-desync", replicas=2, reach="replica"
    ),
    "other-init": InjectionKind(
        "begins with other parameters", "smoke-desync", None, takes_step=False, ranks=2
    ),
    "param-bit": InjectionKind("has one bit of a parameter flipped", "smoke-desync", replicas=2),
    "grad-bit": InjectionKind("has the lowest bit of a gradient flipped, from then on", "smoke-corruption"),
    "stale": InjectionKind("adds nothing to the gradient, from then on", "smoke-corruption"),
    "shuffled": InjectionKind(
        "its replica trains on shuffled labels", "smoke-mask-divergence", _START, reach="replica"
    ),
    "frozen": InjectionKind(
        "all ranks train with a learning rate of 0", "smoke-loss-stall", _START, reach="everybody"
    ),
    "nan": InjectionKind("computes a gradient that is not a number, from then on", "smoke-loss-nan"),
    "lr-explode": InjectionKind(
        "all ranks train with a learning rate of 1, from then on", "smoke-loss-stall", reach="everybody"
    ),
    "wrong-result": InjectionKind(
        "gets wrong sums: in the collectives phase, or from a step on",
        "smoke-collective-wrong",
        None,
        ranks=2,
    ),
    "slow": InjectionKind("computes twice as long, from then on", "smoke-straggler", ranks=4, steps=14),
}


def parse_injection(text: str, ranks: int, steps: int, replicas: int | None = None) -> Injection:
    """The injection that `--inject` asks for; `replicas` is their number in each cell, if known."""
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
    if missing := _missing(kind, ranks, replicas, steps):
        raise UsageError(f"{shown} would change nothing visible", f"it needs {missing}; this run has fewer")
    if match[3] is None:
        return Injection(name, rank, None if kind.first is None else int(kind.first * steps))
    if not kind.takes_step:
        raise UsageError(f"{shown}: {name} happens at no particular step", f"give it as {name}@{rank}")
    if int(match[3]) >= steps:
        raise UsageError(f"{shown}: there is no step {match[3]}", f"steps of this run: 0 to {steps - 1}")
    return Injection(name, rank, int(match[3]))


def _missing(kind: InjectionKind, ranks: int, replicas: int | None, steps: int) -> str:
    """What the fault needs and the run lacks; "" if nothing."""
    if ranks < kind.ranks:
        return f"{kind.ranks} ranks"
    if replicas is not None and replicas < kind.replicas:
        return f"{kind.replicas} data-parallel replicas"
    return f"{kind.steps} steps" if steps < kind.steps else ""
