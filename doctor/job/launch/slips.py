"""Slips of a script: variables that its ranks do not get, because of how they are written."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from doctor.job.launch.launcher import LaunchCommand

WRITTEN = "/."
"""Ends a path that ranks write to: it may be made."""
_COMMENT = re.compile(r"(?m)(?:^|\s)#.*")
_SET = re.compile(r"(?m)(?:^|[\s;&(])([A-Za-z_]\w{2,80})\+?=")
_USED = re.compile(r"\$(?:([A-Za-z_]\w{0,80})\b|\{([A-Za-z_]\w{0,80})\})")
_MEETS = re.compile(r"(?i)addr|port|_ip$|head|master|node|rdzv|rank|world|nproc")
"""Names of what ranks meet by: hardly anybody sets them in two cases, and means two things."""
_ALIKE, _ALIKE_NEEDED = 0.8, 0.9


@dataclass(frozen=True, slots=True)
class Slip:
    """A variable of a script, or `words` that are not read as they are meant, in `line` of `file`.

    `kind`: "blank" if blanks around its = keep the shell from setting it; "kept" if it is set, never used and
    not exported; "unset" if it is used and nothing sets it, but `like` is set and never used; "option" if its
    launcher has only one that is `like` it; "program" if its launcher, of this name, is given none; "host" if
    the choice `like` sets it by host; the check has the words of others. `needed`: ranks cannot do without.
    """

    kind: str
    name: str
    line: int
    words: str = ""
    file: str = ""
    needed: bool = True
    like: str = ""

    @property
    def path(self) -> str:
        """What the hosts are asked for."""
        return (
            self.words
            if not self.name and re.fullmatch(r"(?:\$(?:HOME|PATH|PORT|WHOSE))?/\S*", self.words)
            else ""
        )


READERS: dict[Slip, Callable[[str], str]] = {}
"""Where a script chooses -> what a host of a name gets there."""


@dataclass(frozen=True, slots=True)
class ByHost:
    """`slip` says where and how the script chooses, and what holds the number of a host; `most`: for how many
    hosts reading it with each name does not take long. `told`: the answers so far, which a recording keeps.
    """

    slip: Slip
    most: int
    told: dict[str, str] = field(default_factory=dict)

    def number(self, host: str) -> str:
        """What a host of this name gets: "" if the script does not set it, "?" if that is not known, and "-"
        if nothing starts there.
        """
        if host not in self.told and self.slip in READERS:
            self.told[host] = READERS[self.slip](host)
        return self.told.get(host, "?")

    def numbers(self, hosts: Sequence[str], identities: Mapping[str, str]) -> dict[str, str]:
        """Host -> its number. Of the ways to call the hosts, that one counts which gives the most numbers."""
        if len(hosts) > self.most:
            return {}
        own = {host: identities.get(host, host) for host in hosts}
        short = {host: name.partition(".")[0] for host, name in own.items()}
        known = []
        for names in (own, short, {host: host for host in own}):
            known.append({host: self.number(name) for host, name in names.items()})
            if len({*filter(str.isdecimal, known[-1].values())}) == len(own):
                break
        return max(known, key=lambda numbers: len({*filter(str.isdecimal, numbers.values())}))


class SlipsOf:
    """Finds the slips in a script and in the files that it reads."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.whole = "\n".join(texts.values())
        self._text = _COMMENT.sub(" ", self.whole)
        self._lines = [
            (number, line, file.rpartition("/")[2])
            for file, text in texts.items()
            for number, line in enumerate(text.splitlines(), 1)
        ]
        self._set = dict.fromkeys(_SET.findall(self._text))

    def shown(self, slip: Slip) -> Slip:
        """A slip with the words of its line, if it has none."""
        if slip.kind == "own":
            return Slip("own", slip.name, *self._place(rf"\b{slip.name}=.*(?i:hostname)"))
        return slip if slip.words else replace(slip, words=self._place("", slip.line - 1)[1])

    def not_exported(self, names: Iterable[tuple[str, bool]]) -> Iterator[Slip]:
        """Those that are set and mentioned nowhere else. `names`: each, and whether ranks need it."""
        for name, needed in names:
            if self._is_only_set(name):
                yield Slip("kept", name, *self._place(rf"\b{name}="), needed)

    def not_set(self, words: Iterable[str], needed: Iterable[str]) -> Iterator[Slip]:
        """Those that a command uses or needs, and that are set under another name, or by host."""
        used = dict.fromkeys(a or b for word in words for a, b in _USED.findall(word))
        for name in dict.fromkeys((*used, *needed)):
            place = self._place(rf"(?:\$\{{?|-x ){name}\b")
            unset = re.search(rf"(?<![$\w{{-])(?<!-x ){name}\b", self._text) is None
            if unset and (like := self._like(name, _ALIKE if place[0] else _ALIKE_NEEDED)):
                yield Slip("unset", name, *(place if place[0] else self._place(rf"\b{like}=")), like=like)

    def refused(self, commands: Iterable[LaunchCommand]) -> Iterator[Slip]:
        """The options about ranks that a launcher does not have, and no program: it stops with its usage."""
        for command in commands:
            known = command.launcher
            if known is None or known.outer or not known.options.abbreviated:
                continue
            called = rf"\b{known.name}\b"
            alone = not (command.program or command.partly or command.strange)
            if command.options and alone and not command.inside and self._is_plain(called):
                yield Slip("program", known.name, *self._place(called))
            for name, like in command.strange:
                place = self._place("--" + re.escape(name).replace("_", "[_-]"))
                yield from [Slip("option", f"--{name}", *place, like=f"--{like}")] if like else []

    def _is_plain(self, pattern: str) -> bool:
        """Whether the shell fills in nothing there: a word that became empty leaves no trace."""
        written = re.search(rf"(?m)^.*{pattern}(?:.*\\\n)*.*", self.whole)
        return written is not None and not {"$", "`"} & {*written[0]}

    def _like(self, name: str, alike: float) -> str:
        spelled = str.lower if _MEETS.search(name) else str
        near = {spelled(each): each for each in self._set}
        close = get_close_matches(spelled(name), near, max(len(near), 1), alike)
        close += [each for each in near if sorted(each) == sorted(spelled(name))]
        return next(filter(self._is_only_set, map(near.__getitem__, close)), "")

    def _is_only_set(self, name: str) -> bool:
        return name in self._set and re.search(rf"(?<!-x )\b{name}\b(?!\+?=)", self._text) is None

    def _place(self, pattern: str, first: int = 0) -> tuple[int, str, str]:
        found = (each for each in self._lines[first:] if re.search(pattern, each[1]))
        line, words, file = next(found, (0, "", ""))
        return line, words.strip()[:160], file
