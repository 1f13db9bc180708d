"""The random streams of the libraries: whether a seed gives the same numbers on all hosts, at every step.

First comes what a fixed seed gives, which shows a different library. Then comes what was drawn at each step,
which shows a wrong seed or a stray draw.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from shlex import quote

from doctor.model import Confidence, Evidence, Severity
from doctor.smoke.events import RankStart
from doctor.smoke.judge.cells import Vote, vote
from doctor.smoke.judge.charge import SmokeCharge, ranks_text, worded
from doctor.smoke.judge.draws import judge_draws
from doctor.smoke.onhost.streamplan import reference_fingerprint
from doctor.smoke.result import SmokeResult

LIBRARY = {"numpy-pcg64": "numpy", "mindspore-dropout": "mindspore"}
"""Stream -> its library, for streams that are not named after it; that of a device is the framework's."""
_PROGRAMS = {
    "python": "import random as r, sys; print(sys.version, r.__file__); r.seed(1); print(r.random())",
    "numpy": "import numpy as n; print(n.__version__, n.__file__); n.random.seed(1); print(n.random.rand())",
    "torch": "import torch as t; print(t.__version__, t.__file__); t.manual_seed(1); print(t.rand(2))",
    "mindspore": "import mindspore as m; print(m.__version__, m.__file__, m.set_seed(1), m.ops.rand(2))",
}


def judge_streams(result: SmokeResult) -> Iterator[SmokeCharge]:
    started = {seen.rank: seen.started for seen in result.ranks if seen.started}
    known = reference_fingerprint()
    other: dict[str, set[int]] = {}
    charges: dict[object, list[tuple[str, SmokeCharge]]] = defaultdict(list)
    for name in sorted({name for said in started.values() for name in said.streams}):
        prints = {rank: said.streams[name] for rank, said in started.items() if name in said.streams}
        # Each product of devices draws different numbers.
        common = _product(started, prints) if name == "device" else None
        among = {r: p for r, p in prints.items() if common is None or started[r].product == common}
        if found := _outliers(among, known.get(name)):
            key = (found.odd, found.decided)
            charges[key].append((name, _library(result, started, name, found, known.get(name), prints)))
            other.setdefault(name, set()).update(found.odd)
        if len(among) < len(prints):
            mixed = tuple(sorted(set(prints) - set(among)))
            other.setdefault(name, set()).update(mixed)
            if {prints[rank] for rank in mixed} != set(among.values()):
                products = ", ".join(dict.fromkeys(started[rank].product for rank in mixed))
                words = worded("device product", products=products, common=str(common))
                yield SmokeCharge(*words, ranks=mixed, severity=Severity.WARN)
    for group in charges.values():
        yield _merged([name for name, _ in group], [charge for _, charge in group])
    yield from judge_draws(result, other)


def _product(started: Mapping[int, RankStart], ranks: Mapping[int, str]) -> str:
    """The most common product of these ranks' devices; in a tie, the first."""
    products = [started[rank].product for rank in sorted(ranks)]
    return max(dict.fromkeys(products), key=products.count)


def _outliers(prints: Mapping[int, str], wanted: str | None) -> Vote | None:
    """Ranks without the known fingerprint, if any has it; else those outside the majority."""
    if wanted in prints.values():
        odd = tuple(sorted(rank for rank, got in prints.items() if got != wanted))
        return Vote(odd, True) if odd else None
    return vote(prints)


def _library(
    result: SmokeResult,
    started: Mapping[int, RankStart],
    name: str,
    found: Vote,
    wanted: str | None,
    prints: Mapping[int, str],
) -> SmokeCharge:
    library = result.plan.framework if name == "device" else LIBRARY.get(name, name)
    right = sorted(set(prints) - set(found.odd))
    theirs = _versions(started, library, right)
    own = _versions(started, library, found.odd)
    why = f"{library} {own}, the others have {theirs}" if right and own != theirs else f"{library} {own}"
    lines = "\n".join(f"{ranks_text([rank])}: {prints[rank]}" for rank in sorted(prints)[:32])
    program = _PROGRAMS.get(library) or _PROGRAMS[result.plan.framework]
    hosts = dict.fromkeys(result.plan.seat(rank).host for rank in (*found.odd[:1], *right[:1]))
    known = f": fingerprint {wanted}" if wanted else ""
    return SmokeCharge(
        *worded("library", name=name, why=why, wanted=known, library=library, own=own),
        ranks=found.odd,
        confidence=Confidence.CERTAIN if found.decided else Confidence.SUSPECT,
        undecided=not found.decided,
        evidence=(Evidence(f"fingerprints of {name}", lines),),
        commands=tuple(f"ssh {quote(host)} \"{result.python_on(host)} -c '{program}'\"" for host in hosts),
    )


def _merged(names: list[str], charges: list[SmokeCharge]) -> SmokeCharge:
    """One charge for ranks on which several streams differ."""
    first = charges[0]
    if len(charges) == 1:
        return first
    return replace(
        first,
        summary=f"the same seed gives different random numbers there from {', '.join(names)}",
        expected="; ".join(charge.expected for charge in charges),
        actual="; ".join(charge.actual for charge in charges),
        evidence=tuple(evidence for charge in charges for evidence in charge.evidence),
        commands=tuple(dict.fromkeys(command for charge in charges for command in charge.commands)),
    )


def _versions(started: Mapping[int, RankStart], library: str, ranks: tuple[int, ...] | list[int]) -> str:
    found = dict.fromkeys(started[rank].versions.get(library, "of unknown version") for rank in ranks)
    return " or ".join(list(found)[:4])
