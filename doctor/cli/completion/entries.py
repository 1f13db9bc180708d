"""What a shell can complete: commands, options, and the values of options."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from doctor.cli.help import HelpEntry, below, entries
from doctor.exam.demo import ALL_DEMOS
from doctor.exam.request import Request
from doctor.expect import FIELDS
from doctor.judge.playbook import exams, load_remedies
from doctor.judge.registry import find_checks
from doctor.logs.symptoms.load import load_symptoms
from doctor.report.start.launch_line import AUTO, FORMS
from doctor.smoke.inject import KINDS
from doctor.text.option import options

SHELLS = ("bash", "zsh", "fish")
PLACES = {
    "FILE": "files",
    "PATH": "files",
    "DIR": "folders",
    **dict.fromkeys(("HOSTS", "HOST", "NODESET"), "hosts"),
}
"""The kind of values for a word in a metavar."""


@dataclass(frozen=True, slots=True)
class Values:
    """What may follow: words and, by `kind`, files, folders or hosts; an empty kind is unknown."""

    words: tuple[str, ...] = ()
    kind: str = ""
    commas: bool = False
    """Whether "a,b" is two values."""


@dataclass(frozen=True, slots=True)
class CompletionEntry:
    names: tuple[str, ...]
    about: str
    values: Values | None
    """None for a switch."""


@dataclass(frozen=True, slots=True)
class CompletionCommand:
    """A command: the words that are typed for it, its subcommands with their help, options and arguments."""

    path: str
    commands: tuple[tuple[str, str], ...]
    options: tuple[CompletionEntry, ...]
    arguments: Values


def commands(root: Any) -> list[CompletionCommand]:
    """doctor itself and all its commands."""
    words = dict(_words())
    every = [root, *below(root)]
    words["COMMAND"] = Values(tuple(root.command.commands))
    return [_command(each, words) for each in every]


def _command(context: Any, words: dict[str, Values]) -> CompletionCommand:
    inner = getattr(context.command, "commands", {})
    found = entries(context.command, context)
    arguments = [_values(each, words) for each in found if not each.is_option]
    return CompletionCommand(
        str(context.command_path).partition(" ")[2],
        tuple((name, about(each.get_short_help_str(80))) for name, each in inner.items() if not each.hidden),
        tuple(
            CompletionEntry(each.names, about(each.help), _values(each, words) if each.metavar else None)
            for each in found
            if each.is_option
        ),
        arguments[0] if arguments else Values(),
    )


def _words() -> Iterator[tuple[str, Values]]:
    """The words that may follow an option or stand for an argument."""
    checks = tuple(check.id for check in find_checks().checks)
    yield from ((option.name, Values(option.values)) for option, _ in options(Request) if option.values)
    yield from ((option, Values(checks, commas=True)) for option in ("--only", "--skip"))
    yield "--expect", Values(tuple(f"{name}=" for name in FIELDS))
    yield "--exam", Values(tuple(exams()), "files")
    yield "--print", Values(("launch", *(f"launch={form}" for form in (AUTO, *FORMS))))
    yield "--inject", Values(("help", *(f"{kind}@" for kind in KINDS)))
    known = load_symptoms().symptoms
    codes = (code for each in known for code in each.codes if re.fullmatch(r"\w+", code))
    symptoms = tuple(dict.fromkeys((*(each.id for each in known), *codes)))
    yield "WHAT", Values((*checks, *load_remedies().recipes, *symptoms), "files")
    yield "NAME", Values(tuple(ALL_DEMOS))
    yield "SHELL", Values(SHELLS)


def _values(entry: HelpEntry, words: dict[str, Values]) -> Values:
    if found := words.get(entry.names[-1]):
        return found
    if "|" in entry.metavar:
        return Values(tuple(entry.metavar.split("|")))
    return Values(
        kind=next((PLACES[word] for word in re.findall(r"[A-Z]+", entry.metavar) if word in PLACES), "")
    )


def about(text: str) -> str:
    """The first sentence of the text, without characters that have a meaning to a shell."""
    return re.sub(r"[\[\]'\"\\`$:;{}()]", "", re.split(r"[.;] |\.$", text)[0])
