"""The variables of a shell while a script is read: their values, exports, and what blocks change."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from doctor.job.launch import expand
from doctor.job.launch.arithmetic import evaluate
from doctor.job.launch.shell_tokens import ShellError, Word
from doctor.job.launch.slips import Slip
from doctor.job.launch.table_reference import VARIABLES as TABLES
from doctor.job.launch.variables import is_kept

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,199})(\+?=)")
_DEEPEST = 100
_DOLLAR = re.compile(r"(?:export )?\$\{?(\w+)\}?=")
_IN_WORD, _SWALLOWED = re.compile("[A-Za-z]+"), re.compile(r"\n\s*(?:export )?([A-Z_]+)=")
_LITERAL = re.compile(
    r"(?:export )?(TF_CONFIG(?=='[^']*\$[\w{])|[A-Za-z_]\w{0,199}(?=='\$(?!ORIGIN)\{?\w+\}?'(?: |$)))"
)
_BLANK = re.compile(r"(?:export )?([A-Za-z_]\w{0,199})(?: =|= [\d.:]+(?: |$))")


@dataclass(slots=True)
class _Frame:
    """A block that is being read, with the values from before it.

    `skip`: it certainly does not run. `taken`: whether one of its branches has run, or None if that is
    undecided. `mark`: the `&&` or `||` before the list. `subject`: what a `case` compares with its patterns,
    if it is known. `stated`: what holds in this branch.
    """

    kind: str
    values: dict[str, expand.Value]
    number: int = 0
    branch: int = 0
    changed: set[str] = field(default_factory=set)
    skip: bool = False
    taken: bool | None = None
    mark: str = ""
    subject: str | None = None
    stated: tuple[tuple[str, str], ...] = ()

    @property
    def decided(self) -> bool:
        return self.taken is not None


class ShellState:
    """The state of a shell; `folder` is where the script is started."""

    def __init__(self, folder: str) -> None:
        own = f"{expand.START}/script"
        self.folder = folder
        self.values: dict[str, expand.Value] = {expand.FOLDER: expand.START, "0": own, "BASH_SOURCE": own}
        self.exported: set[str] = set()
        self.export_all = False
        self.numbers: set[str] = set()  # what `declare -i` names
        self.frames: list[_Frame] = []
        self.noticed: dict[Slip, None] = {}
        self.entered = 0
        self.outside = 0

    def guard(self, kind: str = "turn") -> int:
        """Begin a region that cannot close the blocks around it; return the number of open blocks."""
        self.frames.append(_Frame(kind, {}))
        return len(self.frames)

    def skipping(self) -> bool:
        return any(frame.skip for frame in self.frames)

    def decided(self, until: str) -> bool:
        """Whether this certainly runs, within the innermost block of that kind; "" is the script."""
        for frame in reversed(self.frames):
            if frame.kind == until:
                return True
            if frame.kind == "call" and until == "turn":
                return False
            if frame.kind not in ("call", "turn") and not frame.decided:
                return False
        return not until

    def enter(self, kind: str, taken: bool | None = None) -> None:
        """Open a block. `taken`: whether it runs, or None if undecided."""
        if len(self.frames) >= _DEEPEST:
            raise ShellError(1, "its blocks are nested too deeply for a launch script")
        self.entered += 1
        frame = _Frame(kind, dict(self.values), self.entered, taken=taken)
        frame.skip = taken is False
        self.frames.append(frame)

    def other_branch(self, kind: str, holds: bool | None = None) -> None:
        """Begin the next branch. `holds`: whether it would run if no branch before it did."""
        if self.frames and self.frames[-1].kind == kind:
            frame = self.frames[-1]
            if frame.taken or (frame.decided and holds is not None):
                frame.skip = bool(frame.taken or not holds)
                frame.taken = bool(frame.taken or holds)
                return
            frame.skip, frame.taken = False, None
            frame.changed |= self._changed(frame)
            frame.branch += 1
            self.values = dict(frame.values)

    def close(self, kind: str) -> None:
        """Close a block. What a branch that may not run has set becomes unknown; loops count as run."""
        if not self.frames or self.frames[-1].kind != kind:
            return
        frame = self.frames.pop()
        if kind == "(":
            self.values = frame.values | self.files_in(self.values)
        elif kind != "loop" and not frame.decided:
            for name in frame.changed | self._changed(frame):
                self.values[name] = None

    @staticmethod
    def files_in(values: expand.Values) -> dict[str, expand.Value]:
        """What a shell inside leaves behind of its values: those of files."""
        return {name: value for name, value in values.items() if name[0] == expand.FILE}

    def _changed(self, frame: _Frame) -> set[str]:
        names = self.values.keys() | frame.values.keys()
        missing = object()
        return {n for n in names if self.values.get(n, missing) != frame.values.get(n, missing)}

    def assignment(self, words: Sequence[Word], at: int) -> tuple[str, expand.Value, int]:
        """The name, the value, and the number of words used; no name if there is no assignment at `at`."""
        first = words[at].parts[:1]
        text = first[0].text if first and first[0].kind == "text" and not first[0].quoted else ""
        match = _ASSIGNMENT.match(text)
        if item := re.match(r"([A-Za-z_]\w{0,199})\[[^]]{0,100}\]\+?=", words[at].raw):
            return item[1], None, 1  # the others of the list are not known any more
        if not match:
            return "", None, 0
        name, append = match[1], match[2] == "+="
        known = self.values.get(name, "") if append else None
        if text == f"{match[0]}(":
            end = next((i for i in range(at, len(words)) if words[i].plain == ")list"), len(words))
            added = expand.fields(words[at + 1 : end], self.values)
            before = known.shown if isinstance(known, expand.Partly) else known
            old = before if isinstance(before, tuple) else (before,) if before else ()
            made = None if old else expand.table(added)
            return name, made or (*old, *added)[: expand.MOST_WORDS], end + 1 - at
        value = expand.one((replace(first[0], text=text[match.end() :]), *words[at].parts[1:]), self.values)
        if append and name in self.numbers:
            number = evaluate(f"{known}+{value}", dict(self.values))
            return name, None if number is None else str(number), 1
        if append:
            return name, _appended(known, value), 1
        if isinstance(value, expand.Partly) and name in TABLES:
            return name, value.shown, 1  # so that a message can quote it as written
        return name, value, 1

    def set(self, values: Mapping[str, expand.Value]) -> None:
        self.values.update(values)
        if self.export_all:
            self.exported |= {name for name in values if is_kept(name)}

    def arguments(self, given: Sequence[str] | None) -> dict[str, expand.Value]:
        """Set `$1` and so on (None: unknown), and return their previous values."""
        places = [str(number) for number in range(1, 10)]
        before = {place: self.values.get(place) for place in (*places, "@")}
        self.values["@"] = None if given is None else tuple(given)
        for number, place in enumerate(places):
            text = "$" if given is None else given[number] if number < len(given) else ""
            self.values[place] = None if expand.unknown(text) else text
        return before

    def notice_blank(self, words: Sequence[Word]) -> None:
        """Keep a slip if a variable of the job has a blank at its =, a $, or a quote that is not meant."""
        written = " ".join(word.raw for word in words[:4])
        found = [("blank", _BLANK.match(written)), ("dollar", _DOLLAR.match(written))]
        parts = (part for word in words[:2] for part in (*word.parts, None))
        marked = (" " if part is None else f"'{part.raw}'" if part.quoted else part.raw for part in parts)
        found.append(("literal", _LITERAL.match("".join(marked))))
        begun = (word.raw for word in words if word.parts and _IN_WORD.fullmatch(word.parts[0].raw))
        found += [("quote", match) for raw in begun for match in _SWALLOWED.finditer(raw)]
        for kind, match in found:
            if match and (is_kept(match[1]) or match[1] == "TF_CONFIG") and self.decided(""):
                self.notice(kind, match[1], words[0].line, "" if kind in ("quote", "literal") else written)

    def notice(self, kind: str, name: str, line: int, words: str = "") -> None:
        """Keep a slip; without words, those of its line are shown."""
        self.noticed[Slip(kind, name, self.outside or line, words)] = None

    def export(self, words: list[Word]) -> None:
        exports = words[0].plain == "export" or any(word.plain == "-x" for word in words[1:])
        at, integers = 1, any(re.fullmatch(r"-\w*i\w*", word.plain or "") for word in words[1:])
        while at < len(words):
            name, value, used = self.assignment(words, at)
            self.numbers |= {name} if integers else set()
            if name:
                self.set({name: value})
            else:
                name, used = words[at].plain or "", 1
            if exports and is_kept(name):
                self.exported.add(name)
            at += used

    def calculate(self, words: list[Word]) -> None:
        counts = is_arithmetic(words[0])
        for text in [words[0].parts[0].raw[2:-2]] if counts else expand.fields(words[1:], self.values):
            evaluate(text, self.values)

    def move(self, to: str | None) -> None:
        before = self.values.get(expand.FOLDER)
        there = self.values.get("OLDPWD") if to == "-" else None if to is None else expand.moved(before, to)
        self.values[expand.FOLDER] = there
        self.values["OLDPWD"] = before

    def known(self, seen: Mapping[str, expand.Value]) -> Iterator[tuple[str, str]]:
        """The known values, and a mark for unknown ones whose presence counts too: that of a rank table, and
        that of a variable that names an interface, because then the library does not choose one by itself.
        """
        for name, value in seen.items():
            if name in TABLES:
                yield name, self.placed(value) if isinstance(value, str) else f"${name}"
            elif isinstance(value, str) and expand.START not in value:
                yield name, value
            elif not isinstance(value, str) and name.endswith("_SOCKET_IFNAME"):
                yield name, f"${name}"

    def placed(self, path: str) -> str:
        return path.replace(expand.START, self.folder)


def _appended(before: expand.Value, value: str | expand.Partly) -> expand.Value:
    """The value of `NAME+=…`."""
    if not isinstance(before, str | expand.Partly):
        return None
    text = "".join(each if isinstance(each, str) else each.text for each in (before, value))[: expand.LONGEST]
    return text if isinstance(before, str) and isinstance(value, str) else expand.Partly(text)


def is_arithmetic(word: Word) -> bool:
    return bool(word.parts) and word.parts[0].kind == "dynamic" and word.parts[0].raw.startswith("((")
