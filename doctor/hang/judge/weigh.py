"""Compares what libraries report with what the processes show.

The processes decide. A library may confirm a suspicion or withdraw an accusation, but it never replaces the
named ranks, unless these wait for their devices. It has no say about ranks that have ended or are stopped,
nor about lost connections.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from doctor.hang.judge.case import HangCase
from doctor.hang.judge.judgement import Cause, HangConfidence, HangCulprit, HangFinding, WeighedOpinion
from doctor.live.libraries.consult import contradict
from doctor.live.libraries.groups import named
from doctor.live.libraries.opinions import Opinion, OpinionKind, Subject, Trust
from doctor.text.ranks import ranks_text


def weigh(
    case: HangCase, found: HangFinding, opinions: Sequence[Opinion]
) -> tuple[HangFinding, tuple[WeighedOpinion, ...]]:
    """The finding with its confidence after all opinions, and each opinion compared with the processes."""
    by_processes = found
    found = _suspects(case, found, opinions)
    heard = tuple(_compared_with_processes(case, by_processes, each) for each in opinions)
    if not heard or case.moves or found.at_once or any(each.cause is Cause.LINK for each in found.named):
        return found, heard
    return _with_opinions(by_processes, found, heard), heard


def _with_opinions(
    by_processes: HangFinding, found: HangFinding, heard: Sequence[WeighedOpinion]
) -> HangFinding:
    strong = [each for each in heard if each.opinion.trust is Trust.STRONG]
    settled = [each for each in strong if each.opinion.kind is not OpinionKind.MOVES]
    contrary = [each for each in settled if len(each.against) > len(each.opinion.against)]  # by the processes
    if contrary:
        said = f"It is not decided who keeps the job waiting: {contrary[0].against[0]}."
        return replace(found, accuses=False, confidence=HangConfidence.UNDECIDED, sentence=said)
    moves = [each for each in heard if each.opinion.kind is OpinionKind.MOVES]
    if moves and found.confidence is HangConfidence.SUSPECT:
        said = f"{_begins(moves[0].opinion)} sees the job move, and what its processes show proves nothing."
        return replace(found, accuses=False, confidence=HangConfidence.UNDECIDED, sentence=said)
    firm = [each for each in strong if each.confirms and _blames_no_more(each.opinion, by_processes)]
    if moves or not firm or found.confidence is not HangConfidence.SUSPECT:
        return found
    sentence = found.sentence
    if not found.accuses:
        names = " and ".join(each.opinion.source.label for each in firm)
        sentence = f"The connections and {names} name the same rank; no stack shows what it does."
    return replace(found, confidence=HangConfidence.STRONG, sentence=sentence)


def _blames_no_more(said: Opinion, found: HangFinding) -> bool:
    """Whether it blames only ranks that the processes name as well."""
    among = all(any(_same(each, subject) for each in found.named) for subject in said.subjects)
    return said.kind is OpinionKind.BLAMES and among and not said.more


def _compared_with_processes(case: HangCase, found: HangFinding, said: Opinion) -> WeighedOpinion:
    against = _against(case, found, said)
    return WeighedOpinion(
        said, _confirms(case, found, said), (*((against,) if against else ()), *said.against)
    )


def _confirms(case: HangCase, found: HangFinding, said: Opinion) -> bool:
    if said.kind is OpinionKind.BLAMES:
        return bool(found.named) and all(_is_among(each, said) for each in found.named)
    if said.kind is OpinionKind.LAUNCHED:
        return _all_in_one(case, found)
    pair = bool(found.named) and all(each.cause is Cause.MISMATCH for each in found.named)
    return said.kind is OpinionKind.MISMATCH and pair and all(_is_among(each, said) for each in found.named)


def _against(case: HangCase, found: HangFinding, said: Opinion) -> str:
    """How the opinion contradicts the processes; empty if it does not."""
    who = _begins(said)
    if case.moves or said.kind is OpinionKind.SILENT:
        return ""
    if said.kind is OpinionKind.MOVES:
        return f"{who} sees the job move; the processes do not"
    if said.kind is OpinionKind.LAUNCHED:
        has = "has" if len(found.named) == 1 else "have"
        outside = f"{_names(found.named)} {has} not come to it" if found.named else ""
        if not outside and _all_in(case) and not _all_in_one(case, found):
            outside = "the ranks wait at different places"
        return f"{who} sees all ranks in the same operation; by the processes, {outside}" if outside else ""
    says = "blames" if said.kind is OpinionKind.BLAMES else "sees different operations at"
    if found.named:
        known = not said.more and all(_comparable(e, s) for e in found.named for s in said.subjects)
        if known and not any(_is_among(each, said) for each in found.named):
            return f"{who} {says} {named(said.subjects)}, the processes {_names(found.named)}"
    elif said.kind is OpinionKind.BLAMES and case.timed and _all_in_one(case, found):
        return f"{who} {says} {named(said.subjects)}; by the processes, all wait in the same operation"
    return ""


def _suspects(case: HangCase, found: HangFinding, opinions: Sequence[Opinion]) -> HangFinding:
    """If the processes name no rank, or those that wait for their devices at different lines, strong opinions
    that agree may name suspects, but no culprits.

    Ranks that a library blames become suspects only if collectives do not use TCP: then every rank may seem
    to wait by its stack, and only the library counts operations. Ranks that disagree on the next operation
    become suspects only if all ranks wait.
    """
    strong = [each for each in opinions if each.trust is Trust.STRONG and each.kind is not OpinionKind.SILENT]
    apart = all(each.cause is Cause.MISMATCH for each in found.named) and any(e.noticed for e in case.inside)
    if (found.named and not apart) or not case.inside or case.moves:
        return found
    if any(contradict(one, other) for one in strong for other in strong):
        return found
    first = next((each for each in strong if each.kind in (OpinionKind.BLAMES, OpinionKind.MISMATCH)), None)
    if first is None or first.more or (found.named and first.kind is OpinionKind.MISMATCH):
        return found
    if first.kind is OpinionKind.BLAMES and case.timed:
        return found
    if first.kind is OpinionKind.MISMATCH and not _all_in(case):
        return found
    chosen = tuple(_culprits(case, first))
    most = case.job.expected - 1
    if (
        len(chosen) != len(first.subjects)
        or not (1 + (first.kind is OpinionKind.MISMATCH)) <= len(chosen) <= most
    ):
        return found
    said = {
        OpinionKind.BLAMES: f"Only {first.source.label} shows who is behind; "
        "by the processes alone, nobody is.",
        OpinionKind.MISMATCH: "The ranks wait in different collectives: one was skipped, added or reordered.",
    }[first.kind]
    return replace(found, named=chosen, accuses=False, confidence=HangConfidence.UNDECIDED, sentence=said)


def _culprits(case: HangCase, said: Opinion) -> Iterator[HangCulprit]:
    cause, words = (
        (Cause.BEHIND, f"is behind the others, by {said.source.label}")
        if said.kind is OpinionKind.BLAMES
        else (Cause.MISMATCH, f"waits in another operation, by {said.source.label}")
    )
    for here in (each.named(cause, words) for each in case.standings):
        if _is_among(here, said):
            yield here


def _all_in(case: HangCase) -> bool:
    return 0 < len(case.inside) == len(case.upright)


def _all_in_one(case: HangCase, found: HangFinding) -> bool:
    """Whether all ranks are in the same operation, by the processes."""
    return (
        not found.named
        and _all_in(case)
        and len({(each.operation, each.place, each.step) for each in case.inside}) == 1
    )


def _is_among(culprit: HangCulprit, said: Opinion) -> bool:
    return any(_same(culprit, each) for each in said.subjects)


def _comparable(culprit: HangCulprit, subject: Subject) -> bool:
    """Whether both have a known rank, or both have a known PID."""
    by_rank = culprit.rank is not None and subject.rank is not None
    return by_rank or (culprit.pid is not None and subject.pid is not None)


def _same(culprit: HangCulprit, subject: Subject) -> bool:
    if culprit.rank is not None and subject.rank is not None:
        return culprit.rank == subject.rank
    return culprit.pid is not None and (culprit.host, culprit.pid) == (subject.host, subject.pid)


def _names(culprits: Sequence[HangCulprit]) -> str:
    ranks = [each.rank for each in culprits if each.rank is not None]
    if len(ranks) == len(culprits):
        return ranks_text(ranks, most=4)
    return f"process {culprits[0].pid}" if len(culprits) == 1 else f"{len(culprits)} processes"


def _begins(said: Opinion) -> str:
    label = said.source.label
    return f"T{label[1:]}" if label.startswith("the ") else label
