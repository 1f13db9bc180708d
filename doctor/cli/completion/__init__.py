"""`doctor completion SHELL`: a script that completes without starting doctor, so that a Tab is fast.

The script holds all names itself, so it matches the version of doctor that wrote it: a program for the shell
looks them up in a table, which is the same for all shells.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
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
from doctor.text.grouped import grouped
from doctor.text.hostprogram import host_program
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
    """What may follow: words and, by `kind`, files, folders or hosts; a list is some of the words with commas
    between them, a switch has no values, and an empty kind is unknown.
    """

    words: tuple[str, ...] = ()
    kind: str = ""


def script(shell: str, root: Any) -> str:
    """`root` is the context of doctor itself."""
    rows = grouped(_rows(root))
    table = "\n".join(f"|{'|'.join(paths)}|;{';'.join(row)}" for row, paths in rows.items())
    return host_program(__file__, f"{shell}_head.{shell}", ROWS=quote(table))


def _rows(root: Any) -> Iterator[tuple[tuple[str, str, str, str], str]]:
    """Of each command, option and argument: its names (an argument has none), the kind of its values, words
    among them, and what it is for; with what is typed for the command that it belongs to.
    """
    known = {**dict(_words()), "COMMAND": Values(tuple(root.command.commands))}
    for context in (root, *below(root)):
        path = str(context.command_path)
        for name, inner in getattr(context.command, "commands", {}).items():
            if not inner.hidden:
                yield (name, "command", "", _about(inner.get_short_help_str(80))), path
        found = entries(context.command, context)
        for each in [each for each in found if not each.is_option][:1]:
            values = _values(each, known)
            yield ("", values.kind, " ".join(values.words), ""), path
        for each in found:
            if each.is_option:
                values = _values(each, known) if each.metavar else Values(kind="switch")
                row = " ".join(each.names), values.kind, " ".join(values.words), _about(each.help)
                yield row, path


def _words() -> Iterator[tuple[str, Values]]:
    """The words that may follow an option or stand for an argument."""
    checks = tuple(check.id for check in find_checks().checks)
    yield from ((option.name, Values(option.values)) for option, _ in options(Request) if option.values)
    yield from ((option, Values(checks, "list")) for option in ("--only", "--skip"))
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


def _about(text: str) -> str:
    """The first sentence of the text, without characters that have a meaning to a shell."""
    return re.sub(r"[\[\]'\"\\`$:;{}()]", "", re.split(r"[.;] |\.$", text)[0])
