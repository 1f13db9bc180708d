"""Renames files everywhere in `Logs`: to shorter names, or to their names on a host."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

from doctor.logs.model import LogFile, LogLine, Logs, Party

LONG = 24
"""A shared folder with more characters than this is shown once, not with every file."""
Name = Callable[[str], str]


def common_folder(logs: Logs) -> str:
    """The folder that all files share if its name is long, else an empty text."""
    names = [file.name for file in logs.files]
    if not names or len(set(map(os.path.isabs, names))) > 1:
        return ""
    folder = os.path.commonpath([os.path.dirname(name) for name in names])
    return folder if len(folder) > LONG else ""


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Each name and the end of it, in whole folders, that no other name has: "rank0/stderr.log"."""
    ends: dict[str, set[str]] = defaultdict(set)
    parts = {name: name.split("/") for name in names}
    for name, part in parts.items():
        for begin in range(len(part)):
            ends["/".join(part[begin:])].add(name)
    return {
        name: next(
            (end for begin in reversed(range(len(part))) if len(ends[end := "/".join(part[begin:])]) == 1),
            name,
        )
        for name, part in parts.items()
    }


def without_folder(logs: Logs, folder: str) -> Logs:
    start = f"{folder}/"
    return renamed(logs, lambda name: name.removeprefix(start)) if folder else logs


def renamed(logs: Logs, name: Name, host: Callable[[str], str | None] = lambda _: None) -> Logs:
    """`host` maps an old name to the host of the file, which is entered in lines that name no host."""
    return Logs(
        tuple(_file(file, name, host(file.name)) for file in logs.files),
        tuple(
            replace(each, first=_line(each.first, name, home), last=_line(each.last, name, home))
            for each in logs.sightings
            for home in [host(each.first.file)]
        ),
        tuple(
            replace(each, file=name(each.file), who=_on(each.who, host(each.file))) for each in logs.curves
        ),
        tuple(map(name, logs.left_out)),
        logs.missed,
        tuple(renamed(each, name, host) for each in logs.earlier),
        logs.job,
        logs.maybe_jobs,
        tuple(renamed(each, name, host) for each in logs.jobs),
    )


def _file(file: LogFile, name: Name, host: str | None) -> LogFile:
    return replace(
        file,
        name=name(file.name),
        who=_on(file.who, host),
        last=_line(file.last, name, host) if file.last else None,
        over=tuple(_line(line, name, host) for line in file.over),
        progress=tuple(_line(line, name, host) for line in file.progress),
        odd=tuple(_line(line, name, host) for line in file.odd),
    )


def _line(line: LogLine, name: Name, host: str | None) -> LogLine:
    return replace(line, file=name(line.file), who=_on(line.who, host))


def _on(who: Party, host: str | None) -> Party:
    return replace(who, host=host) if host and who.host is None else who
