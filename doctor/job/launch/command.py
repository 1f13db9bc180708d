"""A command line -> which launcher it is, what that was told, and which program it starts.

Words that still hold a `$` were not known where the command was read; nothing is concluded from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from doctor.job.launch.options import (
    ACCELERATE,
    DEEPSPEED,
    MPIRUN,
    MSRUN,
    SRUN,
    TORCH_NPU_RUN,
    TORCHRUN,
    Options,
    read_options,
)
from doctor.job.launch.process_env import Way
from doctor.text.redact import redact

LAUNCHERS: Mapping[str, Options] = {
    "torchrun": TORCHRUN,
    "torch_npu_run": TORCH_NPU_RUN,
    "msrun": MSRUN,
    "mpirun": MPIRUN,
    "mpiexec": MPIRUN,
    "mpiexec.hydra": MPIRUN,
    "orterun": MPIRUN,
    "prterun": MPIRUN,
    "srun": SRUN,
    "deepspeed": DEEPSPEED,
    "accelerate": ACCELERATE,
}
MODULES: Mapping[str, Options] = {
    "torch.distributed.run": TORCHRUN,
    "torch.distributed.launch": TORCHRUN,
    "torch_npu.distributed.run": TORCH_NPU_RUN,
    "mindspore.parallel.cluster.run": MSRUN,
    "deepspeed.launcher.runner": DEEPSPEED,
    "deepspeed.launcher.launch": DEEPSPEED,
    "accelerate.commands.launch": ACCELERATE,
}
OUTER = (MPIRUN, SRUN)
"""They start whatever follows, perhaps another launcher."""
WRAPPERS = frozenset(
    {"nohup", "exec", "time", "command", "stdbuf", "nice", "ionice", "numactl", "taskset", "timeout", "sudo"}
    | {"env", "setsid", "catchsegv", "nsys", "profile", "chrt", "unbuffer"}
)
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]{0,8}")
_LOOKED_UP = re.compile(
    r"[$`]\(?(?:which|command -v) ([\w.-]{1,60})[)`]?|`(?:which|command -v) ([\w.-]{1,60})`"
)
_SWITCHES = "-[bBdEiIOPqRsSuvx]*"
"""Of Python: one letter each, any number of them in a word."""
_DEPTH = 4
_MOST_WORDS = 200
_LONGEST_WORD = 300


@dataclass(frozen=True, slots=True)
class Command:
    """`way` is None for a program that starts no ranks. `sets` are variables that it gives to its ranks.

    `program` is the script or module, without its folder. `partly`: words that were not known may hold more
    options. `shown` is what may be shown of it: nothing that stands behind the program.
    """

    way: Way | None
    options: Mapping[str, str]
    program: str
    sets: Mapping[str, str] = field(default_factory=dict)
    partly: bool = False
    shown: tuple[str, ...] = ()

    def option(self, name: str) -> str | None:
        """What was said; None where that is nothing, or not known."""
        value = self.options.get(name)
        return value if value and "$" not in value and "`" not in value else None


@lru_cache(4096)
def read_command(words: tuple[str, ...]) -> Command | None:
    """None: neither a launcher nor Python."""
    return _read(words, _DEPTH)


def kept_words(words: Sequence[str]) -> tuple[str, ...]:
    """Of a command line the launcher, what it says of the ranks, and the program: never its arguments."""
    words = tuple(word[:_LONGEST_WORD].replace("\t", " ") for word in words[:_MOST_WORDS])
    if not words:
        return ()
    command = read_command(words)
    shown = list(command.shown if command is not None else words[:1])
    for end in (0, -1):  # a process may have put all that it wants to say in its first word
        if not shown[end].startswith(("$", "`")):
            shown[end] = shown[end].partition(" ")[0]
    return tuple(redact("\t".join(shown)).split("\t"))


def _read(words: Sequence[str], depth: int) -> Command | None:
    if not words or not depth:
        return None
    name = _name(words[0])
    if name in LAUNCHERS:
        begin = 1
        if LAUNCHERS[name] is ACCELERATE:
            if len(words) < 2 or words[1] != "launch":
                return None
            begin = 2
        return _launcher(LAUNCHERS[name], words, begin, depth)
    if _PYTHON.fullmatch(name):
        return _python(words, depth)
    if name in WRAPPERS:
        return _wrapped(words, depth)
    return None


def _name(word: str) -> str:
    """Of the file that a word names; also of `$(which torchrun)`."""
    looked_up = _LOOKED_UP.fullmatch(word)
    if looked_up:
        return looked_up[1]
    return word.rpartition("/")[2]


def _wrapped(words: Sequence[str], depth: int) -> Command | None:
    """`env A=b numactl -N 0 python train.py`: what stands behind the first word that can start ranks."""
    sets: dict[str, str] = {}
    for position, word in enumerate(words[1:20], start=1):
        name = _name(word)
        if name in LAUNCHERS or _PYTHON.fullmatch(name):
            inner = _read(words[position:], depth - 1)
            if inner is None:
                return None
            return replace(inner, sets={**sets, **inner.sets}, shown=(words[0], *inner.shown))
        variable = re.fullmatch(r"([A-Za-z_]\w{0,99})=(.*)", word, re.DOTALL)
        if variable:
            sets[variable[1]] = variable[2]
    return None


def _launcher(known: Options, words: Sequence[str], begin: int, depth: int) -> Command:
    """Its options stand from `begin` on."""
    given = read_options(words[begin:], known)
    before = words[begin : len(words) - len(given.rest) + 1]
    partly = any(word.startswith(("$", "`")) for word in before)
    inner = _read(given.rest, depth - 1) if known in OUTER else None
    shown = (*words[:begin], *given.shown, *(inner.shown if inner else given.rest[:1]))
    if inner is not None and inner.way is not None:
        sets = {**given.sets, **inner.sets}
        return replace(inner, sets=sets, partly=inner.partly or partly, shown=shown)
    program = inner.program if inner else _program(given.rest)
    return Command(known.way, given.values, program, given.sets, partly, shown)


def _program(rest: Sequence[str]) -> str:
    return _name(rest[0]) if rest else ""


def _python(words: Sequence[str], depth: int) -> Command | None:
    position, shown = 1, [words[0]]
    while position < len(words):
        word = words[position]
        position += 1
        if re.match(f"{_SWITCHES}c", word):
            return Command(None, {}, "-c", shown=(*shown, "-c"))
        if module := re.fullmatch(f"{_SWITCHES}m(.*)", word, re.DOTALL):
            name = module[1] or "".join(words[position : position + 1])
            if name in MODULES and not module[1]:
                return _of_python([*shown, word, name], MODULES[name], words[position + 1 :], depth)
            return Command(None, {}, name, shown=(*shown, "-m", name))
        if re.fullmatch(f"{_SWITCHES}[XW]", word):
            position += 1
        elif re.fullmatch(_SWITCHES, word) and len(word) > 1:
            shown.append(word)
        elif not word.startswith("-") or word == "-":
            name = _name(word)
            if name in LAUNCHERS:
                inner = _read([name, *words[position:]], depth - 1)
                return inner and replace(inner, shown=(*shown, word, *inner.shown[1:]))
            return Command(None, {}, name, shown=(*shown, word))
    return Command(None, {}, "", shown=tuple(shown))


def _of_python(shown: Sequence[str], known: Options, words: Sequence[str], depth: int) -> Command:
    """A launcher that is a module."""
    return _launcher(known, (*shown, *words), len(shown), depth)
