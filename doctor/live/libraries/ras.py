"""NCCL RAS: how many collectives of each type every rank has launched. It is asked twice.

Only the counts are used. RAS prints the smaller group as outliers, but that group may be the one ahead
(NVIDIA/nccl issue 1911), and RAS says OK if all ranks have launched and nothing finishes (issue 1730).

    {"communicators": [{"hash": "0xae94", "size": 2,
      "ranks": [{"rank": 0, "host": "172.16.64.245", "pid": 1524344, "collective_counts": {"AllReduce": 7}}],
      "missing_ranks": [{"rank": 1, "host": "172.16.64.245", "pid": 1524345,
        "status": {"unresponsive": true, "considered_dead": false}}]}]}
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec

from doctor.live.evidence import Count, Word
from doctor.live.libraries.groups import GroupStanding, Key, culprits, named, unique
from doctor.live.libraries.opinions import Opinion, OpinionKind, Source, Subject, Trust, decoded, silent
from doctor.live.libraries.rank_finder import HostText, RankFinder, pairs

NUMBERED_ALIKE = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", "AlltoAll", "AllToAll")
"""Collectives that all ranks of a communicator launch. Sends and receives involve only two ranks."""

_UNJOINED = re.compile(r'("nvml_dev": -?\d{1,9})(?=\s{1,200}")')
"""NCCL 2.28 leaves out the comma behind it, of a missing rank."""
_Place = Annotated[int, msgspec.Meta(ge=-1, le=2**31)]


class _RankStatus(msgspec.Struct, frozen=True):
    unresponsive: bool = False
    considered_dead: bool = False


class _Rank(msgspec.Struct, frozen=True):
    rank: _Place
    host: Word
    pid: _Place
    collective_counts: dict[Word, Count] = {}


class _LostRank(msgspec.Struct, frozen=True):
    rank: _Place
    host: Word
    pid: _Place
    status: _RankStatus = _RankStatus()


class _Communicator(msgspec.Struct, frozen=True):
    hash: Word
    size: Count
    ranks: tuple[_Rank, ...]
    missing_ranks: tuple[_LostRank, ...] = ()
    secondary_hash: Word = ""

    @property
    def name(self) -> str:
        return f"{self.hash} {self.secondary_hash}".strip()


class RasAnswer(msgspec.Struct, frozen=True):
    communicators: tuple[_Communicator, ...]
    nccl_version: Word = ""


def opinion(who: RankFinder) -> Opinion | None:
    """The opinion of the host whose answers show the most: the RAS of each host answers for the whole job."""
    said = list(who.said(Source.RAS))
    problem = next((f"{each.host}: {each.about.problem}" for each in said if each.about.problem), "")
    found: list[Opinion] = []
    for first, second in pairs(each for each in said if not each.about.problem):
        a, b = (decoded(_UNJOINED.sub(r"\1,", each.about.text), RasAnswer) for each in (first, second))
        if isinstance(a, str) or isinstance(b, str):
            problem = f"{first.host}: {a if isinstance(a, str) else b}"
            continue
        compared = _opinion_of_answers(who, first, a, b)
        if compared is not None:
            found.append(compared)
    if found:
        return min(found, key=lambda each: _ORDER.index(each.kind))
    if not said:
        return None
    why = problem or "it answered only once, or not about this job"
    return silent(Source.RAS, f"NCCL RAS was asked and is not used: {why}.")


_ORDER = (
    OpinionKind.MOVES,
    OpinionKind.BLAMES,
    OpinionKind.MISMATCH,
    OpinionKind.LAUNCHED,
    OpinionKind.SILENT,
)
"""The kind that comes first wins, if hosts differ: an answer that saw something move has seen the most."""


@dataclass(frozen=True, slots=True)
class _AnswerPair:
    """A communicator in both answers."""

    first: _Communicator
    then: _Communicator

    @property
    def moved(self) -> bool:
        before = {each.rank: each.collective_counts for each in self.first.ranks}
        return any(before.get(r.rank, r.collective_counts) != r.collective_counts for r in self.then.ranks)

    def missing(self) -> Iterator[_LostRank]:
        """Ranks that are considered dead, or that did not respond either time."""
        before = {
            m.rank for m in self.first.missing_ranks if m.status.unresponsive or m.status.considered_dead
        }
        for each in self.then.missing_ranks:
            if each.status.considered_dead or (each.status.unresponsive and each.rank in before):
                yield each


def _opinion_of_answers(who: RankFinder, said: HostText, a: RasAnswer, b: RasAnswer) -> Opinion | None:
    before = {each.name: each for each in a.communicators}
    both = [
        _AnswerPair(before[each.name], each)
        for each in b.communicators
        if each.name in before and each.size > 1
    ]
    both = [two for two in both if _concerns(who, said, two.then)]
    if not both:
        return None
    missing = [each for two in both for each in two.missing()]
    lost = unique(_subject(who, said, each) for each in missing)
    if not lost and any(two.moved for two in both):
        return _opinion(b, OpinionKind.MOVES, (), (), "collectives are still launched between two answers")
    kind, behind, words = culprits([_standing(who, said, two, lost) for two in both if not two.moved])
    if lost:
        state = "dead" if all(each.status.considered_dead for each in missing) else "not answering"
        verb = "is" if len(lost) == 1 else "are"
        return _opinion(b, OpinionKind.BLAMES, lost, words, f"{named(lost)} {verb} {state}")
    if kind is OpinionKind.LAUNCHED:
        if not any(_counts(rank) for two in both for rank in two.then.ranks):
            return None
        text = "every rank has launched the same collectives; the device or the network does not finish one"
    elif kind is OpinionKind.MISMATCH:
        text = f"{named(behind)} have launched different collectives; which of them is wrong is unknown"
    elif kind is OpinionKind.SILENT:
        return None
    else:
        text = f"{named(behind)} {'has' if len(behind) == 1 else 'have'} launched the fewest collectives"
        if {each.key for each in behind} & _messengers(who, said, both):
            text += ", and may itself wait for a message of another rank, which RAS does not count"
            return _opinion(b, kind, behind, words, text, Trust.VOTE)
    return _opinion(b, kind, behind, words, text)


def _messengers(who: RankFinder, said: HostText, both: list[_AnswerPair]) -> set[Key]:
    """Members of communicators that have launched no collective: they are only used to send and receive."""
    idle = [two.then for two in both if not any(_counts(rank) for rank in two.then.ranks)]
    return {_subject(who, said, rank).key for each in idle for rank in each.ranks}


def _concerns(who: RankFinder, said: HostText, each: _Communicator) -> bool:
    """Whether the communicator belongs to this job. The RAS on a host may answer for another job."""
    members: list[_Rank | _LostRank] = [*each.ranks, *each.missing_ranks]
    return any(who.is_ours(who.host_of(m.host, said.host), m.pid) for m in members)


def _standing(who: RankFinder, said: HostText, two: _AnswerPair, lost: tuple[Subject, ...]) -> GroupStanding:
    ranks = two.then.ranks
    table = {r.rank: _counts(r) for r in ranks}
    differing = [
        kind for kind in NUMBERED_ALIKE if len({counts.get(kind, 0) for counts in table.values()}) > 1
    ]
    low = {kind: min(counts.get(kind, 0) for counts in table.values()) for kind in differing}
    behind = {r for r, counts in table.items() if any(counts.get(kind, 0) == low[kind] for kind in differing)}
    ahead = {r for r, counts in table.items() if any(counts.get(kind, 0) > low[kind] for kind in differing)}
    subjects = {r.rank: _subject(who, said, r) for r in ranks}
    gone = {each.key for each in lost}
    absent = any(_subject(who, said, m).key in gone for m in two.then.missing_ranks)
    waiting = ahead if differing else (set(table) if absent else set())
    words = "; ".join(_words(kind, table, low[kind], subjects) for kind in differing)
    return GroupStanding(
        behind=tuple(subjects[r] for r in sorted(behind)),
        waiting=frozenset(subjects[r].key for r in waiting),
        words=f"communicator {two.then.hash}: {words}",
        crossed=bool(behind & ahead),
        whole=not two.then.missing_ranks,
    )


def _words(kind: str, table: dict[int, dict[str, int]], low: int, subjects: dict[int, Subject]) -> str:
    fewest = [subjects[rank] for rank, counts in sorted(table.items()) if counts.get(kind, 0) == low]
    most = max(counts.get(kind, 0) for counts in table.values())
    return f"{kind} {low} by {named(fewest)}, up to {most} by the others"


def _counts(rank: _Rank) -> dict[str, int]:
    return {kind: rank.collective_counts[kind] for kind in NUMBERED_ALIKE if rank.collective_counts.get(kind)}


def _subject(who: RankFinder, said: HostText, each: _Rank | _LostRank) -> Subject:
    return who.process(who.host_of(each.host, said.host), each.pid)


def _opinion(
    answer: RasAnswer,
    kind: OpinionKind,
    subjects: tuple[Subject, ...],
    evidence: tuple[str, ...],
    text: str,
    trust: Trust = Trust.STRONG,
) -> Opinion:
    version = f" {answer.nccl_version}" if answer.nccl_version else ""
    words = f"NCCL RAS{version}: {text}."
    return Opinion(
        source=Source.RAS, trust=trust, kind=kind, words=words, subjects=subjects, evidence=evidence
    )
