"""The files of --launch: dumps of environments, env files and launch scripts. Nothing in them is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from doctor.errors import InputErrors, Mistake
from doctor.launch.command import read_command
from doctor.launch.dump import Variables, is_dump, is_env_file, read_dump, read_env_file
from doctor.launch.shell import Line, Script, read_script
from doctor.launch.told import Launch, Told
from doctor.launch.variables import ONLY_TOGETHER, RANK_VARIABLES, kept, kept_words
from doctor.launch.ways import way_of
from doctor.launch.words import ShellError
from doctor.textfile import read_text, refuse, shown

LIMIT = 256_000
"""Bytes of one file: more than any environment or launch script needs."""
NOTHING = "holds no variable of a job and no command that starts one"
_RANKS = frozenset(rank for rank, _ in RANK_VARIABLES if rank != ONLY_TOGETHER) | {"MS_ROLE"}


def read_launch_files(paths: Sequence[Path]) -> Launch:
    """What the files say, together. Raises InputErrors with every mistake of every file."""
    told: list[Told] = []
    mistakes: list[Mistake] = []
    names = _names(paths)
    for path, name in zip(paths, names, strict=True):
        found, wrong = _tried(path, name)
        told += found
        mistakes += wrong
    refuse(mistakes, "--launch takes what `env` printed for a rank, files of NAME=value, and launch scripts")
    dumps = [each for each in told if not each.command and _RANKS & each.env.keys()]
    return Launch(
        name=names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}" if names else "no file",
        way=way_of(told),
        told=tuple(told),
        complete=len(dumps) > 1 and 2 * len(dumps) > len(told) and not any(each.command for each in told),
    )


def _names(paths: Sequence[Path]) -> list[str]:
    """Without folders, where that tells the files apart."""
    short = [path.name for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]


def _tried(path: Path, name: str) -> tuple[list[Told], Sequence[Mistake]]:
    try:
        return _read_file(path, name), ()
    except InputErrors as error:
        return [], error.mistakes


def _read_file(path: Path, name: str) -> list[Told]:
    text = read_text(path, LIMIT).replace("\r\n", "\n")
    file = str(path)
    if is_dump(text):
        return [_of_variables(read_dump(text), file, name)]
    try:
        script = read_script(text)
    except ShellError as error:
        if is_env_file(text):
            return [_of_variables(read_env_file(text), file, name)]
        raise InputErrors([Mistake(file, error.line, error.message)]) from None
    if not script.lines and is_env_file(text):
        return [_of_variables(read_env_file(text), file, name)]
    told = _of_script(script, name)
    if not told:
        raise InputErrors([Mistake(file, None, NOTHING)])
    return told


def _of_variables(found: Variables, file: str, name: str) -> Told:
    """One process, of which everything is known."""
    for line, variable in found.twice:
        if variable in _RANKS:
            message = f"{shown(variable)} is set a second time: give each rank a file of its own"
            raise InputErrors([Mistake(file, line, message)])
    env = kept(found.env)
    if not env:
        raise InputErrors([Mistake(file, None, NOTHING)])
    return Told(name, _host(found.env), env)


def _host(env: Mapping[str, str]) -> str | None:
    name = env.get("HOSTNAME") or env.get("SLURMD_NODENAME") or ""
    return name if name and not name.startswith("localhost") and len(name) < 256 else None


def _of_script(script: Script, name: str) -> list[Told]:
    lines = _one_launch(script.lines)
    if not lines:
        env = kept(script.env)
        return [Told(name, None, env, whole=False)] if env else []
    return [
        Told(f"{name}:{line.line}", None, kept(line.env), kept_words(line.words), whole=False, loop=line.loop)
        for line in lines
    ]


def _one_launch(lines: Sequence[Line]) -> list[Line]:
    """Of the commands of a script those that start the last job in it, and run side by side.

    Launchers go before plain Python, and Python that was given a rank before one that only prepares data.
    """
    launchers = [line for line in lines if _starts_ranks(line)]
    ranks = [line for line in lines if line.names & _RANKS or (line.loop and line.background)]
    chosen = launchers or ranks or list(lines[-1:])
    together: list[Line] = []
    for line in reversed(chosen):
        beside = line.background or line.loop
        if together and (not beside or _program(line) != _program(together[0])):
            break
        together.insert(0, line)
    return together


def _starts_ranks(line: Line) -> bool:
    command = read_command(line.words)
    return command is not None and command.way is not None


def _program(line: Line) -> str:
    command = read_command(line.words)
    return command.program if command else ""
