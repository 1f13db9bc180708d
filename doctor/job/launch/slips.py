"""Slips of a script: variables that its ranks do not get, because of how they are written."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from doctor.job.launch.launcher import LaunchCommand

_COMMENT = re.compile(r"(?m)(?:^|\s)#.*")
_SET = re.compile(r"(?m)(?:^|[\s;&(])([A-Za-z_]\w{2,80})\+?=")
_USED = re.compile(r"\$(?:([A-Za-z_]\w{2,80})\b|\{([A-Za-z_]\w{2,80})\})")
_ALIKE, _ALIKE_OPTION = 0.8, 0.85


@dataclass(frozen=True, slots=True)
class Slip:
    """A variable of a script, in `line` of `file`.

    `kind`: "blank" if blanks around its = keep the shell from setting it; "kept" if it is set, never used and
    not exported; "unset" if it is used and nothing sets it, but `like` is set and never used; "option" if its
    launcher has only one that is `like` it; "program" if its launcher, of this name, is given none. `needed`:
    the ranks cannot do without it.
    """

    kind: Literal["blank", "kept", "unset", "option", "program"]
    name: str
    line: int
    words: str
    needed: bool = True
    like: str = ""
    file: str = ""


class SlipsOf:
    """Finds the slips in the text of a script and of what it reads."""

    def __init__(self, text: str) -> None:
        self._text = _COMMENT.sub(" ", text)
        self._lines = text.splitlines()
        self._set = dict.fromkeys(_SET.findall(self._text))

    def not_exported(self, names: Iterable[tuple[str, bool]]) -> Iterator[Slip]:
        """Those that are set and mentioned nowhere else. `names`: each, and whether ranks need it."""
        for name, needed in names:
            if self._is_only_set(name):
                yield Slip("kept", name, *self._place(rf"\b{name}="), needed)

    def not_set(self, words: Iterable[str]) -> Iterator[Slip]:
        """Those that a command uses by another name than that under which they are set."""
        used = dict.fromkeys(a or b for word in words for a, b in _USED.findall(word))
        for name in used:
            if re.search(rf"(?<![$\w{{-]){name}\b", self._text) is None and (like := self._like(name)):
                yield Slip("unset", name, *self._place(rf"\$\{{?{name}\b"), like=like)

    def refused(self, commands: Iterable[LaunchCommand]) -> Iterator[Slip]:
        """The options about ranks that a launcher does not have, and no program: it stops with its usage."""
        for command in commands:
            known = command.launcher
            if known is None or known.outer or not known.options.abbreviated or command.inside:
                continue
            place = self._place(rf"\b{known.name}\b")
            alone = not (command.program or command.partly or command.strange)
            if command.options and alone and self._is_plain(place[0]):
                yield Slip("program", known.name, *place)
            own = {full: called for full, called in known.options.values.items() if called}
            for name in command.strange:
                like = "".join(get_close_matches(name, own, 1, _ALIKE_OPTION))
                if like and own[like] not in command.options:
                    place = self._place("--" + re.escape(name).replace("_", "[_-]"))
                    yield Slip("option", f"--{name}", *place, like=f"--{like}")

    def _is_plain(self, line: int) -> bool:
        """Whether the shell fills in nothing there: a word that became empty leaves no trace."""
        written = re.match(r"(?:.*\\\n)*.*", "\n".join(self._lines[max(line - 1, 0) :]))
        return written is not None and not {"$", "`"} & {*written[0]}

    def _like(self, name: str) -> str:
        close = get_close_matches(name, self._set, max(len(self._set), 1), _ALIKE)
        return next(filter(self._is_only_set, close), "")

    def _is_only_set(self, name: str) -> bool:
        return name in self._set and re.search(rf"\b{name}\b(?!\+?=)", self._text) is None

    def _place(self, pattern: str) -> tuple[int, str]:
        found = ((n, line.strip()[:160]) for n, line in enumerate(self._lines, 1) if re.search(pattern, line))
        return next(found, (0, ""))
