"""The parts of a judgement in words, for every output format."""

from collections.abc import Iterable, Iterator

from doctor.hang.judge.judgement import Cause, HangCulprit, HangState, Judgement, Wait, WaitGroup
from doctor.live.libraries.opinions import OpinionKind, Trust
from doctor.live.places import step_of
from doctor.live.words import MOST
from doctor.text.durations import duration
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold
from doctor.text.ranks import ranges, ranks_text

WAITS = 2
"""The most places, and ranks outside, that a job that moves is described with."""


def still_words(judgement: Judgement) -> str:
    if judgement.stands.still is None or judgement.verdict is HangState.MOVES:
        return ""
    return ("at least " if judgement.stands.at_least else "") + duration(judgement.stands.still)


def who(culprits: Iterable[HangCulprit]) -> str:
    """ "rank 3 on node2 (pid 4711)", "ranks 0-3 on node[1-2]" """
    all_of = tuple(culprits)
    hosts = fold(dict.fromkeys(each.host for each in all_of))
    ranks = [each.rank for each in all_of if each.rank is not None]
    if all(each.rank is None and each.pid is None for each in all_of):
        return hosts
    if len(all_of) == 1:
        only = all_of[0]
        if only.rank is None:
            return f"process {only.pid} on {hosts}"
        return f"rank {only.rank} on {hosts}" + (f" (pid {only.pid})" if only.pid is not None else "")
    named = ranks_text(ranks, most=MOST) if len(ranks) == len(all_of) else f"{len(all_of)} ranks"
    return f"{named} on {hosts}"


def alike(culprits: Iterable[HangCulprit]) -> list[tuple[HangCulprit, ...]]:
    """Group the culprits that have the same finding, in their order."""
    found = grouped(
        ((each.cause, each.sentence, each.place if each.cause is not Cause.LINK else ""), each)
        for each in culprits
    )
    return [tuple(of) for of in found.values()]


def group_words(group: WaitGroup) -> str:
    """ "7 ranks (0-4, 6-7) in all_reduce, train.py:88" """
    named = ranges(group.ranks)
    numbers = ", ".join(named[:MOST]) + (f" and {len(named) - MOST} more" if len(named) > MOST else "")
    if group.number == 1 and group.ranks:
        ranks = f"rank {numbers}"
    else:
        ranks = f"{group.number} rank{'' if group.number == 1 else 's'}" + (f" ({numbers})" if named else "")
    return f"{ranks} in {_at(group.operation, group.function, group.place)}" + (
        ": there the host waits for its device; the collective may be an earlier line"
        if group.noticed
        else ""
    )


def _at(operation: str, function: str, place: str) -> str:
    own = function.rpartition(".")[2]
    inside = f" ({own})" if own and own != "<module>" and own != operation else ""
    return ", ".join(filter(None, (operation or "a collective", f"{place}{inside}" if place else "")))


def chain_words(chain: Iterable[Wait]) -> str:
    """ "rank 0 waits for rank 2 in all_reduce, train.py:183 (sync_grads); rank 2 waits for …" """
    return "; ".join(
        f"rank {each.rank} waits for rank {each.on} in {_at(each.operation, each.function, each.place)}"
        for each in chain
    )


def rights_words(judgement: Judgement) -> str:
    rights = judgement.rights
    if rights is None:
        return ""
    if not rights.level:
        return f"seen: nothing; to see more: {'; '.join(rights.raises)}"
    seen = "with Python stacks" if rights.stacks else "without Python stacks"
    said = f"seen as {rights.level}, {seen}"
    if not rights.connections:
        said += ", without connections"
    return said + (f"; to see more: {'; '.join(rights.raises)}" if rights.raises else "")


def library_words(judgement: Judgement, *, evidence: bool) -> Iterator[str]:
    """ "NCCL RAS: rank 2 of node2 has launched fewer collectives (confirms it)" """
    for each in judgement.heard:
        said = each.opinion
        if said.kind is not OpinionKind.SILENT:
            vote = " (a hint only)" if said.trust is Trust.VOTE else ""
            yield said.words.removesuffix(".") + (" (confirms it)" if each.confirms else "") + vote
            if evidence:
                yield from said.evidence


def way_words(judgement: Judgement) -> Iterator[str]:
    """What was seen on the way of a job that moves, in sentences without a full stop."""
    steps = {(step_of(each.member.a), each.step) for each in judgement.stands.ranks}
    first, last = (min(some, default=None) for some in (_known(steps, 0), _known(steps, 1)))
    if first is not None and last is not None and first < last:
        yield f"between the looks it went from step {first} to step {last}"
    outside = [each for each in judgement.stands.ranks if each.inside is False and each.doing]
    if judgement.stands.groups and outside:
        waits = "; ".join(map(group_words, judgement.stands.groups[:WAITS]))
        who = [f"process {e.member.pid}" if e.rank is None else f"rank {e.rank}" for e in outside]
        does = [f"{one} {e.doing.words}" for one, e in zip(who, outside[:WAITS], strict=False) if e.doing]
        yield f"last look: {waits}; outside: {'; '.join(does)}"


def _known(steps: Iterable[tuple[int | None, int | None]], at: int) -> list[int]:
    return [step for pair in steps if (step := pair[at]) is not None]
