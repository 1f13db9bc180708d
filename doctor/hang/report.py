"""A judgement as a page. The rank that the others wait for comes first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge.judgement import Cause, HangCulprit, HangState, Judgement, RankStanding
from doctor.hang.words import (
    alike,
    chain_words,
    group_words,
    library_words,
    rights_words,
    still_words,
    way_words,
    who,
)
from doctor.live.jobs.job import RunningJob
from doctor.live.libraries.opinions import OpinionKind
from doctor.live.words import frame_words, job_words, missing_words
from doctor.report.page.card import Card, CardKind, Medium, Page, Row, RowForm, Step, Table
from doctor.text.durations import duration
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

WORDS = {
    HangState.HANG: ("Hangs", CardKind.FAIL),
    HangState.MOVES: ("Moves", CardKind.GOOD),
    HangState.WAITS: ("Waits", CardKind.WARN),
    HangState.UNKNOWN: ("Undecided", CardKind.OPEN),
    HangState.NO_JOB: ("No job", CardKind.OPEN),
    HangState.SEVERAL: ("Several jobs", CardKind.OPEN),
}
_WITHOUT_ROWS = (HangState.MOVES, HangState.SEVERAL, HangState.NO_JOB)
GROUPS = 6
ALONE = 16
"""The most ranks that each have a row in the table without -v, and the most rows if there are more."""
FOLDED, MANY = 4, 6
"""The most ranges of ranks, and fewer than this many hosts, in a row of several ranks."""
JOBS = 20
UNREAD = 4
ONE_JOB = "For one job only: the same command with its --pid PID or --master-port PORT"


def page_of(judgement: Judgement, *, apart: bool = False) -> Page:
    """The page of a judgement. `apart`: one card for each rank, even if several have the same finding."""
    culprits = [each for one in judgement.each or (judgement,) for each in one.culprits]
    moves = judgement.verdict is HangState.MOVES
    return Page(
        "hang",
        judgement.started,
        "Hangs" if culprits else WORDS[judgement.verdict][0],
        CardKind.FAIL if culprits else _kind(judgement),
        _title(culprits) if culprits else judgement.sentence.removesuffix("."),
        judgement.sentence,
        tuple(_about(judgement)),
        tuple(_cards(judgement, judgement.named, apart)),
        "Who keeps it waiting",
        tuple(_job_pages(judgement)),
        tuple(_ranks(judgement)),
        tuple(f"{note[:1].upper()}{note[1:]}." for note in _notes(judgement)),
        after=(
            *((Step(ONE_JOB),) if judgement.verdict is HangState.SEVERAL else ()),
            *((Step(f"Too slowly? {judgement.reach.other('slow')}"),) if moves else ()),
        ),
    )


def _title(culprits: Sequence[HangCulprit]) -> str:
    """The culprits, with the fault if all have the same."""
    groups = alike(culprits)
    return f"{who(culprits)}: {_says(groups[0])}" if len(groups) == 1 else who(culprits)


def _says(of: Sequence[HangCulprit]) -> str:
    """What some culprits with the same fault do."""
    return ("each " if len(of) > 1 and of[0].cause is not Cause.LINK else "") + of[0].sentence


def _kind(judgement: Judgement) -> CardKind:
    if judgement.verdict is HangState.HANG and not judgement.culprits:
        return CardKind.OPEN
    return WORDS[judgement.verdict][1]


def _job_pages(judgement: Judgement) -> Iterator[Page]:
    """A page for each of several jobs: hanging jobs in full, the others as one sentence."""
    for number, (job, one) in enumerate(zip(judgement.jobs, judgement.each, strict=False), 1):
        yield Page(
            title=_job_line(job, judgement),
            kind=_kind(one),
            says=one.sentence,
            cards=tuple(_cards(one, one.culprits, False, f"job{number}-")) if one.culprits else (),
            parts=tuple(_ranks(one)) if one.culprits else (),
        )


def _about(judgement: Judgement) -> Iterator[tuple[str, str]]:
    if judgement.verdict is HangState.NO_JOB:
        yield from job_lines(judgement)
    elif judgement.job:
        still = still_words(judgement)
        said = f": it has stood still for {still}" if still and not judgement.culprits else ""
        missing = f"; {missing}" if (missing := missing_words(judgement.job)) else ""
        yield job_words(judgement.job, judgement.started), said + missing
    yield from (("", f"{host} did not answer: {why}") for host, why in judgement.unreached[:JOBS])


def job_lines(judgement: Judgement) -> Iterator[tuple[str, str]]:
    """The jobs of which one can be chosen."""
    yield from ((_job_line(job, judgement), "") for job in judgement.jobs[:JOBS])
    if len(judgement.jobs) > JOBS:
        yield "", f"and {len(judgement.jobs) - JOBS} more"


def _job_line(job: RunningJob, judgement: Judgement) -> str:
    """The job in words, with its owner if the jobs have different owners."""
    owner = f", of {job.owner}" if len({each.owner for each in judgement.jobs}) > 1 else ""
    return job_words(job, judgement.started, name=True) + owner


def _cards(judgement: Judgement, named: Sequence[HangCulprit], apart: bool, ids: str = "") -> list[Card]:
    """The cards of the named ranks. Rows about the whole job get their own card, unless there is only one."""
    folded = [(each,) for each in named] if apart else alike(named)
    cards = [_culprit_card(of, judgement, f"{ids}rank{number}") for number, of in enumerate(folded, 1)]
    if judgement.verdict in _WITHOUT_ROWS:
        return cards
    rows = tuple(_rows(judgement))
    if len(cards) == 1:
        return [replace(cards[0], rows=(*cards[0].rows, *rows))]
    return [*cards, Card(rows=rows, on=Medium.ALL)]


def _notes(judgement: Judgement) -> Iterator[str]:
    """Remarks on a judgement whose cards have no rows for them."""
    if judgement.verdict in _WITHOUT_ROWS:
        yield from way_words(judgement) if judgement.verdict is HangState.MOVES else ()
        yield from judgement.notes


def _culprit_card(of: Sequence[HangCulprit], judgement: Judgement, id: str) -> Card:
    first = of[0]
    still = still_words(judgement) if judgement.culprits else ""
    waits = judgement.verdict is HangState.WAITS
    word = "HANG" if judgement.culprits else "WAITS" if waits else "SUSPECT"
    return Card(
        word,
        _kind(judgement),
        who(of),
        _says(of),
        f"; since {still}" if still else "",
        "" if waits or judgement.confidence.value == word.lower() else judgement.confidence.value,
        (Row("stack", tuple(map(frame_words, first.frames)), RowForm.QUOTED, Medium.ALWAYS),),
        ids=(id,),
    )


def _rows(judgement: Judgement) -> Iterator[Row]:
    yield Row("waiting", tuple(map(group_words, judgement.stands.groups)), few=GROUPS, noun="places")
    yield _words("chain", chain_words(judgement.stands.chain))
    yield Row("also", judgement.notes)
    yield Row("libraries", tuple(library_words(judgement, evidence=False)), on=Medium.BRIEF)
    yield Row("libraries", tuple(library_words(judgement, evidence=True)), on=Medium.FULL)
    yield Row("against", tuple(dict.fromkeys(line for each in judgement.heard for line in each.against)))
    yield _words("seen", rights_words(judgement).removeprefix("seen "))
    if judgement.rights:
        said = (each.opinion for each in judgement.heard if each.opinion.kind is OpinionKind.SILENT)
        silent = (each.words.removesuffix(".") for each in said)
        yield Row("unread", (*judgement.rights.unread[:UNREAD], *silent), on=Medium.FULL)
    advice = advice_of(judgement)
    yield Row("do", (*(f"# {line}" for line in advice.do), *advice.commands), RowForm.TYPED)
    yield Row("next time", advice.next_time)


def _words(label: str, words: str) -> Row:
    return Row(label, (words,) if words else ())


def _ranks(judgement: Judgement) -> Iterator[Table]:
    """All ranks, those that are named first, or without -v those of one stack together if there are many."""
    named = {each.key for each in judgement.named}
    ranks = sorted(judgement.stands.ranks, key=lambda each: each.key not in named)
    many = len(ranks) > ALONE
    heads = ("PID", "STATE", "STEP", "SINCE", "WHERE")
    if ranks:
        on = Medium.FULL if many else Medium.ALL
        table = _filled(Table("Ranks", ("RANK", "HOST", *heads), tuple(map(_rank, ranks)), on))
        yield table.marked(sum(each.key in named for each in ranks), _kind(judgement))
    if many:
        groups = sorted(grouped(((_where(each), each.frames), each) for each in ranks).values(), key=len)
        rows, rest = [*map(_folded, groups[:ALONE])], groups[ALONE:]
        if rest:
            at = f"at {len(rest)} other places; -v shows all"
            rows.append((f"{sum(map(len, rest))} more", "", "", "", at))
        yield _filled(Table("Ranks", ("RANKS", "HOSTS", *heads[2:]), tuple(rows), Medium.BRIEF))


def _filled(table: Table) -> Table:
    """The table without columns that are empty."""
    kept = [at for at in range(len(table.heads)) if any(row[at] for row in table.rows)]
    rows = tuple(tuple(row[at] for at in kept) for row in table.rows)
    return replace(table, heads=tuple(table.heads[at] for at in kept), rows=rows)


def _folded(of: Sequence[RankStanding]) -> tuple[str, ...]:
    """Ranks at one place. The fewest come first: they are of interest."""
    numbers = sorted(each.rank for each in of if each.rank is not None)
    steps = sorted({each.step for each in of if each.step is not None})
    since = [each.since for each in of if each.since is not None]
    ranks = ranks_text(numbers, most=FOLDED).partition(" ")[2] if len(numbers) == len(of) else str(len(of))
    step = f"{steps[0]}-{steps[-1]}" if len(steps) > 1 else "".join(map(str, steps))
    hosts = list(dict.fromkeys(each.member.host for each in of))
    named = fold(hosts) if len(hosts) < MANY else f"{len(hosts)} hosts"
    return ranks, named, step, duration(min(since)) if since else "", _where(of[0])


def _rank(each: RankStanding) -> tuple[str, ...]:
    look = each.member.b or each.member.a
    rank = "?" if each.rank is None else str(each.rank)
    host, pid = fold((each.member.host,)), str(each.member.pid)
    step = "" if each.step is None else str(each.step)
    since = "" if each.since is None else duration(each.since)
    return rank, host, pid, look.state if look else "", step, since, _where(each)


def _where(each: RankStanding) -> str:
    at = f", {each.place}" if each.place else ""
    if each.inside:
        return f"in {each.operation or 'a collective'}{at}"
    if each.inside is None:
        return f"unknown{at}"
    known = each.doing is not None and each.doing.cause is not Cause.ELSEWHERE
    return f"outside: {each.doing.cause.value}{at}" if each.doing and known else f"outside{at}"
