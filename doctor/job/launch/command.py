"""A command line -> its launcher, the options of that launcher, and the program that it starts.

A word that still contains a `$` was unknown where the command was read; nothing is concluded from it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from doctor.job.launch.launcher import LaunchCommand, Launcher
from doctor.job.launch.launchers import COMMANDS, LAUNCHERS, MODULES
from doctor.job.launch.options import is_open, read_options
from doctor.job.launch.wrappers import PREFIXES, SCRIPTS, SHELLS, is_python, program_name
from doctor.text.hostprogram import sections
from doctor.text.redact import redact

_SWITCHES = "-[bBdEiIOPqRsSuvx]*"
"""Python's switches: one letter each, any number of them in one word."""
PROGRAMS = {
    kind: words.replace(" ", "|") for kind, words in sections(__file__, "programs.txt")["programs"].items()
}
_TRAINS_NOTHING, _HANDLES = re.compile(PROGRAMS["nothing"]), re.compile(PROGRAMS["handles"])
"""Programs that name others without starting them."""
_MEETS = re.compile(r"--?(?:master[-_](?:addr|port)|nproc[-_]per[-_]node|nnodes|rdzv[-_]endpoint)(?:=.*)?")
"""Options that only what starts ranks has."""
_BY_NAME = frozenset(name for each in LAUNCHERS if each.by_name for name in each.commands)
_SHOWN = 4
"""How many words of such a command are shown, from its launcher on."""
_DEPTH = 4
_MOST_WORDS = 200
_LONGEST_WORD = 300


@lru_cache(4096)
def read_command(words: tuple[str, ...]) -> LaunchCommand | None:
    """The parsed command; None if it starts neither a launcher nor Python."""
    return _read(words, _DEPTH)


def kept_words(words: Sequence[str]) -> tuple[str, ...]:
    """The launcher, its options about ranks, and the program of a command line, but never its arguments."""
    words = tuple(word[:_LONGEST_WORD].replace("\t", " ") for word in words[:_MOST_WORDS])
    if not words:
        return ()
    command = read_command(words)
    shown = list(command.shown if command is not None else words[:1])
    for end in (0, -1):  # a process may have put a whole title into its first word
        if not shown[end].startswith(("$", "`")):
            shown[end] = shown[end].partition(" ")[0]
    return tuple(redact("\t".join(shown)).split("\t"))


def runs_python(command: LaunchCommand) -> bool:
    """Whether it starts Python; a launcher of any program does so only if its command line says it."""
    if command.launcher is None or not command.launcher.outer or command.program.endswith(".py"):
        return True
    return any(is_python(program_name(word)) for word in command.shown)


def bare_program(words: Sequence[str]) -> str:
    """The program of a command that starts neither; "" if it is known to train nothing."""
    for word in words[:20]:
        name = program_name(word)
        if name in PREFIXES or word.startswith("-") or re.match(r"[A-Za-z_]\w*=|[\d,.-]+[smh]?$", word):
            continue
        return "" if _TRAINS_NOTHING.fullmatch(name) or word.startswith(("$", "`")) else name
    return ""


def only_looks(command: LaunchCommand) -> bool:
    """Whether a launcher starts no ranks: `srun hostname`, `srun bash -c 'echo …'`, `torchrun --help`."""
    known, program = command.launcher, command.program
    if known is None or not known.outer or not program:
        return known is not None and not program
    return program in SHELLS or not bare_program((program,))


def strange_start(words: Sequence[str]) -> str:
    """The beginning of a command of an unknown program, if it seems to start a launcher or Python."""
    name = program_name(words[0]) if words else ""
    if name in _BY_NAME:
        return " ".join(words[: 2 * _SHOWN])
    if not bare_program(words) or _HANDLES.fullmatch(name):
        return ""
    script = name in SHELLS or name.endswith(SCRIPTS)  # reported if it is not here
    for at, word in enumerate(words[1:_MOST_WORDS], start=1):
        code = is_python(program_name(word)) and any(
            re.search(r"\.py$|^-m$", w) for w in words[at + 1 : at + 5]
        )
        if program_name(word) in COMMANDS or code or (_MEETS.fullmatch(word) and not script):
            return " ".join(words[: at + _SHOWN])
    return ""


def _read(words: Sequence[str], depth: int) -> LaunchCommand | None:
    if not words or not depth:
        return None
    name = program_name(words[0])
    if name in COMMANDS:
        known = COMMANDS[name]
        if known.subcommand and list(words[1:2]) != [known.subcommand]:
            return None
        return _launcher(known, words, 2 if known.subcommand else 1, depth)
    if is_python(name):
        return _python(words, depth)
    return _wrapped(words, depth) if name in PREFIXES else None


def _wrapped(words: Sequence[str], depth: int) -> LaunchCommand | None:
    """`env A=b numactl -N 0 python train.py`: the command from the first word that can start ranks."""
    sets: dict[str, str] = {}
    for position, word in enumerate(words[1:20], start=1):
        name = program_name(word)
        if name in COMMANDS or is_python(name):
            inner = _read(words[position:], depth - 1)
            if inner is None:
                return None
            return replace(inner, sets={**sets, **inner.sets}, shown=(words[0], *inner.shown))
        variable = re.fullmatch(r"([A-Za-z_]\w{0,99})=(.*)", word, re.DOTALL)
        if variable:
            sets[variable[1]] = variable[2]
    return None


def _launcher(known: Launcher, words: Sequence[str], begin: int, depth: int) -> LaunchCommand:
    """The command of a launcher whose options start at `begin`."""
    given = read_options(words[begin:], known.options)
    inner = _read(given.rest, depth - 1) if known.outer else None
    shown = (*words[:begin], *given.shown, *(inner.shown if inner else given.rest[:1]))
    if inner is not None and inner.launcher is not None:
        return replace(inner, sets={**given.sets, **inner.sets}, shown=shown, inside=True)
    program = inner.program if inner else program_name("".join(given.rest[:1]))
    partly = given.partly or (inner is None and any(map(is_open, given.rest[:1])))
    return LaunchCommand(
        known, known.derived(given.values), program, given.sets, partly, shown, strange=given.strange
    )


def _python(words: Sequence[str], depth: int) -> LaunchCommand | None:
    position, shown = 1, [words[0]]
    while position < len(words):
        word = words[position]
        position += 1
        if re.match(f"{_SWITCHES}c", word):
            return LaunchCommand(None, {}, "-c", shown=(*shown, "-c"))
        if module := re.fullmatch(f"{_SWITCHES}m(.*)", word, re.DOTALL):
            name = module[1] or "".join(words[position : position + 1])
            if name in MODULES:
                begun = (*shown, "-m" if module[1] else word, name)
                rest = words[position if module[1] else position + 1 :]
                return _launcher(MODULES[name], (*begun, *rest), len(begun), depth)
            return LaunchCommand(None, {}, name, shown=(*shown, "-m", name))
        if re.fullmatch(f"{_SWITCHES}[XW]", word):
            position += 1
        elif re.fullmatch(_SWITCHES, word) and len(word) > 1:
            shown.append(word)
        elif not word.startswith("-") or word == "-":
            name = program_name(word)
            if name in COMMANDS:
                inner = _read([name, *words[position:]], depth - 1)
                return inner and replace(inner, shown=(*shown, word, *inner.shown[1:]))
            return LaunchCommand(None, {}, name, shown=(*shown, word))
    return LaunchCommand(None, {}, "", shown=tuple(shown))
