"""The random streams of the libraries: whether a seed gives the same numbers on all hosts, at every step.

First comes what a fixed seed gives, which shows a different library. Then comes what was drawn at each step,
which shows a wrong seed or a stray draw.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from shlex import quote
from typing import NamedTuple

from doctor.model import Confidence, Evidence, Severity
from doctor.smoke.events import RankStart
from doctor.smoke.judge.cells import Cell, Vote, cells, vote
from doctor.smoke.judge.charge import SmokeCharge, ranks_text, since_text, worded
from doctor.smoke.judge.exits import SHELL
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.streamplan import reference_fingerprint, reference_streams
from doctor.smoke.result import RankOutcome, SmokeResult
from doctor.text.grouped import grouped
from doctor.text.hostprogram import sections

LIBRARY = {"numpy-pcg64": "numpy", "mindspore-dropout": "mindspore"}
"""Stream -> its library, for streams that are not named after it; that of a device is the framework's."""
_PROGRAMS = sections(__file__, "streams.txt")["programs"]


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


class StreamTurn(NamedTuple):
    """The step at which a rank's stream goes wrong, and how. Equal for ranks with the same fault."""

    step: int
    right_until: int | None
    story: str
    decided: bool


@lru_cache(maxsize=4096)
def _reference_draws(shape: CellShape, step: int, dp: int) -> dict[str, str]:
    """The draws of a replica that plain Python can compute, by stream."""
    return reference_streams(shape, step, shape.replica(dp)[0])


def judge_draws(result: SmokeResult, other: Mapping[str, set[int]]) -> Iterator[SmokeCharge]:
    """Which rank had a wrong seed or a stray draw, by what its streams gave at each step.

    `other`: stream -> ranks that are not compared, because their library gives other numbers anyway.
    """
    fingerprint = reference_fingerprint()
    for cell in cells(result):
        streams: dict[tuple[StreamTurn, frozenset[int]], list[str]] = defaultdict(list)
        for name in sorted(
            {n for place in cell.places for said in cell.batches(place).values() for n in said.streams}
        ):
            places = [place for place in cell.places if cell.ranks[place] not in other.get(name, ())]
            known = [place for place in places if _is_known(cell.seen[place], name, fingerprint.get(name))]
            turns = _against_reference(cell, known, name)
            if not known:
                turns |= _against_peers(cell, places, name)
            for turn, members in grouped((turn, place) for place, turn in turns.items()).items():
                streams[turn, frozenset(members)].append(name)
        for (turn, guilty), names in streams.items():
            yield _charge(cell, turn, guilty, names)


def _is_known(seen: RankOutcome, name: str, fingerprint: str | None) -> bool:
    """Whether the rank's library is one whose numbers are known here."""
    return bool(fingerprint and seen.started and seen.started.streams.get(name) == fingerprint)


def _draws_of(cell: Cell, place: int, name: str) -> dict[int, str]:
    said = cell.batches(place)
    return {step: said[step].streams[name] for step in sorted(said) if name in said[step].streams}


def _against_reference(cell: Cell, places: list[int], name: str) -> dict[int, StreamTurn]:
    turns: dict[int, StreamTurn] = {}
    for place in places:
        right: int | None = None
        own = cell.shape.dp_of(place)
        for step, got in _draws_of(cell, place, name).items():
            if got == _reference_draws(cell.shape, step, own).get(name):
                right = step
                continue
            replicas = range(cell.shape.dp)
            whose = next(
                (dp for dp in replicas if got == _reference_draws(cell.shape, step, dp).get(name)), None
            )
            if whose is not None:
                story = f"drew the random numbers of replica {whose} instead of replica {own}"
            elif right is None:
                story = "drew other random numbers than its seed gives"
            else:
                story = "drew other random numbers than its seed gives: something else drew from the stream"
            turns[place] = StreamTurn(step, right, story, True)
            break
    return turns


def _against_peers(cell: Cell, places: list[int], name: str) -> dict[int, StreamTurn]:
    """Without a reference: the first ranks that differ inside a replica, or agree between replicas."""
    drawn = {place: _draws_of(cell, place, name) for place in places}
    right: int | None = None
    for step in sorted({step for said in drawn.values() for step in said}):
        values = {place: said[step] for place, said in drawn.items() if step in said}
        turns = _inside(cell, values, step, right) or _between(cell, values, step, right)
        if turns:
            return turns
        right = step
    return {}


def _inside(cell: Cell, values: Mapping[int, str], step: int, right: int | None) -> dict[int, StreamTurn]:
    turns: dict[int, StreamTurn] = {}
    for dp in range(cell.shape.dp):
        inside = {place: values[place] for place in cell.replica(dp) if place in values}
        found = vote(inside)
        if found is None:
            continue
        foreign = {value for place, value in values.items() if place not in inside}
        strays = tuple(place for place, value in inside.items() if value in foreign)
        if not found.decided and 0 < len(strays) < len(inside) and len(set(inside.values())) == 2:
            found = Vote(strays, True)
        story = f"drew other random numbers than its {cell.peers}"
        turns |= {place: StreamTurn(step, right, story, found.decided) for place in found.odd}
    return turns


def _between(cell: Cell, values: Mapping[int, str], step: int, right: int | None) -> dict[int, StreamTurn]:
    owners = grouped((value, cell.shape.dp_of(place)) for place, value in values.items())
    same = {value for value, replicas in owners.items() if len({*replicas}) > 1}
    story = "drew the same random numbers as another replica"
    return {place: StreamTurn(step, right, story, False) for place, value in values.items() if value in same}


def _charge(cell: Cell, turn: StreamTurn, guilty: frozenset[int], names: list[str]) -> SmokeCharge:
    since = since_text(turn.step, turn.right_until)
    words = f"its stream{'s' if len(names) > 1 else ''} of {', '.join(names)} {turn.story}"
    hashes = [
        f"{cell.name(place)}: {name} {_draws_of(cell, place, name)[turn.step]}"
        for place in cell.places
        for name in names
        if turn.step in _draws_of(cell, place, name)
    ]
    said = worded("stream", words=words, since=since, step=turn.step)
    source = f"hashes of the draws of step {turn.step}"
    charge = cell.charge(said, guilty, (), source, hashes[:64], step=turn.step, decided=turn.decided)
    return replace(charge, commands=SHELL["draws"])
