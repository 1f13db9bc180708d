"""What logs say, for a person in a terminal: the rank that ended the job comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from doctor.logs.explained import Explained, Proved, headline, last_words, place_of, told_at, why_unknown
from doctor.logs.loss.picture import print_losses
from doctor.logs.model import Charge, Line, Outcome
from doctor.model import Confidence
from doctor.report.terminal.page import Cleaned, put_edged, put_line, put_rows, put_wrapped, wrapped
from doctor.text.printable import clean_line

STYLES = {Outcome.NAMED: "bold red", Outcome.CLEAN: "bold green", Outcome.UNKNOWN: "bold cyan"}
_PROVED = {Proved.PROVED: "bold red", Proved.GONE: "bold green", Proved.OPEN: "bold cyan"}
INDENT = 6
LINES = 3
"""Quoted of a charge, without -v; so many more are counted."""
LONGEST = 240
"""Of a quoted line, in characters."""
LED_TO = 4
STORY = 8
ODD = 8
PROGRESS = 8
LEFT = 4
CAUSES = 4
NUMBERED = len("1. ")


def print_explained(
    explained: Explained, console: Console, *, verbose: bool = False, quiet: bool = False
) -> None:
    """`verbose` adds every line, moment and file; `quiet` leaves who is named and the last line."""
    console.push_render_hook(Cleaned())
    found = explained.conclusion
    if explained.read and not quiet:
        put_wrapped(Text(clean_line(explained.read), style="bold"), console, wide=True)
    if found.outcome is Outcome.UNKNOWN and not quiet:
        console.print()
        put_wrapped(
            Text.assemble(("UNKNOWN", STYLES[found.outcome]), "  ", (why_unknown(explained), "bold")), console
        )
    for number, place in enumerate(explained.roots if found.outcome is Outcome.NAMED else ()):
        if number or not quiet:
            console.print()
        _print_cause(explained, place, console, verbose, quiet)
    if not quiet:
        if found.outcome is not Outcome.NAMED:
            _print_odd(explained, console, verbose)
        _print_beside(explained, console)
        _print_story(explained, console, verbose)
        if draws_losses(explained) or verbose:
            print_losses(explained.logs.curves, found.charges, console, 2)
        _print_proves(explained, console)
        _print_open(explained, console, verbose)
        console.print()
    elif found.outcome is Outcome.NAMED:
        console.print()
    _print_ending(explained, console, quiet)


def draws_losses(explained: Explained) -> bool:
    """Where the losses say something, or nothing else does."""
    found = explained.conclusion
    of_losses = any((each.symptom or "").startswith("loss-") for each in found.charges)
    return of_losses or found.outcome is not Outcome.NAMED


def word(charge: Charge) -> str:
    return "SUSPECT" if charge.confidence is Confidence.SUSPECT else "FAIL"


def _print_cause(explained: Explained, place: int, console: Console, verbose: bool, quiet: bool) -> None:
    charge = explained.conclusion.charges[place]
    style = "bold cyan" if charge.confidence is Confidence.SUSPECT else "bold red"
    head = Text.assemble((word(charge), style), "  ", (clean_line(headline(charge)), "bold"))
    put_edged(head, Text(clean_line(charge.symptom or charge.confidence.value), "dim"), console, INDENT)
    if proof := explained.proof_of(place):
        said = Text.assemble(
            (proof.proved.value, _PROVED[proof.proved]), f": {clean_line(proof.says)}" if proof.says else ""
        )
        put_rows([("on hosts", said)], console, INDENT)
    if quiet:
        return
    _print_rows(explained, place, console, verbose)
    if charge.remedy:
        label = "do"
        for command in charge.remedy.commands:
            _print_command(command, label, console)
            label = ""


def _print_rows(explained: Explained, place: int, console: Console, verbose: bool) -> None:
    for name, text in _rows(explained, place, verbose):
        put_rows([(name, text)], console, INDENT, hang=NUMBERED if name == "causes" else 0)


def _rows(explained: Explained, place: int, verbose: bool) -> Iterator[tuple[str, str]]:
    charge = explained.conclusion.charges[place]
    yield "known by", "\n".join(map(clean_line, charge.how))
    quotes = [quoted(line) for line in charge.lines]
    yield "lines", "\n".join(_some(quotes, len(quotes) if verbose else LINES, "lines"))
    led = [_consequence(each) for each in explained.led_to(place)]
    yield "led to", "\n".join(_some(led, len(led) if verbose else LED_TO, "consequences"))
    if len(charge.causes) == 1:
        yield "why", clean_line(charge.causes[0])
    else:
        causes = [f"{number}. {clean_line(cause)}" for number, cause in enumerate(charge.causes, 1)]
        yield "causes", "\n".join(_some(causes, len(causes) if verbose else CAUSES, "causes"))
    if verbose:
        yield "certainty", charge.confidence.value


def quoted(line: Line, most: int = LONGEST) -> str:
    text = clean_line(" ".join(line.text.split()))
    return clean_line(f"{place_of(line)}: {text if len(text) <= most else text[: most - 1] + '…'}")


def _consequence(charge: Charge) -> str:
    times = f"{charge.count} lines" if charge.count > 1 else ""
    more = ", ".join(filter(None, (charge.symptom, times)))
    return clean_line(headline(charge) + (f" ({more})" if more else ""))


def _some(texts: Sequence[str], most: int, what: str) -> Iterator[str]:
    """The first ones. A single one that is left is shown rather than counted."""
    most = len(texts) if len(texts) == most + 1 else most
    yield from texts[:most]
    if len(texts) > most:
        yield f"and {len(texts) - most} more {what} (-v)"


def _print_command(command: str, label: str, console: Console) -> None:
    """Never wrapped, but for sentences: commands are there to be copied."""
    if command.startswith("#"):
        put_rows([(label, command.lstrip("# "))], console, INDENT)
        return
    put_line(Text.assemble(" " * INDENT, (f"{label:<9}  ", "dim"), (clean_line(command), "cyan")), console)


def _print_odd(explained: Explained, console: Console, verbose: bool) -> None:
    """What complains and is not known, and how far each rank was."""
    found = explained.conclusion
    parts: list[tuple[str, Iterable[Line], int]] = [("First odd lines", found.odd, ODD)]
    if found.outcome is Outcome.UNKNOWN:
        parts.append(("How far each rank was", explained.progress, PROGRESS))
        for charge in found.charges:
            console.print()
            put_wrapped(Text(clean_line(headline(charge)), style="bold"), console, 0, 2)
            _print_rows(explained, found.charges.index(charge), console, verbose)
    for title, lines, most in parts:
        shown = [quoted(line) for line in lines]
        if shown:
            console.print()
            put_line(Text(title, style="bold"), console)
            for text in _some(shown, len(shown) if verbose else most, "lines"):
                put_wrapped(Text(text), console, 2, 4, wide=True)


def _print_beside(explained: Explained, console: Console) -> None:
    if explained.conclusion.beside:
        console.print()
        put_line(Text("Other attempts and jobs", style="bold"), console)
        for text in explained.conclusion.beside:
            put_wrapped(Text(clean_line(text)), console, 2, 4)


def _print_story(explained: Explained, console: Console, verbose: bool) -> None:
    told = list(told_at(explained.conclusion.story))
    if sum(at is not None for at, _ in explained.conclusion.story) < (1 if verbose else 2):
        return
    wide = max(len(when) for when, _ in told)
    console.print()
    put_line(Text("What happened when", style="bold"), console)
    most = len(told) if verbose or len(told) == STORY + 1 else STORY
    for when, says in told[:most]:
        for number, line in enumerate(wrapped(Text(clean_line(says)), console, wide + 4)):
            put_line(Text(f"  {'' if number else when:>{wide}}  ") + line, console)
    if len(told) > most:
        put_line(Text(f"  and {len(told) - most} more moments (-v)"), console)


def _print_proves(explained: Explained, console: Console) -> None:
    if commands := explained.proves():
        console.print()
        put_line(Text("Prove it on the hosts:", style="bold"), console)
        for command in commands:
            put_line(Text(f"  {clean_line(command)}", style="cyan"), console)


def _print_open(explained: Explained, console: Console, verbose: bool) -> None:
    """What could not be told, and what was not read: always shown."""
    rows = [*explained.conclusion.open, *explained.unread]
    if rows:
        console.print()
        put_line(Text("Not known", style="bold"), console)
        for text in _some(rows, len(rows) if verbose else LEFT, "such lines"):
            put_wrapped(Text(clean_line(text)), console, 2, 4)


def _print_ending(explained: Explained, console: Console, quiet: bool) -> None:
    found = explained.conclusion
    put_wrapped(Text(clean_line(last_words(explained)), style=STYLES[found.outcome]), console, wide=True)
    first = next((found.charges[n].symptom for n in explained.roots if found.charges[n].symptom), None)
    if found.outcome is Outcome.NAMED and first and not quiet:
        put_line(Text.assemble(("More: ", "dim"), clean_line(f"doctor explain {first}")), console)
