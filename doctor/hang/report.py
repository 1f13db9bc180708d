"""A judgement for a person in a terminal or reading a log: the rank that everybody waits for comes first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from doctor.hang.evidence import Frame
from doctor.hang.judge.judgement import Culprit, Job, Judgement, Standing, Verdict
from doctor.hang.words import (
    against_words,
    alike,
    chain_words,
    group_words,
    job_words,
    library_words,
    missing_words,
    rights_words,
    silent_words,
    still_words,
    who,
)
from doctor.report.terminal.page import LABEL, Cleaned, put_edged, put_line, put_rows, put_wrapped
from doctor.text.nodeset import fold
from doctor.text.printable import clean_line

_STYLE = {
    Verdict.HANG: "bold red",
    Verdict.MOVES: "bold green",
    Verdict.WAITS: "bold yellow",
}
_OTHER = "bold cyan"
_INSTALLED = re.compile(r"^.*/(?:(?:site|dist)-packages|lib(?:64)?/python3[\d.]*)/")
"""Before the name that a library's file has for everybody."""
INDENT = 6
GROUPS = 6
JOBS = 20
UNREAD = 4


def print_judgement(
    judgement: Judgement, console: Console, *, verbose: bool = False, quiet: bool = False
) -> None:
    """`verbose` adds a line for each rank and what could not be read; `quiet` leaves who is named."""
    console.push_render_hook(Cleaned())
    if judgement.each:
        _print_each(judgement, console, verbose=verbose, quiet=quiet)
    elif not quiet:
        _print_opening(judgement, console)
    folded = [(each,) for each in judgement.named] if verbose else alike(judgement.named)
    for number, of in enumerate(folded):
        if number or not quiet:
            console.print()
        _print_named(of, judgement, console)
    if not quiet and judgement.verdict not in (Verdict.MOVES, Verdict.SEVERAL, Verdict.NO_JOB):
        if len(folded) != 1:
            console.print()
        put_rows(_rows(judgement, verbose), console, INDENT)
        _print_what_to_do(judgement, console)
    if verbose and judgement.ranks:
        _print_ranks(judgement, console)
    said = judgement.named if quiet else judgement.job or judgement.jobs or judgement.unreached
    if said:
        console.print()
    if judgement.verdict is Verdict.MOVES and not quiet:
        _print_notes(judgement, console)
    _print_ending(judgement, console)


def _print_each(judgement: Judgement, console: Console, *, verbose: bool, quiet: bool) -> None:
    """Several jobs: one that hangs in full, of the others what is so."""
    for number, one in enumerate(judgement.each):
        if not one.culprits and (quiet or number >= JOBS):
            continue
        put_wrapped(_job_line(judgement.jobs[number], judgement), console, 0, 2, wide=True)
        for of in alike(one.culprits):
            _print_named(of, one, console)
        if one.culprits and not quiet:
            put_rows(_rows(one, verbose), console, INDENT)
            _print_what_to_do(one, console)
        if one.culprits and verbose:
            _print_ranks(one, console)
        put_wrapped(Text(clean_line(one.sentence), style=_style(one)), console, INDENT, INDENT)
    if len(judgement.each) > JOBS and not quiet:
        put_line(Text(f"{len(judgement.each)} in all", style="dim"), console)
    if not quiet:
        _print_notes(judgement, console)
    _print_unreached(judgement, console)


def _print_notes(judgement: Judgement, console: Console) -> None:
    for note in judgement.notes:
        put_wrapped(Text(clean_line(note[:1].upper() + note[1:]) + "."), console)


def _job_line(job: Job, judgement: Judgement) -> Text:
    """With its owner, where not all are of the same."""
    owner = f", of {job.owner}" if len({each.owner for each in judgement.jobs}) > 1 else ""
    return Text(clean_line(job_words(job, judgement.started, name=True) + owner), style="bold")


def _print_opening(judgement: Judgement, console: Console) -> None:
    if judgement.verdict is Verdict.NO_JOB:
        for job in judgement.jobs[:JOBS]:
            put_wrapped(_job_line(job, judgement), console, 0, 2, wide=True)
        if len(judgement.jobs) > JOBS:
            put_line(Text(f"and {len(judgement.jobs) - JOBS} more", style="dim"), console)
    elif judgement.job:
        still = still_words(judgement)
        said = f": it has stood still for {still}" if still and not judgement.culprits else ""
        missing = f"; {missing}" if (missing := missing_words(judgement.job)) else ""
        found = clean_line(job_words(judgement.job, judgement.started))
        line = Text.assemble((found, "bold"), clean_line(said + missing))
        put_wrapped(line, console, wide=True)
    _print_unreached(judgement, console)


def _print_unreached(judgement: Judgement, console: Console) -> None:
    for host, why in judgement.unreached[:JOBS]:
        put_wrapped(Text(clean_line(f"{host} did not answer: {why}")), console, 0, 2)


def _print_named(of: Sequence[Culprit], judgement: Judgement, console: Console) -> None:
    first = of[0]
    still = still_words(judgement) if judgement.culprits else ""
    since = f"; since {still}" if still else ""
    sentence = ("each " if len(of) > 1 else "") + first.sentence
    head = Text.assemble(
        (_word(judgement), _style(judgement)),
        "  ",
        (clean_line(who(of)), "bold"),
        (f"  {clean_line(sentence)}", "bold"),
        since,
    )
    put_edged(head, Text(judgement.confidence.value, "dim"), console, INDENT, together=True)
    put_rows([("stack", "\n".join(map(_frame, first.frames)))], console, INDENT)


def _word(judgement: Judgement) -> str:
    if judgement.culprits:
        return "HANG"
    return "WAITS" if judgement.verdict is Verdict.WAITS else "SUSPECT"


def _style(judgement: Judgement) -> str:
    if judgement.verdict is Verdict.HANG and not judgement.culprits:
        return _OTHER
    return _STYLE.get(judgement.verdict, _OTHER)


def _frame(frame: Frame) -> str:
    source = f": {clean_line(frame.source.strip())}" if frame.source.strip() else ""
    file = _INSTALLED.sub("", frame.file)
    return f"{clean_line(file)}:{frame.line} in {clean_line(frame.name)}{source}"


def _rows(judgement: Judgement, verbose: bool) -> Iterator[tuple[str, str]]:
    groups = [clean_line(group_words(group)) for group in judgement.groups]
    more = [f"and {len(groups) - GROUPS} more places (-v)"] if len(groups) > GROUPS and not verbose else []
    yield "waiting", "\n".join((groups if verbose else groups[:GROUPS]) + more)
    yield "chain", clean_line(chain_words(judgement.chain))
    yield "also", "\n".join(map(clean_line, judgement.notes))
    yield "libraries", "\n".join(map(clean_line, library_words(judgement, evidence=verbose)))
    yield "against", "\n".join(map(clean_line, against_words(judgement)))
    yield "seen", clean_line(rights_words(judgement).removeprefix("seen "))
    if verbose and judgement.rights:
        unread = (*judgement.rights.unread[:UNREAD], *silent_words(judgement))
        yield "unread", "\n".join(map(clean_line, unread))


def _print_what_to_do(judgement: Judgement, console: Console) -> None:
    """Commands are never wrapped: they are there to be copied."""
    put_rows([("do", "\n".join(map(clean_line, judgement.do)))], console, INDENT)
    for command in judgement.commands:
        put_line(Text(" " * (INDENT + LABEL + 2) + clean_line(command), style="cyan"), console)
    put_rows([("next time", "\n".join(map(clean_line, judgement.next_time)))], console, INDENT)


def _print_ranks(judgement: Judgement, console: Console) -> None:
    rows = [("RANK", "HOST", "PID", "STATE", "WHERE"), *map(_rank_row, judgement.ranks)]
    wide = [max(len(row[column]) for row in rows) for column in range(4)]
    console.print()
    for number, row in enumerate(rows):
        cells = "  ".join(f"{cell:<{size}}" for cell, size in zip(row, wide, strict=False))
        line = Text(f"{cells}  {row[4]}", style="dim" if number == 0 else "")
        put_wrapped(line, console, 0, sum(wide) + 8, wide=True)


def _rank_row(each: Standing) -> tuple[str, str, str, str, str]:
    look = each.member.b or each.member.a
    rank = "?" if each.rank is None else str(each.rank)
    state = look.state if look else ""
    at = f", {each.place}" if each.place else ""
    if each.inside:
        where = f"in {each.operation or 'a collective'}{at}"
    elif each.inside is None:
        where = f"unknown{at}"
    else:
        where = f"outside: {each.doing.words}{at}" if each.doing else f"outside{at}"
    step = f", step {each.step}" if each.step is not None else ""
    return rank, clean_line(fold((each.member.host,))), str(each.member.pid), state, clean_line(where + step)


def _print_ending(judgement: Judgement, console: Console) -> None:
    put_wrapped(Text(clean_line(judgement.sentence), style=_style(judgement)), console, wide=True)
    if judgement.straggler:
        said = clean_line(f"{judgement.straggler}.")
        put_wrapped(Text(said[:1].upper() + said[1:], style="dim"), console, wide=True)
    if judgement.verdict is Verdict.SEVERAL:
        put_line(
            Text("Of one job alone: the same command with its --pid PID or --master-port PORT", style="dim"),
            console,
        )
