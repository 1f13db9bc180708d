"""The attempts, their expected and their actual results. Judges reports; starts nothing."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from doctor.smoke.inject import KINDS
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.result import SmokeResult
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


def heard(runs: Sequence[SmokeResult]) -> Attempt:
    """What NCCL said of its network, in memory of each rank."""
    told = [set(rank.collectives.network) for run in runs for rank in run.ranks if rank.collectives]
    found = sorted({line for lines in told for line in lines})
    right = bool(told) and all(any("Using network" in line for line in lines) for lines in told)
    return Attempt(
        "NCCL's account of its network", "each rank hears it", "; ".join(found[:6]) or "nothing", right
    )


def shape_of(ran: Ran) -> CellShape:
    """The shape of a smoke run that passed."""
    assert ran.report is not None
    smoke = ran.report["smoke"]
    layout = {name: value for name, value in smoke["layout"].items() if name in CellShape._fields}
    return CellShape(hosts=(len(smoke["ranks"]),), steps=0, seed=0, **layout)


def victim(shape: CellShape) -> int:
    """The last rank: if there are several, it does not lead any other."""
    return shape.world - 1


def shared(ran: Ran) -> Attempt:
    """NCCL may refuse two ranks on one GPU; then the report has to show its message."""
    expected = "it passes, or NCCL refuses and the report shows why"
    refused = DUPLICATE.search(json.dumps(trouble(ran.report))) if ran.report else None
    if refused is None:
        attempt = healthy(ran)
        return _attempt("smoke run, two ranks a GPU", expected, attempt.found, bool(attempt.right), ran)
    return _attempt("smoke run, two ranks a GPU", expected, f"NCCL refuses: {refused[0].strip()}", True, ran)


def fits(word: str, shape: CellShape) -> bool:
    """Whether this layout would show the fault: KIND, or KIND/GROUP for a call of another group."""
    name, _, group = word.partition("/")
    kind = KINDS[name]
    group = group or kind.group
    formed = group in shape.groups or (group == "pair" and shape.stages > 1)
    return (
        (not group or formed)
        and kind.ranks <= shape.world
        and kind.stage <= shape.world // shape.stages
        and kind.replicas <= shape.dp
    )


def injected(word: str, shape: CellShape, ran: Ran) -> Attempt:
    host = ran.report["hosts"][0]["name"] if ran.report else ""
    kind = word.partition("/")[0]
    rank = victim(shape)
    place = place_of(word, shape)
    replica = shape.replica(shape.dp_of(rank))
    truths = [truth_of(INSIDE[kind], rank, replica, lambda _: host)]
    if shape.world == 1:  # it also means all ranks, and the report may say that
        truths.append(Truth(INSIDE[kind].checks, frozenset(), frozenset()))
    outcome = max((judged(kind, 0, place, truth, ran) for truth in truths), key=lambda each: each.right)
    found = "; ".join(outcome.said) or "nothing was found"
    return _attempt(f"--inject {place}", _expected(kind, shape), found, outcome.right, ran)


def place_of(word: str, shape: CellShape) -> str:
    """What `--inject` is given."""
    kind, slash, group = word.partition("/")
    return f"{kind}@{victim(shape)}{slash}{group}"


def left_out(word: str, why: str) -> Attempt:
    return Attempt(f"--inject {word}", KINDS[word.partition("/")[0]].check, f"not tried: {why}")


def too_few(word: str) -> str:
    name, _, group = word.partition("/")
    takes = KINDS[name]
    if group or takes.group:
        return f"no rank is in a group {group or takes.group} here"
    return f"it takes {takes.replicas} replicas" if takes.replicas > 1 else f"it takes {takes.ranks} ranks"


def _expected(kind: str, shape: CellShape) -> str:
    rank = victim(shape)
    replica = shape.replica(shape.dp_of(rank))
    one = f"rank {rank}" if shape.world > 1 else "the only rank"
    whole = f"ranks {', '.join(map(str, replica))}" if len(replica) > 1 else one
    where = {"rank": one, "replica": whole, "everybody": "all ranks together"}
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
