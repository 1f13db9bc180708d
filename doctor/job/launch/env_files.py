"""Dumps of environments and files of NAME=value, as text."""

import re
from collections.abc import Mapping

from doctor.job.launch.launchers import COMMANDS

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,199})=(.*)")
_FUNCTION = re.compile(r"BASH_FUNC_[^=]{1,200}=\(\) \{")
_OF_A_PROCESS = re.compile(r"(?:PATH|PWD|HOME|OLDPWD|SHELL)=/[^$]*$|SHLVL=\d|_=/|(?:USER|LOGNAME|LANG)=\w")
_OF_A_SCRIPT = re.compile(
    rf"^(?:#!|(?:export|declare|typeset|source|python3?|{'|'.join(map(re.escape, COMMANDS))})\s)", re.M
)


def is_dump(text: str) -> bool:
    """Whether this is the whole environment of a process, as `env` prints it."""
    marks = {match[0].partition("=")[0] for line in text.splitlines() if (match := _OF_A_PROCESS.match(line))}
    return len(marks) >= 2 and _OF_A_SCRIPT.search(text) is None


def is_env_file(text: str) -> bool:
    """Whether there is nothing but assignments, empty lines and comments."""
    lines = [line.strip() for line in text.splitlines()]
    rows = [line for line in lines if line and not line.startswith("#")]
    return bool(rows) and all(_ASSIGNMENT.match(line) for line in rows)


def read_dump(text: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
    """The variables. A line that begins no variable belongs to the value above it."""
    env: dict[str, list[str]] = {}
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
            current = env[match[1]] = [match[2]]
        else:
            current.append(line)
    return {name: "\n".join(value).rstrip("\n") for name, value in env.items()}, twice


def read_env_file(text: str) -> dict[str, str]:
    """The variables, read as docker does, but without quotes around a whole value; the last value counts."""
    env: dict[str, str] = {}
    for line in text.splitlines():
        match = _ASSIGNMENT.fullmatch(line.strip())
        if not match or line.lstrip().startswith("#"):
            continue
        name, value = match[1], match[2]
        quoted = re.fullmatch(r"""(["'])(.*)\1""", value)
        value = quoted[2] if quoted else value
        known = _substituted(value, env)
        if known is None:
            env.pop(name, None)
        else:
            env[name] = known
    return env


def _substituted(value: str, env: Mapping[str, str]) -> str | None:
    """The value with the variables of the same file filled in; None if something remains unknown."""

    def put(match: re.Match[str]) -> str:
        return env.get(match[1] or match[2], match[0])

    text = re.sub(r"\$(?:(\w{1,200})|\{(\w{1,200})\})", put, value)[:4000]
    return None if re.search(r"[$`]", text) else text
