"""Reads the inputs into `Logs`, in memory that does not grow with the files.

Nothing is judged here. `Logs.left_out` lists what could not be read, each with its reason.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from doctor.logs.loss.collect import LossCollector
from doctor.logs.model import Curve, LogFile, Logs, Sighting
from doctor.logs.reading.attempts import by_attempt, whole
from doctor.logs.reading.file_scan import Scan
from doctor.logs.reading.jobs import jobs_of, maybe_jobs
from doctor.logs.reading.readers import Readers, cores
from doctor.logs.reading.resolve import People, finished
from doctor.logs.reading.scan import scan
from doctor.logs.reading.sentences import Sentences
from doctor.logs.sources import Input, ReadLimits, Sources
from doctor.logs.symptoms.match import Matcher

MOST_SIGHTINGS = 200_000
"""The most sightings of all files together; if there are more, each file keeps an equal share."""


def read(
    given: Sequence[Input],
    matcher: Matcher,
    *,
    loss: type[LossCollector] | None = None,
    limits: ReadLimits | None = None,
    now: float | None = None,
    deadline: float | None = None,
    apart: bool = False,
    seen: Callable[[str], None] | None = None,
    moved: Callable[[int, int], None] | None = None,
) -> Logs:
    """Everything in the files, or in those that could be read within `deadline` seconds.

    `seen` is called with the name of each file before it is read, `moved` with the size of what was read so
    far and of everything (0 if unknown). `apart`: each input has its own time limit.
    """
    now = time.time() if now is None else now
    meter = _Meter(moved) if moved else None
    sources = Sources(given, limits or ReadLimits(), now, deadline, apart=apart, taken=meter)
    if meter:
        meter.total = sources.total()
    table, above = Sentences(matcher), _above(given)
    found: dict[str, list[Scan]] = {}
    several = len(given) > 1 or any(isinstance(each, Path) and each.is_dir() for each in given)
    with Readers(matcher.symptoms, cores() if several else 1, sources.left_out.add) as readers:
        for opened in sources.files():
            if seen:
                seen(opened.name)
            work = partial(scan, opened, matcher, table, loss, opened.name[above:])
            add = found.setdefault(opened.name, []).extend
            if readers.takes(opened):
                readers.start(opened, work, add)
            else:
                add(work())
        readers.finish()
    scans = {name: each for name, each in found.items() if each}
    jobs = {job: _of_job(files) for job, files in jobs_of(scans).items()}
    made = _of_job(scans) if not jobs else _logs([whole(each) for each in scans.values()])
    return replace(
        made,
        left_out=(*sources.left_out.lines(), *made.left_out),
        missed=sources.left_out.missed or bool(made.left_out),
        maybe_jobs=() if jobs else maybe_jobs(scans),
        jobs=tuple(replace(each, job=job) for job, each in jobs.items()),
    )


class _Meter:
    """Adds up the sizes of the pieces that were read, and passes on their sum and the total."""

    def __init__(self, moved: Callable[[int, int], None]) -> None:
        self._moved = moved
        self._taken = self.total = 0

    def __call__(self, size: int) -> None:
        self._taken += size
        self._moved(self._taken, self.total)


def _above(given: Sequence[Input]) -> int:
    """The length of the folders above the inputs: unless somebody typed them one by one, their names do not
    tell on which host a file was written. What torchrun makes is below the folder of a host.
    """
    paths = [os.fspath(each) for each in given if isinstance(each, (str, os.PathLike))]
    if not paths or not all(map(os.path.isabs, paths)):
        return 0
    shared = os.path.commonpath([path if os.path.isdir(path) else os.path.dirname(path) for path in paths])
    while (name := os.path.basename(shared)).isdecimal() or name.startswith("attempt_"):
        shared = os.path.dirname(shared)
    return len(os.path.dirname(shared))


def _of_job(files: Mapping[str, Sequence[Scan]]) -> Logs:
    attempts = [_logs(each) for each in by_attempt(files)] or [Logs()]
    return replace(attempts[-1], earlier=tuple(attempts[:-1]))


def _logs(scans: Sequence[Scan]) -> Logs:
    people = People(scans)
    files: list[LogFile] = []
    sightings: list[Sequence[Sighting]] = []
    curves: list[Curve] = []
    for each in scans:
        file, found, lines = finished(each, people)
        files.append(file)
        sightings.append(tuple(found))
        curves += lines
    left_out: list[str] = []
    if (many := sum(map(len, sightings))) > MOST_SIGHTINGS:
        sightings = [found[: MOST_SIGHTINGS // len(scans)] for found in sightings]
        left_out.append(f"{many - sum(map(len, sightings)):,} further messages: too many")
    return Logs(tuple(files), tuple(chain.from_iterable(sightings)), tuple(curves), tuple(left_out))
