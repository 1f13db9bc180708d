"""A command line -> which launcher it is, what that was told, and which program it starts.

Words that still hold a `$` were not known where the command was read; nothing is concluded from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from doctor.launch.options import (
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
from doctor.launch.told import Way

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
_OUTER = (MPIRUN, SRUN)
"""They start whatever follows, perhaps another launcher."""
_WRAPPERS = frozenset(
    {"nohup", "exec", "time", "command", "stdbuf", "nice", "ionice", "numactl", "taskset", "timeout", "sudo"}
    | {"env", "setsid", "catchsegv", "nsys", "profile", "chrt", "unbuffer"}
)
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]{0,8}")
_LOOKED_UP = re.compile(
    r"[$`]\(?(?:which|command -v) ([\w.-]{1,60})[)`]?|`(?:which|command -v) ([\w.-]{1,60})`"
)
_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Command:
    """`way` is None for a program that starts no ranks. `sets` are variables that it gives to its ranks.

    `program` is the script or module, without its folder. `partly`: words that were not known may hold more
    options.
    """

    way: Way | None
    options: Mapping[str, str]
    program: str
    sets: Mapping[str, str] = field(default_factory=dict)
    partly: bool = False

    def option(self, name: str) -> str | None:
        """What was said; None where that is nothing, or not known."""
        value = self.options.get(name)
        return value if value and "$" not in value and "`" not in value else None


@lru_cache(4096)
def read_command(words: tuple[str, ...]) -> Command | None:
    """None: neither a launcher nor Python."""
    return _read(words, _DEPTH)


def _read(words: Sequence[str], depth: int) -> Command | None:
    if not words or not depth:
        return None
    name = _name(words[0])
    if name in LAUNCHERS:
        rest = words[1:]
        if LAUNCHERS[name] is ACCELERATE:
            if not rest or rest[0] != "launch":
                return None
            rest = rest[1:]
        return _launcher(LAUNCHERS[name], rest, depth)
    if _PYTHON.fullmatch(name):
        return _python(words[1:], depth)
    if name in _WRAPPERS:
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
            return replace(inner, sets={**sets, **inner.sets})
        variable = re.fullmatch(r"([A-Za-z_]\w{0,99})=(.*)", word, re.DOTALL)
        if variable:
            sets[variable[1]] = variable[2]
    return None


def _launcher(known: Options, words: Sequence[str], depth: int) -> Command:
    given = read_options(words, known)
    before = words[: len(words) - len(given.rest) + 1]
    partly = any(word.startswith(("$", "`")) for word in before)
    inner = _read(given.rest, depth - 1) if known in _OUTER else None
    if inner is not None and inner.way is not None:
        return replace(inner, sets={**given.sets, **inner.sets}, partly=inner.partly or partly)
    program = inner.program if inner else _program(given.rest)
    return Command(known.way, given.values, program, given.sets, partly)


def _program(rest: Sequence[str]) -> str:
    return _name(rest[0]) if rest else ""


def _python(words: Sequence[str], depth: int) -> Command | None:
    position = 0
    while position < len(words):
        word = words[position]
        if word == "-m":
            module = words[position + 1] if position + 1 < len(words) else ""
            if module in MODULES:
                return _launcher(MODULES[module], words[position + 2 :], depth)
            return Command(None, {}, module)
        if word.startswith("-m") and len(word) > 2:
            return Command(None, {}, word[2:])
        if word == "-c":
            return Command(None, {}, "-c")
        if word in ("-X", "-W"):
            position += 2
        elif word.startswith("-") and len(word) > 1:
            position += 1
        else:
            break
    rest = words[position:]
    if rest and _name(rest[0]) in LAUNCHERS:
        return _read([_name(rest[0]), *rest[1:]], depth - 1)
    return Command(None, {}, _program(rest))
