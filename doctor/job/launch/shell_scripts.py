"""Scripts and shells inside a script: what it sources, what it runs, and what wrappers start."""

import re
from collections.abc import Callable, Mapping
from itertools import dropwhile

from doctor.job.launch.expand import FOLDER, IN_BATCH, Value, moved, unknown
from doctor.job.launch.indirect_options import Read
from doctor.job.launch.shell_blocks import Blocks, blocks
from doctor.job.launch.shell_files import ShellWithFiles, ends_of_lines
from doctor.job.launch.shell_tokens import ShellError, tokens
from doctor.job.launch.variables import is_kept
from doctor.job.launch.wrappers import ITSELF, SCRIPTS, SHELLS, InnerCommand

_OF_A_MACHINE = re.compile(
    r"(?:^|/)(?:\.?bashrc|\.?(?:bash_)?profile|activate|conda\.sh|setvars\.sh|lmod\.sh|modules\.sh)$"
    r"|/profile\.d/|/init/\w+$|ascend.{0,100}/set_?env\.(?:sh|bash)$",
    re.IGNORECASE,
)
"""Files that many scripts source to find their programs."""


def parsed(text: str) -> Blocks | None:
    try:
        return blocks(tokens(text))
    except ShellError:
        return None


class ShellWithScripts(ShellWithFiles):
    """A shell that reads other scripts in place. `unread` and `started` are those that are not here."""

    def __init__(self, found: Blocks, folder: str, read: Read) -> None:
        super().__init__(found, folder, read)
        self.unread: list[tuple[str, str]] = []
        self.started: list[tuple[str, str]] = []
        self.open: list[Value] = []
        self.texts: dict[str, str] = {}
        self.prefix: tuple[str, ...] = ()
        self.handed: Mapping[str, Value] = {}
        self.alike: tuple[str, ...] = ()  # what has its own value again where a shell inside runs

    def source(self, said: str, line: int) -> None:
        """Read the commands of a sourced file in place. A machine's own settings say nothing about a job."""
        found, path = self._file(said)
        if found is None:
            if not _OF_A_MACHINE.search(said):
                self.unread.append(("sources", said))
                self.others.add("*")
                self.doubt_figures()
            return
        before = self.values["BASH_SOURCE"]
        self.values["BASH_SOURCE"] = path
        self.inside(found, line)
        self.values["BASH_SOURCE"] = before

    def doubt_figures(self) -> None:
        """The commands that are read here may change any variable. Places are kept: scripts are found by
        them."""
        for name, value in self.values.items():
            if isinstance(value, str) and "/" not in value and re.fullmatch(r"[A-Z]\w*", name):
                self.values[name] = None

    def _file(self, said: str) -> tuple[Blocks | None, str | None]:
        """Another script and its path; None if it is not here, is being read already, or is not a script."""
        path = None if unknown(said) else moved(self.values.get(FOLDER), said)
        text = None if path is None or path in self.open else self.text_here(path)
        if text and self.decided(""):
            self.noticed |= ends_of_lines(said, text, r"(?:export )?\w+=[^#\n]*")
        return (None if text is None else parsed(text)), path

    def text_here(self, said: str) -> str | None:
        path = moved(self.values.get(FOLDER), said)
        text = None if path is None else self.contents(path)
        self.texts |= {said: text} if text else {}
        return text

    def inside(self, found: Blocks, line: int) -> None:
        """Read other commands; what they start counts as started by this line."""
        outside, self.outside = self.outside, self.outside or line
        self.open.append(self.values["BASH_SOURCE"])
        self.read_other(found, 0, len(found.commands))
        self.open.pop()
        self.outside = outside

    def _child(self, found: Blocks, line: int, wrapped: InnerCommand = ITSELF) -> bool:
        """Whether another shell that reads these commands starts ranks. What it sets stays in it."""
        before, lines = (self.values, self.exported, self.functions, self.prefix), self.here
        known, exported = dict(self.values), set(self.exported)
        if not wrapped.passes:
            known, exported = {name: known.get(name) for name in ("0", "BASH_SOURCE", *self.alike)}, set()
        for name, text in wrapped.sets.items():
            known[name] = before[0].get(name) if text is None else None if unknown(text) else text
            exported |= {name} if is_kept(name) else set()
        if wrapped.outer:
            known = {name: value for name, value in known.items() if value is not IN_BATCH.get(name, "")}
            self.handed = dict(known)
        self.values, self.exported, self.functions = known, exported, {}
        self.prefix = (*self.prefix, *wrapped.outer)
        if wrapped.given:
            self.arguments(wrapped.given)
        self.inside(found, line)
        made = self.files_in(self.values) if wrapped.passes else {}
        self.values, self.exported, self.functions, self.prefix = before
        self.values |= made
        self.leaving = ""
        if wrapped.detached:
            self.put_in_background(*lines)
        return len(self.lines) > lines[0]

    def starts_inside(self, wrapped: InnerCommand, line: int) -> bool:
        """Whether what a wrapper starts can be read and starts ranks."""
        found = parsed(wrapped.text)
        return found is not None and self._child(found, line, wrapped)

    def runs_script(self, line: tuple[str, ...], number: int) -> bool:
        """Whether the script of `bash go.sh` or `./go.sh` is here and starts ranks."""
        line = tuple(dropwhile({"nohup", "exec", "time"}.__contains__, line)) or line
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

    def given(self, prefix: Mapping[str, Value], perform: Callable[[], bool]) -> bool:
        """Whether `perform` starts ranks. `prefix`: the variables before the command, set for it alone."""
        before, exported = dict(self.values), set(self.exported)
        self.values.update(prefix)
        self.exported |= {name for name in prefix if is_kept(name)}
        started = perform()
        self.values, self.exported = before | self.files_in(self.values), exported
        return started
