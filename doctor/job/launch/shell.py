"""A shell script -> the commands that may start ranks, each with the variables that it would see.

Nothing is run. A variable is known if the script itself gives it a plain value. A value that depends on the
machine, on arguments or on a branch that may not be taken is unknown, and is left out rather than guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from doctor.job.launch.command import bare_program, read_command
from doctor.job.launch.expand import (
    FOLDER,
    START,
    Value,
    fields,
    moved,
    unknown,
)
from doctor.job.launch.given_elsewhere import Directives, Read, completed, read_directives
from doctor.job.launch.launcher import LaunchCommand
from doctor.job.launch.launchers import MASTERS, PORTS, RANK_NAMES
from doctor.job.launch.launchers.plain import PLAIN
from doctor.job.launch.shell_blocks import Blocks, blocks
from doctor.job.launch.shell_flow import DEEPEST_CALL, ShellCommand, ShellFlow
from doctor.job.launch.shell_state import is_arithmetic
from doctor.job.launch.shell_tokens import ShellError, Word, tokens
from doctor.job.launch.variables import is_kept
from doctor.job.launch.wrappers import ITSELF, SCRIPTS, SHELLS, Wrapped, unwrapped

_LEAVES = {"break": "turn", "continue": "turn", "return": "call", "exit": ""}
"""Commands that leave a block, and the block that each leaves."""
_EXPORTS = frozenset({"export", "declare", "typeset", "local", "readonly"})
_OF_A_MACHINE = re.compile(
    r"(?:^|/)(?:\.?bashrc|\.?(?:bash_)?profile|activate|conda\.sh|setvars\.sh|lmod\.sh|modules\.sh)$"
    r"|/profile\.d/|/init/\w+$|ascend.{0,100}/set_?env\.(?:sh|bash)$",
    re.IGNORECASE,
)
"""Files that many scripts source to find their programs."""
_COPIES = frozenset({"cp", "ln", "mv", "install", "rsync"})
_OF_A_JOB = frozenset({*MASTERS, *PORTS, *PLAIN.kept.split("|")})
_OF_A_RANK = frozenset({*RANK_NAMES, "LOCAL_RANK", "DEVICE_ID"})


@dataclass(frozen=True, slots=True)
class ShellScript:
    """`env` holds what the script has set at its end, exported or not. `copied` are patterns for the names of
    files that it copies, `made` the folders that it creates. `unread`: what it needs that is not here."""

    lines: tuple[ShellCommand, ...]
    env: Mapping[str, str]
    copied: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()
    unread: tuple[tuple[str, str], ...] = ()


def _none(_: str) -> str | None:
    return None


def read_script(text: str, folder: str = "$PWD", read: Read = _none) -> ShellScript:
    """`folder` is where the script starts; `read` returns the files that it sources. Raises ShellError."""
    shell = _Shell(blocks(tokens(text)), folder, read, read_directives(text))
    shell.read_all()
    unread = shell.unread if shell.lines else [*shell.unread, *shell.started]
    env = {n: v for n, v in shell.values.items() if isinstance(v, str) and START not in v}
    copied, made = frozenset(shell.copied), frozenset(shell.made)
    return ShellScript(tuple(shell.lines), env, copied, made, tuple(dict.fromkeys(unread)))


def _parse_or_none(text: str) -> Blocks | None:
    try:
        return blocks(tokens(text))
    except ShellError:
        return None


class _Shell(ShellFlow):
    """A shell that knows the effect of each command."""

    def __init__(self, found: Blocks, folder: str, read: Read, directives: Directives) -> None:
        super().__init__(found, folder)
        self.values.update(directives.variables)
        self.read = read
        self.directives = directives
        self.unread: list[tuple[str, str]] = []
        self.started: list[tuple[str, str]] = []
        self.open: list[Value] = []
        self.outside = 0
        self.prefix: tuple[str, ...] = ()
        self.copied: set[str] = set()
        self.made: set[str] = set()

    def read_all(self) -> None:
        """Read the whole script. Functions without a call count only if nothing else starts ranks."""
        self.go_through(0, len(self.blocks.commands))
        if not self.lines:
            for name in [name for name in self.functions if name not in self.called]:
                self.call(name, ())

    def _source(self, said: str, line: int) -> None:
        """Read the commands of a sourced file in place. A machine's own settings say nothing about a job."""
        found, path = self._file(said)
        if found is None:
            self.unread += [] if _OF_A_MACHINE.search(said) else [("sources", said)]
            return
        before = self.values["BASH_SOURCE"]
        self.values["BASH_SOURCE"] = path
        self._inside(found, line)
        self.values["BASH_SOURCE"] = before

    def _file(self, said: str) -> tuple[Blocks | None, str | None]:
        """Another script and its path; None if it is not here, is being read already, or is not a script."""
        path = None if unknown(said) else moved(self.values.get(FOLDER), said)
        text = None if path is None or path in self.open else self._text_of(path)
        return (None if text is None else _parse_or_none(text)), path

    def _text_of(self, said: str) -> str | None:
        path = moved(self.values.get(FOLDER), said)
        return None if path is None else self.read(self.placed(path))

    def _inside(self, found: Blocks, line: int) -> None:
        """Read other commands; what they start counts as started by this line."""
        depth = self.guard("call")
        if self.depth_of_calls() > DEEPEST_CALL or not self.afford(len(found.commands)):
            del self.frames[depth - 1 :]
            return
        around, self.blocks = self.blocks, found
        outside, self.outside = self.outside, self.outside or line
        self.open.append(self.values["BASH_SOURCE"])
        self.go_through(0, len(found.commands))
        self.open.pop()
        self.blocks, self.outside = around, outside
        del self.frames[depth - 1 :]
        self.leaving = "" if self.leaving == "return" else self.leaving

    def _child(self, found: Blocks, line: int, wrapped: Wrapped = ITSELF) -> bool:
        """Whether another shell that reads these commands starts ranks. What it sets stays in it."""
        before, lines = (self.values, self.exported, self.functions, self.prefix), len(self.lines)
        known, exported = dict(self.values), set(self.exported)
        if not wrapped.passes:
            known, exported = {name: known.get(name) for name in ("0", "BASH_SOURCE")}, set()
        for name, text in wrapped.sets.items():
            known[name] = before[0].get(name) if text is None else None if unknown(text) else text
            exported |= {name} if is_kept(name) else set()
        self.values, self.exported, self.functions = known, exported, {}
        self.prefix = (*self.prefix, *wrapped.outer)
        self._inside(found, line)
        self.values, self.exported, self.functions, self.prefix = before
        self.leaving = ""
        if wrapped.detached:
            self.lines[lines:] = [replace(each, background=True) for each in self.lines[lines:]]
        return len(self.lines) > lines

    def _unwrap(self, wrapped: Wrapped, line: int) -> bool:
        """Whether what a wrapper starts can be read and starts ranks."""
        found = _parse_or_none(wrapped.text)
        return found is not None and self._child(found, line, wrapped)

    def _script(self, line: tuple[str, ...], number: int) -> bool:
        """Whether the script of `bash go.sh` or `./go.sh` is here and starts ranks."""
        words = line[1:] if line[0].rpartition("/")[2] in SHELLS else line
        words = words[next((n for n, word in enumerate(words) if not word.startswith("-")), len(words)) :]
        if not words or (words is line and not words[0].endswith(SCRIPTS)):
            return False
        found, path = self._file(words[0])
        if found is None:
            self.started.append(("runs", words[0]))
            return False
        before = self.arguments(words[1:])
        before |= {name: self.values[name] for name in ("0", "BASH_SOURCE")}
        self.values["0"] = self.values["BASH_SOURCE"] = path
        started = self._child(found, number)
        self.values.update(before)
        return started

    def perform(self, words: list[Word]) -> None:
        prefix: dict[str, Value] = {}
        at = 0
        while at < len(words):
            name, value, used = self.assignment(words, at)
            if not name:
                break
            prefix[name] = value
            at += used
        if at < len(words):
            self._command(words[at:], prefix)
        else:
            self.set(prefix)

    def _command(self, words: list[Word], prefix: Mapping[str, Value]) -> None:
        name = words[0].plain
        if name in _EXPORTS:
            self.export(words)
        elif name == "unset":
            for word in words[1:]:
                self.values.pop(word.plain or "", None)
        elif name == "read":
            self.values.update(dict.fromkeys((word.plain or "" for word in words[1:]), None))
        elif name == "set" and len(words) > 1 and words[1].plain == "--":
            given = fields(words[2:], self.values)
            self.arguments(None if any(map(unknown, given)) else given)
        elif name == "set" and len(words) > 1 and words[1].plain in ("-a", "-o"):
            self.export_all = words[1].plain == "-a" or words[-1].plain == "allexport"
        elif name == "shift":
            self._shift(words[1].plain if len(words) > 1 else "1")
        elif name in _LEAVES:
            self.leaving = name if self.decided(_LEAVES[name]) else ""
        elif name == "wait":
            self.waits += 1
        elif name == "let" or is_arithmetic(words[0]):
            self.calculate(words)
        else:
            self._run(words, prefix)

    def _shift(self, by: str | None) -> None:
        given = self.values.get("@")
        known = isinstance(given, tuple) and by is not None and by.isdecimal()
        self.arguments(given[int(by or 1) :] if known and isinstance(given, tuple) else None)

    def _run(self, words: list[Word], prefix: Mapping[str, Value]) -> None:
        line = tuple(fields(words, self.values))
        if not line:
            return
        wrapped = unwrapped(line)
        if wrapped and self._with(prefix, lambda: self._unwrap(wrapped, words[0].line)):
            return
        if line[0] in ("cd", "pushd"):
            given = [word for word in line[1:] if word not in ("-P", "-L", "--")]
            self.move(given[0] if len(given) == 1 else None)
        elif line[0] == "popd":
            self.move("-")
        elif line[0] == "mkdir":
            made = (moved(self.values.get(FOLDER), word) for word in line[1:] if not word.startswith("-"))
            self.made |= {self.placed(folder) if folder else "*" for folder in made}
        elif line[0] in _COPIES:
            for word in line[1:]:
                name = word.rpartition("/")[2]
                vague = unknown(name) or re.fullmatch(r"-\w*[raR]\w*", word)
                self.copied.add("*" if vague else name)
        elif line[0] in (".", "source") and len(line) > 1:
            self._source(line[1], words[0].line)
        elif line[0] == "eval":
            if found := _parse_or_none(" ".join(line[1:])):
                self._inside(found, words[0].line)
        elif line[0] in self.functions:
            self.set(prefix)
            self.call(line[0], line[1:])
        elif unknown(line[0]) and self.functions:
            self.call_any()
            self._launch(words[0].line, line, prefix)
        elif not self._with(prefix, lambda: self._script(line, words[0].line)):
            self._launch(words[0].line, line, prefix)

    def _with(self, prefix: Mapping[str, Value], perform: Callable[[], bool]) -> bool:
        """Whether this starts ranks, with the variables before the command, which only this command has."""
        before, exported = dict(self.values), set(self.exported)
        self.values.update(prefix)
        self.exported |= {name for name in prefix if is_kept(name)}
        started = perform()
        self.values, self.exported = before, exported
        return started

    def _launch(self, number: int, line: tuple[str, ...], prefix: Mapping[str, Value]) -> None:
        """Keep the command if it may start ranks."""
        if (self.prefix and read_command(line) is None) or (line[0] == "command" and "-v" in line[1:2]):
            return
        line, missing = completed((*self.prefix, *line), self.directives, self._text_of)
        self.unread += [("takes options from", missing.replace(START, self.folder))] if missing else []
        line = tuple(word.replace(START, "$PWD") for word in line)
        command = read_command(line)
        loop = any(frame.kind == "loop" for frame in self.frames)
        bare = command is None
        if command is None:
            program = bare_program(line)
            ranks = (loop or self.turns) and _OF_A_RANK & (self.exported | prefix.keys())
            if not program or not (ranks or _OF_A_JOB & prefix.keys()):
                return
            command = LaunchCommand(None, {}, program, shown=(program,))
        seen = {name: self.values[name] for name in sorted(self.exported) if name in self.values}
        given = {name: None if "$" in text else text for name, text in command.sets.items()}
        seen.update({name: value for name, value in (*prefix.items(), *given.items()) if is_kept(name)})
        folder = self.values.get(FOLDER)
        self.lines.append(
            ShellCommand(
                self.outside or number,
                line,
                command,
                dict(self.known(seen)),
                frozenset(seen),
                loop,
                turn=", ".join(self.turns),
                folder=self.placed(folder) if isinstance(folder, str) else None,
                wave=self.waits,
                branches=tuple((f.number, f.branch) for f in self.frames if f.kind in ("if", "case", "list")),
                bare=bare,
            )
        )
