"""A shell script -> the commands that may start ranks, each with the variables that it would see.

Nothing is run. A variable is known where the script itself gives it a plain value; what depends on the
machine, on arguments or on a branch that may not be taken is not known, and is left out rather than guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from doctor.job.launch.command import read_command
from doctor.job.launch.expand import LONGEST, MOST_WORDS, Value, fields, one
from doctor.job.launch.launcher import LaunchCommand
from doctor.job.launch.shell_tokens import Part, Separator, ShellError, Word, tokens
from doctor.job.launch.variables import is_kept

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,199})(\+?=)")
_TESTS = ("[", "[[", "test")
_EXPORTS = frozenset({"export", "declare", "typeset", "local", "readonly"})
_MOST_VARIABLES = 2000
_MOST_LINES = 1000
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command. `names` are all variables that it would inherit from the script, known or not."""

    line: int
    words: tuple[str, ...]
    command: LaunchCommand
    env: Mapping[str, str]
    names: frozenset[str]
    loop: bool = False
    background: bool = False


@dataclass(frozen=True, slots=True)
class ShellScript:
    """`env` is what the script has set at its end, exported or not."""

    lines: tuple[ShellCommand, ...]
    env: Mapping[str, str]


def read_script(text: str) -> ShellScript:
    """Raises ShellError."""
    shell = _Shell()
    pipeline: list[int] = []
    for words, end in _commands(tokens(text)):
        before = len(shell.lines)
        if len(shell.lines) >= _MOST_LINES or len(shell.values) > _MOST_VARIABLES:
            raise ShellError(words[0].line if words else 1, "it is too long for a launch script")
        shell.run(words, end)
        pipeline += range(before, len(shell.lines))
        if end != "|":
            if end == "&":
                for number in pipeline:
                    shell.lines[number] = replace(shell.lines[number], background=True)
            pipeline = []
    return ShellScript(tuple(shell.lines), {n: v for n, v in shell.values.items() if isinstance(v, str)})


def _commands(found: Sequence[Word | Separator]) -> Iterator[tuple[list[Word], str]]:
    """Simple commands without their redirections, and what ends each. A list is put behind its name."""
    words: list[Word] = []
    skip = False
    for item in found:
        if isinstance(item, Word):
            if not skip:
                words.append(item)
            skip = False
        elif item.text == "redirection":
            skip = True
        elif item.text == ")list":
            words.append(Word((Part("text", ")list", ")list"),), item.line))
        else:
            skip = False
            yield words, item.text
            words = []
    yield words, "\n"


@dataclass(slots=True)
class _Frame:
    """A block that is being read, with the values from before it."""

    kind: str
    values: dict[str, Value]
    changed: set[str] = field(default_factory=set)


class _Shell:
    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.exported: set[str] = set()
        self.export_all = False
        self.frames: list[_Frame] = []
        self.lines: list[ShellCommand] = []

    def run(self, words: list[Word], end: str) -> None:
        doubtful = end == "||" or (end == "&&" and bool(words) and words[0].plain in _TESTS)
        words = self._blocks(words, end)
        if end == "(" and not words:
            self._enter("(")
        prefix: dict[str, Value] = {}
        at = 0
        while at < len(words):
            name, value, used = self._assignment(words, at)
            if not name:
                break
            prefix[name] = value
            at += used
        if at < len(words):
            self._command(words[at:], prefix)
        else:
            self._set(prefix)
        if end == ")":
            self._close("(")
        if doubtful:
            self._enter("list")
        elif end not in ("&&", "||", "|"):
            self._close("list")

    def _enter(self, kind: str) -> None:
        if len(self.frames) >= _DEEPEST:
            raise ShellError(1, "its blocks are nested too deeply for a launch script")
        self.frames.append(_Frame(kind, dict(self.values)))

    def _blocks(self, words: list[Word], end: str) -> list[Word]:
        """Take reserved words off the front, and keep account of the blocks that they open and close."""
        while words:
            word = words[0].plain
            if word in ("if", "while", "until"):
                self._enter("if" if word == "if" else "loop")
            elif word in ("elif", "else"):
                self._other_branch("if")
            elif word in ("fi", "done", "esac"):
                self._close({"fi": "if", "done": "loop", "esac": "case"}[word])
            elif word in ("for", "select"):
                self._enter("loop")
                if len(words) > 1 and words[1].plain:
                    self.values[words[1].plain] = None
                return []
            elif word == "case":
                self._enter("case")
                return []
            elif word == "function":
                words = words[1:]  # its name goes as well
            elif word not in ("then", "do", "{", "}", "!", "time"):
                break
            words = words[1:]
        if end == ")" and self.frames and self.frames[-1].kind == "case":
            self._other_branch("case")
            return []  # the pattern of a branch
        return words

    def _other_branch(self, kind: str) -> None:
        if self.frames and self.frames[-1].kind == kind:
            frame = self.frames[-1]
            frame.changed |= self._changed(frame)
            self.values = dict(frame.values)

    def _close(self, kind: str) -> None:
        """What a branch that may not be taken has set is not known behind it; a loop is run at least once."""
        if not self.frames or self.frames[-1].kind != kind:
            return
        frame = self.frames.pop()
        if kind == "(":
            self.values = frame.values
        elif kind != "loop":
            for name in frame.changed | self._changed(frame):
                self.values[name] = None

    def _changed(self, frame: _Frame) -> set[str]:
        names = self.values.keys() | frame.values.keys()
        missing = object()
        return {n for n in names if self.values.get(n, missing) != frame.values.get(n, missing)}

    def _assignment(self, words: Sequence[Word], at: int) -> tuple[str, Value, int]:
        """The name, the value, and how many words that took; no name where no assignment comes first."""
        first = words[at].parts[:1]
        text = first[0].text if first and first[0].kind == "text" and not first[0].quoted else ""
        match = _ASSIGNMENT.match(text)
        if not match:
            return "", None, 0
        name, append = match[1], match[2] == "+="
        known = self.values.get(name, "") if append else None
        if text == f"{match[0]}(":
            end = next((i for i in range(at, len(words)) if words[i].plain == ")list"), len(words))
            added = fields(words[at + 1 : end], self.values)
            old = known if isinstance(known, tuple) else (known,) if known else ()
            return name, (*old, *added)[:MOST_WORDS], end + 1 - at
        value = one((replace(first[0], text=text[match.end() :]), *words[at].parts[1:]), self.values)
        if append and value is not None:
            value = (known + value)[:LONGEST] if isinstance(known, str) else None
        return name, value, 1

    def _set(self, values: Mapping[str, Value]) -> None:
        self.values.update(values)
        if self.export_all:
            self.exported |= {name for name in values if is_kept(name)}

    def _command(self, words: list[Word], prefix: Mapping[str, Value]) -> None:
        name = words[0].plain
        if name in _EXPORTS:
            self._export(words)
        elif name == "unset":
            for word in words[1:]:
                self.values.pop(word.plain or "", None)
        elif name == "read":
            self.values.update(dict.fromkeys((word.plain or "" for word in words[1:]), None))
        elif name == "set" and len(words) > 1 and words[1].plain in ("-a", "-o"):
            self.export_all = words[1].plain == "-a" or words[-1].plain == "allexport"
        else:
            self._launch(words, prefix)

    def _export(self, words: list[Word]) -> None:
        exports = words[0].plain == "export" or any(word.plain == "-x" for word in words[1:])
        at = 1
        while at < len(words):
            name, value, used = self._assignment(words, at)
            if name:
                self._set({name: value})
            else:
                name, used = words[at].plain or "", 1
            if exports and is_kept(name):
                self.exported.add(name)
            at += used

    def _launch(self, words: list[Word], prefix: Mapping[str, Value]) -> None:
        """Keep the command, if it is one that may start ranks."""
        line = tuple(fields(words, self.values))
        command = read_command(line)
        if command is None:
            return
        seen = {name: self.values[name] for name in sorted(self.exported) if name in self.values}
        given = {name: None if "$" in text else text for name, text in command.sets.items()}
        seen.update({name: value for name, value in (*prefix.items(), *given.items()) if is_kept(name)})
        env = {name: value for name, value in seen.items() if isinstance(value, str)}
        loop = any(frame.kind == "loop" for frame in self.frames)
        self.lines.append(ShellCommand(words[0].line, line, command, env, frozenset(seen), loop))
