"""The files of --launch: dumps of environments, env files and launch scripts. Nothing in them is run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from doctor.errors import InputErrors, Mistake
from doctor.job.launch.command import kept_words
from doctor.job.launch.launchers import COMMANDS, RANK_NAMES
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.shell import ShellCommand, ShellScript, read_script
from doctor.job.launch.shell_tokens import ShellError
from doctor.job.launch.variables import kept
from doctor.text.textfile import read_text, refuse, shown

LIMIT = 256_000
"""Bytes of one file: more than any environment or launch script needs."""
NOTHING = "holds no variable of a job and no command that starts one"
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,199})=(.*)")
_FUNCTION = re.compile(r"BASH_FUNC_[^=]{1,200}=\(\) \{")
_OF_A_PROCESS = re.compile(r"(?:PATH|PWD|HOME|OLDPWD|SHELL)=/[^$]*$|SHLVL=\d|_=/|(?:USER|LOGNAME|LANG)=\w")
_OF_A_SCRIPT = re.compile(
    rf"^(?:#!|(?:export|declare|typeset|source|python3?|{'|'.join(map(re.escape, COMMANDS))})\s)", re.M
)


def read_launch_files(paths: Sequence[Path]) -> Launch:
    """What the files say, together. Raises InputErrors with every mistake of every file."""
    told: list[ProcessEnv] = []
    mistakes: list[Mistake] = []
    names = _names(paths)
    for path, name in zip(paths, names, strict=True):
        found, wrong = _try_file(path, name)
        told += found
        mistakes += wrong
    refuse(mistakes, "--launch takes what `env` printed for a rank, files of NAME=value, and launch scripts")
    dumps = [each for each in told if not each.command and RANK_NAMES & each.env.keys()]
    return Launch(
        name=names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}" if names else "no file",
        told=tuple(told),
        complete=len(dumps) > 1 and 2 * len(dumps) > len(told) and not any(each.command for each in told),
    )


def _names(paths: Sequence[Path]) -> list[str]:
    """Without folders, where that tells the files apart."""
    short = [path.name for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]


def _try_file(path: Path, name: str) -> tuple[list[ProcessEnv], Sequence[Mistake]]:
    try:
        return _read_file(path, name), ()
    except InputErrors as error:
        return [], error.mistakes


def _read_file(path: Path, name: str) -> list[ProcessEnv]:
    text = read_text(path, LIMIT).replace("\r\n", "\n")
    file = str(path)
    if _is_dump(text):
        return [_of_variables(file, name, *_read_dump(text))]
    try:
        script = read_script(text)
    except ShellError as error:
        if not _is_env_file(text):
            raise InputErrors([Mistake(file, error.line, error.message)]) from None
        script = ShellScript((), {})
    if not script.lines and _is_env_file(text):
        return [_of_variables(file, name, _read_env_file(text))]
    told = _of_script(script, name)
    if not told:
        raise InputErrors([Mistake(file, None, NOTHING)])
    return told


def _of_variables(
    file: str, name: str, found: Mapping[str, str], twice: Sequence[tuple[int, str]] = ()
) -> ProcessEnv:
    """One process whose variables are all known. `twice` are names with two values: (line, name)."""
    for line, variable in twice:
        if variable in RANK_NAMES:
            message = f"{shown(variable)} is set a second time: give each rank a file of its own"
            raise InputErrors([Mistake(file, line, message)])
    env = kept(found)
    if not env:
        raise InputErrors([Mistake(file, None, NOTHING)])
    return ProcessEnv(name, _host(found), env)


def _host(env: Mapping[str, str]) -> str | None:
    name = env.get("HOSTNAME") or env.get("SLURMD_NODENAME") or ""
    return name if name and not name.startswith("localhost") and len(name) < 256 else None


def _of_script(script: ShellScript, name: str) -> list[ProcessEnv]:
    lines = _one_launch(script.lines)
    if not lines:
        env = kept(script.env)
        return [ProcessEnv(name, None, env, whole=False)] if env else []
    return [
        ProcessEnv(f"{name}:{one.line}", None, kept(one.env), kept_words(one.words), False, one.loop)
        for one in lines
    ]


def _one_launch(lines: Sequence[ShellCommand]) -> list[ShellCommand]:
    """Of the commands of a script those that start the last job in it, and run side by side.

    Launchers go before plain Python, and Python that was given a rank before one that only prepares data.
    """
    launchers = [line for line in lines if line.command.launcher is not None]
    ranks = [line for line in lines if line.names & RANK_NAMES or (line.loop and line.background)]
    chosen = launchers or ranks or list(lines[-1:])
    together: list[ShellCommand] = []
    for line in reversed(chosen):
        parallel = line.background or line.loop
        if together and (not parallel or line.command.program != together[0].command.program):
            break
        together.insert(0, line)
    return together


def _is_dump(text: str) -> bool:
    """Whether this is the whole environment of a process, as `env` prints it."""
    marks = {match[0].partition("=")[0] for line in text.splitlines() if (match := _OF_A_PROCESS.match(line))}
    return len(marks) >= 2 and _OF_A_SCRIPT.search(text) is None


def _is_env_file(text: str) -> bool:
    """Nothing but assignments, empty lines and comments."""
    lines = [line.strip() for line in text.splitlines()]
    rows = [line for line in lines if line and not line.startswith("#")]
    return bool(rows) and all(_ASSIGNMENT.match(line) for line in rows)


def _read_dump(text: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
    """Lines that begin no variable belong to the value above them."""
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
            current = env.setdefault(match[1], [])
            current[:] = [match[2]]
        else:
            current.append(line)
    return {name: "\n".join(value).rstrip("\n") for name, value in env.items()}, twice


def _read_env_file(text: str) -> dict[str, str]:
    """As docker reads it, but for quotes around a whole value. Of two values the last one counts."""
    env: dict[str, str] = {}
    for line in text.splitlines():
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
    return env


def _settled(value: str, env: Mapping[str, str]) -> str | None:
    """With the variables of the same file put in; None where something stays open."""

    def put(match: re.Match[str]) -> str:
        return env.get(match[1] or match[2], match[0])

    text = re.sub(r"\$(?:(\w{1,200})|\{(\w{1,200})\})", put, value)[:4000]
    return None if re.search(r"[$`]", text) else text
