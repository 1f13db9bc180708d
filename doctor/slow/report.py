"""A judgement of `doctor slow` as a page."""

from collections.abc import Iterator

from doctor.hang.report import ONE_JOB, job_lines
from doctor.hang.report import page_of as hang_page
from doctor.hang.words import rights_words
from doctor.live.words import frame_words, job_words, missing_words
from doctor.report.page.card import Card, CardKind, Medium, Page, Row, RowForm, Step, Table
from doctor.slow.advice import LONGER, advice, next_look
from doctor.slow.judge.judgement import DeviceShare, Lag, LateReason, SlowCulprit, SlowJudgement, SlowState
from doctor.slow.judge.words import between, milliseconds, percent, who
from doctor.text.nodeset import fold

WORDS = {
    SlowState.LATE: ("Late", CardKind.WARN),
    SlowState.LINK: ("Link", CardKind.WARN),
    SlowState.EVEN: ("Nobody is late", CardKind.GOOD),
    SlowState.STANDS: ("Stands still", CardKind.OPEN),
    SlowState.UNKNOWN: ("Undecided", CardKind.OPEN),
    SlowState.NO_JOB: ("No job", CardKind.OPEN),
    SlowState.SEVERAL: ("Several jobs", CardKind.OPEN),
}


def page_of(judgement: SlowJudgement) -> Page:
    word, kind = WORDS[judgement.state]
    cards = tuple(_card(each, judgement, number) for number, each in enumerate(judgement.late, 1))
    if judgement.state is SlowState.STANDS:  # who it waits for is known already
        cards = hang_page(judgement.hang).cards
    return Page(
        "slow",
        judgement.started,
        word,
        kind,
        _title(judgement),
        judgement.sentence,
        tuple(_about(judgement)),
        cards,
        "Whom the others wait for",
        parts=tuple(_ranks(judgement)),
        notes=tuple(f"{note[:1].upper()}{note[1:]}." for note in _notes(judgement)),
        after=tuple(_after(judgement)),
    )


def _title(judgement: SlowJudgement) -> str:
    """Who is late and what that costs; how many others are late too."""
    if not judgement.late:
        return judgement.sentence.removesuffix(".")
    first, *others = judgement.late
    return f"{who(first)}: {first.sentence}" + (f"; {len(others)} more late" if others else "")


def _about(judgement: SlowJudgement) -> Iterator[tuple[str, str]]:
    job = judgement.job
    if job is not None:
        missing = f"; {missing}" if (missing := missing_words(job)) else ""
        yield job_words(job, judgement.started), missing + _pace(judgement)
    elif judgement.jobs:
        yield from job_lines(judgement.hang)
    yield from (("", f"{host} did not answer: {why}") for host, why in judgement.hang.unreached[:20])


def _pace(judgement: SlowJudgement) -> str:
    if not judgement.seconds:
        return ""
    if judgement.steps is None or judgement.step_seconds is None:
        return f"; looked at for {judgement.seconds:.0f} s"
    each = milliseconds(judgement.step_seconds)
    return f"; {judgement.steps} steps of {each}, looked at for {judgement.seconds:.0f} s"


def _card(late: SlowCulprit, judgement: SlowJudgement, number: int) -> Card:
    return Card(
        "SLOW",
        CardKind.WARN,
        who(late),
        late.sentence,
        "; the slowest stage of the pipeline, perhaps by design" if late.lag is Lag.STAGE else "",
        "strong" if late.certain else "suspect",
        tuple(_rows(late, judgement)),
        ids=(f"late{number}",),
    )


def _rows(late: SlowCulprit, judgement: SlowJudgement) -> Iterator[Row]:
    if late.where is not None:
        at = late.where
        often = f"in {percent(at.share)} of the samples; the others in {percent(at.others)}"
        name = at.frame.name.rpartition(".")[2]
        yield Row("where", (f"it is in {name}, {at.frame.file.rpartition('/')[2]}:{at.frame.line}, {often}",))
        yield Row("line", (frame_words(at.frame),), RowForm.QUOTED)
    yield Row("why", late.why)
    if late.waits is not None and late.others is not None:
        them = "it waits" if len(late.ranks) < 2 else "they wait"
        said = f"{them} {percent(late.waits)} of the time, the others {between(*late.others)}"
        yield Row("waiting", (said,))
    if late.agree is not None:
        agree, blocks = late.agree
        samples = f"{judgement.samples} samples of each rank by {judgement.by}"
        yield Row("seen", (f"{samples}; {agree} of {blocks} parts of the time agree",))
    if judgement.step_seconds and late.saves:
        left = milliseconds(max(0.0, 1 - late.saves) * judgement.step_seconds)
        short = late.reason in (LateReason.QUOTA, LateReason.HOGS, LateReason.NICE)
        most = f"a step would take at most {left}: what it does inside collectives is slow, too"
        yield Row("without", (most if short else f"a step would take about {left}",))
    yield Row("do", tuple(advice(late, judgement.hang.reach)), RowForm.TYPED)


def _notes(judgement: SlowJudgement) -> Iterator[str]:
    if judgement.smallest is not None:
        yield f"one rank that costs {percent(judgement.smallest)} of the time or more would have been named"
    if judgement.maybe and not judgement.late:
        yield judgement.maybe + ("" if judgement.state is SlowState.EVEN else "; that may be chance")
    yield from judgement.notes
    if judgement.hang.rights and judgement.state in (SlowState.UNKNOWN, SlowState.EVEN):
        yield rights_words(judgement.hang)


def _after(judgement: SlowJudgement) -> Iterator[Step]:
    if judgement.state is SlowState.SEVERAL:
        yield Step(ONE_JOB)
    if longer := next_look(judgement):
        yield Step(f"Look for longer: {longer}")
    if judgement.state is SlowState.STANDS and judgement.job:
        yield Step(f"It stands still: {judgement.hang.reach.other('hang')}")
        yield Step(f"Or a step takes longer: {judgement.hang.reach.other('slow')} --for {LONGER}")


def _ranks(judgement: SlowJudgement) -> Iterator[Table]:
    """All ranks, those for which the others wait first."""
    late = {rank for each in judgement.late for rank in each.ranks}
    ranks = sorted(judgement.ranks, key=lambda each: each.rank not in late)
    rows = tuple(
        (
            "?" if each.rank is None else str(each.rank),
            fold((each.key[0],)),
            str(each.key[1]),
            "?" if each.waits is None else percent(each.waits),
            each.place,
        )
        for each in ranks
    )
    if rows:
        table = Table("Ranks", ("RANK", "HOST", "PID", "WAITS", "OUTSIDE MOST OFTEN AT"), rows, Medium.FULL)
        yield table.marked(sum(each.rank in late for each in ranks), CardKind.WARN)
    devices = tuple(
        ("?" if each.rank is None else str(each.rank), fold((each.key[0],)), *_device(each.device))
        for each in judgement.ranks
        if each.device is not None
    )
    if devices:
        head = ("RANK", "HOST", "DEVICE", "CLOCK", "AT MOST", "POWER", "TEMPERATURE", "HELD DOWN BY")
        yield Table("Devices", head, devices, Medium.FULL)


def _device(one: DeviceShare) -> Iterator[str]:
    yield one.name
    for number, unit in ((one.mhz, "MHz"), (one.most_mhz, "MHz"), (one.watts, "W"), (one.celsius, "C")):
        yield "?" if number is None else f"{number:,} {unit}"
    yield ", ".join(one.reasons)
