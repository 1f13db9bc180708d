"""What may come before a launcher: containers, other hosts, shells, and programs that pass a command on.

One table. Nothing in it is run: a wrapper is removed, and the command that it starts is read as if there were
no wrapper.
"""

import functools
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from doctor.job.launch.launchers import COMMANDS, MODULES
from doctor.job.launch.options import NOT_KNOWN, PYTHON, is_open, read_options
from doctor.text.hostprogram import fields_in, sections

MOST_WORDS = 20
"""The most words of a wrapper that are searched for a command if not all of them are known."""
_PRINTS = frozenset({"echo", "printf", "trap"})
_VARIABLE = re.compile(r"([A-Za-z_]\w{0,99})=(.*)", re.DOTALL)
_FILLED = re.compile(r"%(hosts?|rank|[hnu])(?![\w%])")
_IN_VARIABLE = r"\$\{?PY(?:THON)?\d?(?:_?(?:BIN|CMD|EXE|EXEC|EXECUTABLE))?(?::?[-=][^}]*)?\}?"
"""A variable that holds a Python, by its name."""
_EXPORTS_ONLY = re.compile(r"(?i)\s--export[= ]((?!\S*\b(?:ALL|NIL)\b)\S+)")
"""What makes srun hand over nothing but the variables that it names."""
_PRESERVES = re.compile(r"(?:^|\s)(?:-[A-Za-z]*E|--preserve-env)")
_LOOKED_UP = re.compile(r"[$`]\(?(?:which|command -v) ([\w.-]{1,60})[)`]?")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that starts what follows its own options.

    `after` are the words one of which must follow its name. `flags` are its options without a value, and
    `letters` the short ones; every other option has a value. `sets` are those whose value is a variable of
    the command. Before the command are `places` more words: an image, a host. `joins`: the words become one
    text, which a shell reads; `text` is the option whose value is such a text instead. `passes`: the command
    has the variables of the caller, unless it is given one of `cleans`. With one of the letters in `detaches`
    the caller goes on. `fills`: it puts the name or the number of each host in the place of %h, %n and such.
    """

    after: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    letters: str = ""
    sets: frozenset[str] = frozenset()
    places: int = 0
    joins: bool = False
    text: str = ""
    passes: bool = False
    cleans: frozenset[str] = frozenset()
    detaches: str = ""
    fills: bool = False


@dataclass(frozen=True, slots=True)
class InnerCommand:
    """What a wrapper starts, as the text of a shell. `outer` are the words of launchers around it; `given`
    its $1, $2, ….
    """

    text: str
    outer: tuple[str, ...] = ()
    sets: Mapping[str, str | None] = field(default_factory=dict)
    passes: bool = True
    detached: bool = False
    given: tuple[str, ...] = ()


ITSELF = InnerCommand("")
"""Stands for a command without a wrapper."""
_TOLD = sections(__file__, "wrappers.txt")
PREFIXES = frozenset(_TOLD.pop("prefixes")["all"].split())
"""Wrappers whose process becomes the command, or stays above it on the same host."""
SCRIPTS = (".sh", ".bash")
SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
WRAPPERS: Mapping[str, Wrapper] = {
    name: Wrapper(**fields_in(Wrapper, told)) for names, told in _TOLD.items() for name in names.split()
}
"""Name -> wrapper. Those in PREFIXES start the first launcher or Python after them; no option is needed."""


@functools.lru_cache(maxsize=4096)
def program_name(word: str) -> str:
    """The name of the file that a word refers to; also for `$(which torchrun)`."""
    looked_up = _LOOKED_UP.fullmatch(word)
    return looked_up[1] if looked_up else word.rpartition("/")[2]


@functools.lru_cache(maxsize=4096)
def is_python(name: str) -> bool:
    return re.fullmatch(f"{PYTHON}|{_IN_VARIABLE}", name) is not None


def is_known(word: str) -> bool:
    """Whether it is known where the program of this name starts others."""
    name = program_name(word)
    return name in PREFIXES or name in WRAPPERS or name in COMMANDS or is_python(name)


def unwrapped(words: Sequence[str], deepest: int = 4) -> InnerCommand | None:
    """What the outermost wrapper starts; None if there is no wrapper or nothing that it starts."""
    name = program_name(words[0]) if words and deepest else ""
    if name in PREFIXES:
        return _behind_prefix(words, deepest)
    if name in COMMANDS and COMMANDS[name].outer:
        rest = read_options(words[1:], COMMANDS[name].options).rest
        inner, before = unwrapped(rest, deepest - 1) or _script_in(rest), words[: len(words) - len(rest)]
        lost = (NOT_KNOWN,) if rest and is_open(rest[0]) and not _module_behind(rest) else ()
        if inner and (only := _EXPORTS_ONLY.search(" ".join(before))):
            given = (each.partition("=") for each in only[1].split(","))
            sets = {name: value if equals else None for name, equals, value in given}
            inner = replace(inner, passes=False, sets={**sets, **inner.sets})
        return inner and replace(inner, outer=(*before, *lost, *inner.outer))
    if name in WRAPPERS:
        return _taken_off(WRAPPERS[name], words[1:])
    known = _behind_unknown(words) if words and is_open(words[0]) else _shell_in(words)
    return InnerCommand(shlex.join(known)) if known else None


def _script_in(words: Sequence[str]) -> InnerCommand | None:
    """A script of a shell, which may be here."""
    is_script = words and (program_name(words[0]) in SHELLS or words[0].endswith(SCRIPTS))
    return InnerCommand(shlex.join(words)) if is_script else None


def _behind_prefix(words: Sequence[str], deepest: int) -> InnerCommand | None:
    sets: dict[str, str | None] = {}
    for at, word in enumerate(words[1:MOST_WORDS], start=1):
        if variable := _VARIABLE.fullmatch(word):
            sets[variable[1]] = variable[2]
        elif (name := program_name(word)) in WRAPPERS or (name in COMMANDS and COMMANDS[name].outer):
            inner = unwrapped(words[at:], deepest - 1)
            drops = words[0] == "sudo" and not _PRESERVES.search(" ".join(words[1:at]))
            given = {**(sets if inner and inner.passes else {}), **(inner.sets if inner else {})}
            return inner and replace(inner, sets=given, passes=inner.passes and not drops)
        elif name in COMMANDS or is_python(name):
            return None
        elif is_open(word) and (known := _behind_unknown(words[at:])):
            return InnerCommand(shlex.join(known), sets=sets)
    return None


def _taken_off(wrapper: Wrapper, words: Sequence[str]) -> InnerCommand | None:
    if wrapper.after:
        at = next((n for n, word in enumerate(words[:MOST_WORDS]) if word in wrapper.after), None)
        if at is None:
            return None
        words = words[at + 1 :]
    sets: dict[str, str | None] = {}
    text, detached, rest = None, False, list(words)
    places, passes = wrapper.places, wrapper.passes
    while rest and (places or rest[0].startswith("-")):
        word = rest.pop(0)
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            places -= 1
            continue
        name, value = _option(wrapper, word, rest)
        short = not word.startswith("--")
        passes = passes and wrapper.cleans.isdisjoint((name, *(name if short else ())))
        detached |= (short and bool(set(name) & set(wrapper.detaches))) or name == "detach"
        if wrapper.text and value is not None and name.endswith(wrapper.text):
            text = value
        elif value is not None and name in wrapper.sets:
            variable, equals, said = value.partition("=")
            sets[variable] = said if equals else None
    if wrapper.text and (text is not None or not wrapper.places):
        return None if text is None else InnerCommand(text, (), sets, passes, detached, tuple(rest[1:]))
    if rest[:1] == ["--"]:
        rest.pop(0)
    if any(map(is_open, words[: len(words) - len(rest)])) and not _is_program(rest[:1], wrapper.joins):
        rest = _from_known(words, wrapper.joins)
    if not rest:
        return None
    joins = wrapper.joins or " " in rest[0]  # no program is called that
    if wrapper.fills:
        rest = [_FILLED.sub(r"${OF_HOST_\1}", word) for word in rest]
    return InnerCommand(" ".join(rest) if joins else shlex.join(rest), (), sets, passes, detached)


def _option(wrapper: Wrapper, word: str, rest: list[str]) -> tuple[str, str | None]:
    """The name of an option, and its value if it has one, which is taken from `rest`."""
    name, equals, value = word.lstrip("-").partition("=")
    if word.startswith("--"):
        if equals:
            return name, value
        return name, None if name in wrapper.flags or not rest or rest[0].startswith("-") else rest.pop(0)
    if set(name) <= set(wrapper.letters) and name[-1:] != wrapper.text:
        return name, None
    if set(name[:-1]) <= set(wrapper.letters) and not equals:
        return name, rest.pop(0) if rest else None
    return name[:1], word[2:]


def _from_known(words: Sequence[str], joins: bool = False) -> list[str]:
    """The words from the first that is certainly a program, because those before it are not all known."""
    at = (at for at in range(min(len(words), 2 * MOST_WORDS)) if _is_program(words[at : at + 1], joins))
    return list(words[next(at, len(words)) :])


def _is_program(words: Sequence[str], joins: bool) -> bool:
    """Whether a word is a known program, or a text for a shell in a place that takes one."""
    name = program_name("".join(words))
    return name in COMMANDS or name in WRAPPERS or is_python(name) or (joins and " " in "".join(words))


def _behind_unknown(words: Sequence[str]) -> list[str]:
    """What certainly starts ranks, whatever the first word may be."""
    return _module_behind(words) or _from_known(words[1:])


def _module_behind(words: Sequence[str]) -> list[str]:
    """`$PYTHON -u -m torch.distributed.run`: the first word is a Python."""
    for at, word in enumerate(words[1:4], start=1):
        if word == "-m" and "".join(words[at + 1 : at + 2]) in MODULES:
            return ["python", *words[at:]]
    return []


def _shell_in(words: Sequence[str]) -> list[str]:
    """`bash -c TEXT` behind a program that is not known, unless it only prints it."""
    for at, word in enumerate(words[:-2]):
        if program_name(words[0]) in _PRINTS:
            break
        if program_name(word) in SHELLS and re.fullmatch(r"-\w*c", words[at + 1]):
            return list(words[at:]) if at else []
    return []
