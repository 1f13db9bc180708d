"""What the libraries' random streams gave at each step: which rank had a wrong seed or a stray draw."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from doctor.model import Evidence
from doctor.smoke.judge.cells import Cell, Vote, cells, vote
from doctor.smoke.judge.charge import SmokeCharge, since_text, worded
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.streamplan import reference_fingerprint, reference_streams
from doctor.smoke.result import RankOutcome, SmokeResult
from doctor.text.grouped import grouped

WHO_DRAWS = (
    "python3 -c 'import sys; print([m for m in sys.modules if m.endswith(\"customize\")])'"
    "    # on its host: what is loaded into every Python there may draw",
    "python3 -m site    # *.pth files in these folders are run by every Python",
)


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
    """`other`: stream -> ranks that are not compared, because their library gives other numbers anyway."""
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
    owners: dict[str, set[int]] = defaultdict(set)
    for place, value in values.items():
        owners[value].add(cell.shape.dp_of(place))
    same = {value for value, replicas in owners.items() if len(replicas) > 1}
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
    return SmokeCharge(
        *worded("stream", words=words, since=since, step=turn.step),
        ranks=cell.numbers(guilty),
        step=turn.step,
        undecided=not turn.decided,
        evidence=(Evidence(f"hashes of the draws of step {turn.step}", "\n".join(hashes[:64])),),
        commands=WHO_DRAWS,
    )
