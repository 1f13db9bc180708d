"""Plain `NAME=value` files: what `env` printed for a rank, and files for `--env-file`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,199})=(.*)")
_FUNCTION = re.compile(r"BASH_FUNC_[^=]{1,200}=\(\) \{")
_OF_A_PROCESS = re.compile(r"(?:PATH|PWD|HOME|OLDPWD|SHELL)=/[^$]*$|SHLVL=\d|_=/|(?:USER|LOGNAME|LANG)=\w")
_OF_A_SCRIPT = re.compile(
    r"^(?:#!|(?:export|declare|typeset|source|torchrun|msrun|mpirun|srun|python3?)\s)", re.M
)


@dataclass(frozen=True, slots=True)
class Variables:
    """`env` by name; `lines` says where each stands; `twice` are names with two values: (line, name)."""

    env: Mapping[str, str]
    lines: Mapping[str, int]
    twice: Sequence[tuple[int, str]]


def is_dump(text: str) -> bool:
    """Whether this is the whole environment of a process, as `env` prints it."""
    signs = {match[0].partition("=")[0] for line in text.splitlines() if (match := _OF_A_PROCESS.match(line))}
    return len(signs) >= 2 and _OF_A_SCRIPT.search(text) is None


def is_env_file(text: str) -> bool:
    """Nothing but assignments, empty lines and comments."""
    lines = [line.strip() for line in text.splitlines()]
    rows = [line for line in lines if line and not line.startswith("#")]
    return bool(rows) and all(_ASSIGNMENT.match(line) for line in rows)


def read_dump(text: str) -> Variables:
    """Lines that begin no variable belong to the value above them."""
    env: dict[str, list[str]] = {}
    lines: dict[str, int] = {}
    twice: list[tuple[int, str]] = []
    current: list[str] = []
    in_function = False
    for number, line in enumerate(text.split("\n"), start=1):
        match = _ASSIGNMENT.fullmatch(line)
        if in_function:
            in_function = line != "}"
        elif _FUNCTION.match(line):
            in_function = not line.endswith("}")
        elif match:
            if match[1] in env and env[match[1]] != [match[2]]:
                twice.append((number, match[1]))
            current = env.setdefault(match[1], [])
            lines.setdefault(match[1], number)
            current[:] = [match[2]]
        else:
            current.append(line)
    joined = {name: "\n".join(value).rstrip("\n") for name, value in env.items()}
    return Variables(joined, lines, twice)


def read_env_file(text: str) -> Variables:
    """As docker reads it, but for quotes around a whole value. Of two values the last one counts."""
    env: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = _ASSIGNMENT.fullmatch(line.strip())
        if not match or line.lstrip().startswith("#"):
            continue
        name, value = match[1], match[2]
        quoted = re.fullmatch(r"""(["'])(.*)\1""", value)
        value = quoted[2] if quoted else value
        known = _settled(value, env)
        if known is None:
            env.pop(name, None)
        else:
            env[name] = known
            lines[name] = number
    return Variables(env, lines, ())


def _settled(value: str, env: Mapping[str, str]) -> str | None:
    """With the variables of the same file put in; None where something stays open."""

    def put(match: re.Match[str]) -> str:
        return env.get(match[1] or match[2], match[0])

    text = re.sub(r"\$(?:(\w{1,200})|\{(\w{1,200})\})", put, value)[:4000]
    return None if re.search(r"[$`]", text) else text
