"""The attempts, their expected and their actual results. Judges reports; starts nothing."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from doctor.smoke.inject import KINDS
from tests.trials.kinds import INSIDE, truth_of
from tests.trials.outcome import Ran, Truth, judged, sentence, trouble

DUPLICATE = re.compile(r"Duplicate GPU detected[^\"\\\n]*")
"""NCCL's message if two ranks share a GPU."""
WITHOUT_FAULT = "smoke run without a fault"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One line of the page; `right` is None if it was not attempted."""

    tried: str
    expected: str
    found: str
    right: bool | None = None
    code: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """The ranks of the healthy run; `tp` of them share a model."""

    ranks: int
    tp: int

    @property
    def victim(self) -> int:
        """The last rank: if there are several, it does not lead any other."""
        return self.ranks - 1


def examined(ran: Ran, *, on_gpus: bool = True) -> Attempt:
    """Findings may be true, so a person reads them. It is wrong if a check broke, or if GPUs were not
    recognised.
    """
    tried, what = "examination (doctor preflight)", "the GPUs are recognised, " if on_gpus else ""
    expected = f"{what}no check breaks; the findings are for a person to judge"
    report = ran.report
    if report is None:
        return _attempt(tried, expected, _no_report(ran), False, ran)
    (host,) = report["hosts"]
    found = [f"{report['verdict']}, product {host['product']}", *map(sentence, trouble(report))]
    right = report["summary"]["crash"] == 0 and (host["product"] != "cpu" or not on_gpus)
    return _attempt(tried, expected, "; ".join(found), right, ran)


def healthy(ran: Ran, tried: str = WITHOUT_FAULT) -> Attempt:
    outcome = judged("healthy", 0, "", None, ran)
    right = outcome.right and _passed(ran)
    found = "it passes" if right else "; ".join(outcome.said) or _not_made(ran)
    return _attempt(tried, "it passes", found, right, ran)


def shape_of(ran: Ran) -> Shape:
    """The shape of a smoke run that passed."""
    assert ran.report is not None
    smoke = ran.report["smoke"]
    return Shape(len(smoke["ranks"]), smoke["layout"]["tp"])


def shared(ran: Ran) -> Attempt:
    """NCCL may refuse two ranks on one GPU; then the report has to show its message."""
    expected = "it passes, or NCCL refuses and the report shows why"
    refused = DUPLICATE.search(json.dumps(trouble(ran.report))) if ran.report else None
    if refused is None:
        attempt = healthy(ran)
        return _attempt("smoke run, two ranks a GPU", expected, attempt.found, bool(attempt.right), ran)
    return _attempt("smoke run, two ranks a GPU", expected, f"NCCL refuses: {refused[0].strip()}", True, ran)


def fits(kind: str, shape: Shape) -> bool:
    """Whether this many ranks would show the fault."""
    return (
        not KINDS[kind].group
        and KINDS[kind].ranks <= shape.ranks
        and KINDS[kind].replicas <= shape.ranks // shape.tp
    )


def injected(kind: str, shape: Shape, ran: Ran) -> Attempt:
    host = ran.report["hosts"][0]["name"] if ran.report else ""
    place = f"{kind}@{shape.victim}"
    first = shape.victim - shape.victim % shape.tp
    truths = [truth_of(INSIDE[kind], shape.victim, range(first, first + shape.tp), lambda _: host)]
    if shape.ranks == 1:  # it also means all ranks, and the report may say that
        truths.append(Truth(INSIDE[kind].checks, frozenset(), frozenset()))
    outcome = max((judged(kind, 0, place, truth, ran) for truth in truths), key=lambda each: each.right)
    found = "; ".join(outcome.said) or "nothing was found"
    return _attempt(f"--inject {place}", _expected(kind, shape), found, outcome.right, ran)


def left_out(kind: str, why: str) -> Attempt:
    return Attempt(f"--inject {kind}", KINDS[kind].check, f"not tried: {why}")


def too_few(kind: str) -> str:
    takes = KINDS[kind]
    return f"it takes {takes.replicas} replicas" if takes.replicas > 1 else f"it takes {takes.ranks} ranks"


def _expected(kind: str, shape: Shape) -> str:
    rank = shape.victim
    first = rank - rank % shape.tp
    one = f"rank {rank}" if shape.ranks > 1 else "the only rank"
    replica = f"ranks {first}-{rank}" if shape.tp > 1 else one
    where = {"rank": one, "replica": replica, "everybody": "all ranks together"}
    return f"{KINDS[kind].check}, {where[KINDS[kind].reach]}, nobody else"


def _passed(ran: Ran) -> bool:
    return ran.report is not None and (ran.report["smoke"] or {}).get("status") == "pass"


def _not_made(ran: Ran) -> str:
    smoke: dict[str, Any] = (ran.report or {}).get("smoke") or {}
    return f"it did not pass: {smoke.get('reason') or 'no smoke run was made'}"


def _no_report(ran: Ran) -> str:
    return f"no report: {ran.errors.strip()[-500:]}"


def _attempt(tried: str, expected: str, found: str, right: bool, ran: Ran) -> Attempt:
    return Attempt(tried, expected, _public(found, ran), right, ran.code, ran.seconds)


def _public(text: str, ran: Ran) -> str:
    """The text without the name and the addresses of the machine."""
    for name in _names(ran):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "this machine", text)
    return text


def _names(ran: Ran) -> Iterator[str]:
    for host in (ran.report or {}).get("hosts", ()):
        yield from filter(None, (host["name"], host["address"]))
