"""Commands that a report prints, as a shell would read them: which programs they start, whether they change
something, and whether they only show again what the report already shows.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from typing import Any

import typer

from doctor.cli import app
from doctor.judge.registry import find_checks
from tests.support.cases import from_cases

ANYWHERE = {*from_cases(__file__, "ANYWHERE", str).split()}
OF_A_VENDOR = from_cases(__file__, "OF_A_VENDOR", dict[str, str])
IN_A_PACKAGE = from_cases(__file__, "IN_A_PACKAGE", dict[str, str])
OF_A_FAMILY = from_cases(__file__, "OF_A_FAMILY", dict[str, str])
READS = {*from_cases(__file__, "READS", str).split()}
CHANGES = {*from_cases(__file__, "CHANGES", str).split()}
LOOKS_AGAIN = from_cases(__file__, "LOOKS_AGAIN", dict[str, str])
_OF_SHELL = {"do", "done", "then", "else", "fi", "{", "}", "!", "if", "while"}
_WITH_VALUE = ("-F", "-l", "-J", "-p", "-i", "-o", "-u")
_OPERATOR = re.compile(r"[();|&]+")
_DIGITS = re.compile(r"(?<![a-z])\d+")  # not those of a program's name
_REDIRECTION = re.compile(r"[|&]*[<>]+[|&]*")
Words = list[str]
FILTERS = ("ssh", "grep", "tail", "head")
VENDORS = (*" ".join(OF_A_VENDOR.values()).split(),)
WIDTHS = (80, 100)
"""Those of the pages that are read; the narrow ones are few."""
ON_PAGES_OF_LOGS = (*VENDORS, *" ".join(OF_A_FAMILY.values()).split())
_WORDS = (
    "doctor|ssh|srun|sudo|kill|journalctl|cat|ls|grep|py-spy|gdb|strace|iostat|kubectl|docker|apt|yum|dnf"
)
_ON_A_CARD = re.compile(
    rf"^ ?(?: {{6}}(?:do {{4}}|verify) {{5}}| {{17}})((?:\w+=\S+ )*(?:{_WORDS}|[a-z]+[-_](?:smi|tool)) .*)$",
    re.M,
)
_OF_A_REMEDY = re.compile(r"^ {6}do {9}[^\n]*:\n((?: {8}\S.*\n)+)", re.M)
_PYTHON = re.compile(r"from doctor\.\S+ import |batch\(")
_PROVES = re.compile(r"^ ?Prove it on the hosts:\n((?: {2,3}doctor .*\n)+)", re.M)


def parts(line: str) -> Iterator[Words]:
    """The simple commands of a line, also those that another shell or host runs; without `sudo`."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: Words = []
    read = iter([*lexer, ";"])
    for word in read:
        if _REDIRECTION.fullmatch(word):
            next(read)
        elif not _OPERATOR.fullmatch(word):
            words.append(word)
        else:
            yield from _simple(words)
            words = []


def _simple(words: Words) -> Iterator[Words]:
    while words and (words[0] in _OF_SHELL or re.match(r"\w+=", words[0])):
        words = words[1:]
    while words and words[0] in ("sudo", "env", "timeout"):
        words = _without_options(words[1:])
        words = words[1:] if words and words[0].isdigit() else words
    if not words or words[0] == "for":
        return
    if words[0] == "ssh":
        yield ["ssh"]
        yield from parts(" ".join(_without_options(words[1:])[1:]))
    elif words[:2] in (["sh", "-c"], ["bash", "-c"]):
        yield from parts(words[2])
    else:
        yield words


def _without_options(words: Words) -> Words:
    while words and (words[0].startswith("-") or re.match(r"\w+=", words[0])):
        words = words[2 if words[0] in _WITH_VALUE else 1 :]
    return words


def missing(line: str, also: Iterable[str] = ()) -> list[str]:
    """The programs of a line that the host where it is typed need not have; none of a line for a script."""
    if _PYTHON.match(line):
        return []
    known = ANYWHERE | {*also} | {name for name, said in IN_A_PACKAGE.items() if said in line}
    typed = [words[0] for words in parts(line)]
    return [name for name in typed if name not in known and not name.startswith(("value", "/"))]


def typed_in(text: str) -> list[str]:
    """The commands that a page says to type."""
    blocks = [*_OF_A_REMEDY.findall(text), *_PROVES.findall(text)]
    on_cards = (
        found[1] for found in _ON_A_CARD.finditer(text) if not _goes_on(text[: found.start()], found[0])
    )
    return [*on_cards, *(line.strip() for block in blocks for line in block.splitlines())]


def _goes_on(above: str, line: str) -> bool:
    """Whether the line is the rest of a sentence: it ends as one, or its first word had no room above."""
    if not line.startswith(" " * 17):
        return False
    before, word = above.rstrip("\n").rpartition("\n")[2], line.split()[0]
    needs = len(before) + len(word)
    had_no_room = any(width - 12 < needs <= width + (width - 80) for width in WIDTHS)
    ended = before.endswith((".", ":")) or _ON_A_CARD.match(before)
    rest = line.endswith((".", ",", ";")) or line.count(")") > line.count("(")
    return rest or (had_no_room and not ended)


def refused(lines: Iterable[str], also: Iterable[str] = VENDORS) -> list[str]:
    """What cannot be typed where it is printed, with the reason."""
    told = [f"{line}: {name} need not be there" for line in lines for name in missing(line, also)]
    own = [line for line in lines if any(words[0] == "doctor" for words in parts(line))]
    return told + [f"{line}: {why}" for line in own if (why := misread(line))]


def assert_typable(text: str, also: tuple[str, ...] = VENDORS) -> None:
    """Of lines that differ in numbers, one is read."""
    wrong = [why for line in typed_in(text) if (why := _why_not(_DIGITS.sub("7", line), also))]
    assert not wrong, "\n".join(wrong)


@cache
def _why_not(line: str, also: tuple[str, ...]) -> str:
    try:
        return "; ".join(refused([line], also))
    except ValueError as error:  # the shell would wait for more
        return f"{line}: {error}"


def only_reads(line: str) -> bool:
    kept = ">" in line.replace("2>/dev/null", "")
    return not kept and all(words[0] in READS and not CHANGES & {*words} for words in parts(line))


def misread(line: str) -> str:
    """Why `doctor` does not take a command line of its own; empty if it does."""
    words = next(words for words in parts(line) if words[0] == "doctor")
    command: Any = typer.main.get_command(app)
    context, args = typer.Context(command, info_name="doctor"), words[1:]
    try:
        while hasattr(command, "commands"):
            name, command, args = command.resolve_command(context, args)
        command.make_context(name, [*args], parent=context)
    except Exception as error:  # the classes of its errors are not public
        return str(error) or type(error).__name__
    ids = {check.id for check in find_checks().checks}
    asked = [glob for at, word in enumerate(args) if word == "--only" for glob in args[at + 1].split(",")]
    return "".join(f"no check is {glob} " for glob in asked if not any(fnmatch(own, glob) for own in ids))


def seen_again(found: dict[str, Any]) -> list[str]:
    """The commands of a finding that only read what its evidence shows."""
    remedy = found["remedy"] or {"id": "", "commands": ()}
    shown = [each["source"].partition(": ")[2] or each["source"] for each in found["evidence"]]
    if {remedy["id"], found.get("check")} & LOOKS_AGAIN.keys():
        return []
    return [
        line
        for line in remedy["commands"]
        if (read := [words for words in parts(line) if words[0] not in FILTERS or words[-1].startswith("/")])
        and only_reads(line)
        and all(any(_same(words, source) for source in shown) for words in read)
    ]


def _same(words: Sequence[str], source: str) -> bool:
    in_file = words[0] in ("cat", "grep", "head", "tail") and words[-1] == source
    return in_file or _plain(words) == _plain(source.split()) or source == words[0] == "dmesg"


def _plain(words: Sequence[str]) -> Words:
    """Without the number of a device, and without options that only change the form."""
    numbered = [at for at, word in enumerate(words) if word == "-i"]
    kept = [word for at, word in enumerate(words) if not {at, at - 1} & {*numbered}]
    return [word for word in kept if word not in ("-br", "-o", "-T", "show")]
