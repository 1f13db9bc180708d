"""The commands of a script in order, and which of them belong to a loop or a function."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from doctor.job.launch.shell_tokens import Separator, Word, WordPart

_LOOPS = frozenset({"for", "select", "while", "until"})
LEADING = frozenset({"then", "do", "else", "elif", "if", "!", "time"})
"""Reserved words that a command may directly follow."""
_NAME = re.compile(r"[A-Za-z_][\w:.-]{0,99}")


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """Words without redirections, and the mark that ends them. `written`: where its output goes, behind `>`,
    `2>`, …; `read`: what stands behind `<` and `<<<`.
    """

    words: tuple[Word, ...]
    end: str
    written: tuple[tuple[str, Word], ...] = ()
    read: tuple[tuple[str, Word], ...] = ()


@dataclass(frozen=True, slots=True)
class Blocks:
    """`done`: a loop's head -> its end. `functions`: where a function begins -> its name, body and end.

    All of these are positions in `commands`.
    """

    commands: tuple[SimpleCommand, ...]
    done: dict[int, int]
    functions: dict[int, tuple[str, int, int]]


def blocks(found: Sequence[Word | Separator]) -> Blocks:
    commands = tuple(_with_done(list(simple_commands(found))))
    done: dict[int, int] = {}
    ends: dict[int, int] = {}
    loops: list[int] = []
    braces: list[int] = []
    for place, command in enumerate(commands):
        for word in _leading(command.words):
            if word in _LOOPS:
                loops.append(place)
            elif word == "done" and loops:
                done[loops.pop()] = place
            elif word == "{":
                braces.append(place)
            elif word == "}" and braces:
                ends[braces.pop()] = place
    functions = {}
    for place in range(len(commands)):
        named = _function(commands, place)
        if named and named[1] in ends:
            functions[place] = (*named, ends[named[1]])
    return Blocks(commands, done, functions)


def simple_commands(found: Sequence[Word | Separator]) -> Iterator[SimpleCommand]:
    """The simple commands. The items of a list follow its name."""
    words: list[Word] = []
    written: list[tuple[str, Word]] = []
    read: list[tuple[str, Word]] = []
    skip = end = ""
    for item in found:
        if isinstance(item, Word):
            if not skip:
                words.append(item)
            elif (how := skip.removesuffix("|")) in (">", ">>", "2>", "2>>", "&>", "&>>", ">&"):
                written.append((how if words or end != ")" else "&>", item))
            elif skip in ("<", "<<<"):
                read.append((skip, item))
            skip = ""
        elif item.text.startswith("redirection"):
            skip = item.text.partition(" ")[2]
        elif item.text == ")list":
            words.append(Word((WordPart("text", ")list", ")list"),), item.line))
        else:
            skip, end = "", item.text
            yield SimpleCommand(tuple(words), item.text, tuple(written), tuple(read))
            words, written, read = [], [], []
    yield SimpleCommand(tuple(words), "\n", tuple(written), tuple(read))


def _with_done(commands: list[SimpleCommand]) -> list[SimpleCommand]:
    """The commands with `for ((…)) { … }` written as `for ((…)) do … done`."""
    opened: list[bool] = []
    head = False  # whether only the head of such a loop was read so far
    for place, command in enumerate(commands):
        words = list(command.words)
        counted = len(words) > 1 and words[0].plain == "for" and words[1].raw.startswith("((")
        named = len(words) > 1 and words[0].plain == "function"
        for at, word in enumerate(words):
            if word.plain == "{" and (
                at == 0 or words[at - 1].plain in _BEFORE_BRACE or (at == 2 and (counted or named))
            ):
                opened.append((at == 2 and counted) or (at == 0 and head))
                words[at] = _reserved("do", word) if opened[-1] else word
            elif word.plain == "}" and at == 0 and opened and opened.pop():
                words[at] = _reserved("done", word)
        head = (counted and len(words) == 2) or (head and not words)
        commands[place] = replace(command, words=tuple(words))
    return commands


_BEFORE_BRACE = LEADING | {"{"}


def _reserved(text: str, word: Word) -> Word:
    return Word((WordPart("text", text, text),), word.line)


def _leading(words: Sequence[Word]) -> Iterator[str]:
    """The reserved words at the beginning, and those that open or close a block."""
    for place, word in enumerate(words):
        plain = word.plain or ""
        if plain == "function" and place + 2 < len(words) and words[place + 2].plain == "{":
            yield "{"
            return
        if plain in _LOOPS or plain in ("done", "{", "}"):
            yield plain
        if plain not in LEADING and plain != "{":
            return


def _function(commands: Sequence[SimpleCommand], place: int) -> tuple[str, int] | None:
    """The name of the function that begins here, and the position of its `{`."""
    words = [word.plain or "" for word in commands[place].words]
    if words[:1] == ["function"] and len(words) > 1:
        words = words[1:]
        if words[1:2] == ["{"]:
            return words[0], place
        if commands[place].end == "\n":
            return words[0], _next(commands, place + 1)
    if len(words) != 1 or not _NAME.fullmatch(words[0]) or commands[place].end != "(":
        return None
    if place + 1 < len(commands) and not commands[place + 1].words and commands[place + 1].end == ")":
        return words[0], _next(commands, place + 2)
    return None


def _next(commands: Sequence[SimpleCommand], place: int) -> int:
    """The first command from here that has words."""
    while place < len(commands) and not commands[place].words and commands[place].end == "\n":
        place += 1
    return place
