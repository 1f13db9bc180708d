"""The files of --launch: dumps of environments, env files and launch scripts. Nothing in them is run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from doctor.errors import InputErrors, Mistake
from doctor.job.launch.command import kept_words
from doctor.job.launch.launchers import COMMANDS, PORTS, RANK_NAMES
from doctor.job.launch.marks import marks_in
from doctor.job.launch.process_env import Launch, NearbyTable, ProcessEnv
from doctor.job.launch.shares import Slots, share_of
from doctor.job.launch.shell import ShellScript, read_script
from doctor.job.launch.shell_flow import ShellCommand
from doctor.job.launch.shell_tokens import ShellError
from doctor.job.launch.told_table import is_by_device, told_tables
from doctor.job.launch.variables import kept
from doctor.text.textfile import read_text, refuse, shown

LIMIT = 256_000
"""The most bytes of one file: more than any environment or launch script needs."""
NOTHING = "contains no variable of a job and no command that starts one"
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,199})=(.*)")
_FUNCTION = re.compile(r"BASH_FUNC_[^=]{1,200}=\(\) \{")
_OF_A_PROCESS = re.compile(r"(?:PATH|PWD|HOME|OLDPWD|SHELL)=/[^$]*$|SHLVL=\d|_=/|(?:USER|LOGNAME|LANG)=\w")
_OF_A_SCRIPT = re.compile(
    rf"^(?:#!|(?:export|declare|typeset|source|python3?|{'|'.join(map(re.escape, COMMANDS))})\s)", re.M
)


def no_slots(_: Path) -> Sequence[int]:
    return ()


def read_launch_files(paths: Sequence[Path], slots: Slots = no_slots) -> Launch:
    """The contents of all files together; `slots` reads the hostfiles that they mention.

    Raises InputErrors with every mistake of every file.
    """
    paths = list({os.path.realpath(path): path for path in paths}.values())
    told: list[ProcessEnv] = []
    beside: list[NearbyTable] = []
    unread: list[str] = []
    mistakes: list[Mistake] = []
    names = _names(paths)
    for path, name in zip(paths, names, strict=True):
        (found, lost, missing), wrong = _try_file(path, name, slots)
        told += found
        beside += lost
        unread += [f"{name} {how} {shown(file)}, which could not be read here" for how, file in missing]
        mistakes += wrong
    refuse(mistakes, "--launch takes what `env` printed for a rank, files of NAME=value, and launch scripts")
    dumps = [
        each for each in told if not each.command and (RANK_NAMES & each.env.keys() or is_by_device(each))
    ]
    return Launch(
        name=names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}" if names else "no file",
        told=tuple(told),
        complete=len(dumps) > 1 and 2 * len(dumps) > len(told) and not any(each.command for each in told),
        beside=tuple(beside),
        unread=tuple(unread),
    )


def _names(paths: Sequence[Path]) -> list[str]:
    """The names of the files, without folders if they are distinct."""
    short = [path.name for path in paths]
    return short if len(set(short)) == len(short) else [str(path) for path in paths]


_Read = tuple[list[ProcessEnv], list[NearbyTable], Sequence[tuple[str, str]]]
"""From one file: its processes, the tables it leaves behind, and what it needs that is not here."""


def _try_file(path: Path, name: str, slots: Slots) -> tuple[_Read, Sequence[Mistake]]:
    try:
        return _read_file(path, name, slots), ()
    except InputErrors as error:
        return ([], [], ()), error.mistakes


def _read_file(path: Path, name: str, slots: Slots) -> _Read:
    text = read_text(path, LIMIT)
    dos, text = "\r\n" in text, text.replace("\r\n", "\n")
    file, home = str(path), os.path.dirname(os.path.abspath(path))
    if _is_dump(text):
        return [_of_variables(file, name, *_read_dump(text))], [], ()
    try:
        script = read_script(text, home, _read_sourced)
    except ShellError as error:
        if not _is_env_file(text):
            raise InputErrors([Mistake(file, error.line, error.message)]) from None
        script = ShellScript((), {})
    if not script.lines and _is_env_file(text):
        return [_of_variables(file, name, _read_env_file(text))], [], ()
    marks = marks_in(text)
    told = [replace(each, home=home, marks=marks) for each in _of_script(script, name, home, slots)]
    if not told:
        raise InputErrors([Mistake(file, None, NOTHING)])
    if dos:
        message = f"ends its lines with CR LF, which no shell runs: sed -i 's/\\r$//' {shown(path.name)}"
        raise InputErrors([Mistake(file, None, message)])
    gone = [folder for each in told if (folder := _not_here(each, script.made))]
    told = [replace(each, folder=None) if _not_here(each, script.made) else each for each in told]
    unread = (*script.unread, *(("goes to", os.path.relpath(folder, home)) for folder in dict.fromkeys(gone)))
    return *_find_tables(told, script.copied, name), unread


def _not_here(each: ProcessEnv, made: frozenset[str]) -> str:
    """The folder to which the script goes, if it does not exist here and the script does not create it."""
    folder = each.folder or ""
    if not each.home or not folder.startswith(f"{each.home}/") or os.path.isdir(folder) or "*" in made:
        return ""
    return "" if any(path == folder or path.startswith(f"{folder}/") for path in made) else folder


def _read_sourced(path: str) -> str | None:
    """A file that a script sources; None if it is not here."""
    try:
        return read_text(Path(path), LIMIT) if os.path.isfile(path) else None
    except InputErrors:
        return None


def _find_tables(
    told: Sequence[ProcessEnv], copied: frozenset[str], name: str
) -> tuple[list[ProcessEnv], list[NearbyTable]]:
    """Check that the tables exist in the folder where the script is when it starts a rank.

    If a file is not here at all, the script expects it elsewhere; a copy made by the script is as good as its
    source.
    """
    found: list[ProcessEnv] = []
    lost: dict[tuple[str, str, str], list[str]] = {}
    for each in told:
        home = each.home or ""
        for table in told_tables([each]):
            source = os.path.normpath(os.path.join(home, table.text))
            if not table.beside or table.path == source or os.path.isfile(table.path):
                continue
            makes_it = any(fnmatchcase(os.path.basename(table.text), pattern) for pattern in copied)
            if makes_it or not os.path.isfile(source):
                each = replace(each, folder=home)
            else:
                folder = os.path.relpath(each.folder or home, home)
                lost.setdefault((source, table.said, table.text), []).append(folder)
        found.append(each)
    beside = [NearbyTable(*key, tuple(dict.fromkeys(folders)), script=name) for key, folders in lost.items()]
    return found, beside


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
    dump = ProcessEnv(name, _host(found), env)
    needs_folder = any(not table.text.startswith("/") for table in told_tables([dump]))
    folder = found.get("PWD", "")
    return replace(dump, folder=folder) if needs_folder and folder.startswith("/") else dump


def _host(env: Mapping[str, str]) -> str | None:
    name = env.get("HOSTNAME") or env.get("SLURMD_NODENAME") or ""
    return name if name and not name.startswith("localhost") and len(name) < 256 else None


def _of_script(script: ShellScript, name: str, home: str, slots: Slots) -> list[ProcessEnv]:
    lines = _one_launch(script.lines)
    if not lines:
        env = kept(script.env)
        return [ProcessEnv(name, None, env, whole=False, folder=home)] if env else []
    return [
        ProcessEnv(
            f"{name}:{one.line}" + (f" ({one.turn})" if one.turn else ""),
            None,
            kept(one.env),
            (one.command.program,) if one.bare else kept_words(one.words),
            whole=False,
            loop=one.loop,
            folder=one.folder,
            unknown=tuple(sorted(one.names - one.env.keys())),
            behind=one.behind,
            chosen=bool(one.branches),
            share=share_of(one.words, one.command, home, slots),
        )
        for one in lines
    ]


def _one_launch(lines: Sequence[ShellCommand]) -> list[ShellCommand]:
    """The commands of a script that start its last job and run side by side.

    Launchers come before plain Python, Python with a rank before Python that only prepares data, and that
    before any other program.
    """
    launchers = [line for line in lines if line.command.launcher is not None]
    ranks = [line for line in lines if not line.bare and (line.names & RANK_NAMES or _of_many(line))]
    bare = [line for line in lines if line.bare and _of_many(line)]
    chosen = launchers or ranks or bare or [line for line in lines if not line.bare][-1:]
    together: list[ShellCommand] = []
    for line in reversed(chosen):
        if together and line.excludes(together[0]):
            continue
        parallel = (line.background or line.loop) and (not together or line.wave == together[0].wave)
        if together and line.command.program != together[0].command.program:
            break
        if together and not parallel:
            if _waits_for(together[0], line):
                together = [replace(each, behind=True) for each in together]
            break
        if any(_is_of_another_job(line, each) for each in together):
            break
        together.insert(0, line)
    return together


def _waits_for(rank: ShellCommand, before: ShellCommand) -> bool:
    """Whether a loop starts a rank only after the one before it has ended."""
    return not before.background and before.line == rank.line and _numbers(before) != _numbers(rank)


def _is_of_another_job(line: ShellCommand, rank: ShellCommand) -> bool:
    """Whether it starts the same rank but meets the others elsewhere."""
    ports = {each.env.get(port) for each in (line, rank) for port in PORTS}
    return bool(_numbers(line)) and _numbers(line) == _numbers(rank) and len(ports - {None}) > 1


def _numbers(line: ShellCommand) -> dict[str, str]:
    return {name: line.env[name] for name in RANK_NAMES & line.env.keys() if line.env[name].isdecimal()}


def _of_many(line: ShellCommand) -> bool:
    """Whether a loop starts several of them side by side."""
    return line.background and (line.loop or line.turn != "")


def _is_dump(text: str) -> bool:
    """Whether this is the whole environment of a process, as `env` prints it."""
    marks = {match[0].partition("=")[0] for line in text.splitlines() if (match := _OF_A_PROCESS.match(line))}
    return len(marks) >= 2 and _OF_A_SCRIPT.search(text) is None


def _is_env_file(text: str) -> bool:
    """Whether there is nothing but assignments, empty lines and comments."""
    lines = [line.strip() for line in text.splitlines()]
    rows = [line for line in lines if line and not line.startswith("#")]
    return bool(rows) and all(_ASSIGNMENT.match(line) for line in rows)


def _read_dump(text: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
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
            current = env.setdefault(match[1], [])
            current[:] = [match[2]]
        else:
            current.append(line)
    return {name: "\n".join(value).rstrip("\n") for name, value in env.items()}, twice


def _read_env_file(text: str) -> dict[str, str]:
    """Like docker, but quotes around a whole value are removed. The last of two values counts."""
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
