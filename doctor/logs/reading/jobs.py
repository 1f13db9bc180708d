"""Finds out which files belong to which job, if their names or contents show more than one."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import PurePosixPath

from doctor.logs.forms.names import named
from doctor.logs.model import Form
from doctor.logs.reading.attempts import ranks_of
from doctor.logs.reading.file_scan import Scan

Files = Mapping[str, Sequence[Scan]]
MOST = 20
"""The most jobs; if there are more folders, they are not those of jobs."""
_SLURM = re.compile(r"slurm-(?P<job>\d{1,10}(?:_\d{1,6})?)(?:[.-]\d{1,6})?\.(?:out|err)", re.IGNORECASE)
_GIVEN = re.compile(r"(?P<name>.{0,200}?)[._-](?P<job>\d{3,10}(?:_\d{1,6})?)\.(?:out|err)")
_OF_HOSTS = frozenset({Form.KERNEL})
"""Forms of files that do not belong to a job."""


def jobs_of(files: Files) -> dict[str, Files]:
    """The files of each job by its name; empty if all may belong to one job."""
    found = _by(files, _slurm_job)
    if len(found) > 1:
        return _with_hosts(files, found)
    for found in _divided(files):
        if all(_apart(*pair) for pair in combinations(found.values(), 2)):
            return _with_hosts(files, found)
    return {}


def _divided(files: Files) -> Iterator[dict[str, Files]]:
    """The files by the number, and by the first folder, in their names, where these make several jobs."""
    for part in (_numbered_job, _FolderOf(files)):
        found = _by(files, part)
        if 1 < len(found) <= MOST:
            yield found


def maybe_jobs(files: Files) -> tuple[str, ...]:
    """Two folders or job numbers that may be two jobs, if times do not show whether they are one."""
    for found in _divided(files):
        for (one, mine), (other, theirs) in combinations(found.items(), 2):
            worlds = [{each.learned.world for each in _scans(job)} - {None} for job in (mine, theirs)]
            other_size = all(worlds) and not worlds[0] & worlds[1]
            if _are_whole(mine, theirs) and (other_size or _ranks(mine) & _ranks(theirs)):
                return one, other
    return ()


def _scans(files: Files) -> list[Scan]:
    return [each for several in files.values() for each in several]


def _are_whole(*jobs: Files) -> bool:
    """Whether each has a launcher's log, or each has steps: none holds only the errors of another."""
    scans = [*map(_scans, jobs)]
    launched = all(any(each.launchers for each in several) for several in scans)
    return launched or all(any(each.progress for each in several) for several in scans)


def _slurm_job(name: str) -> str:
    found = _SLURM.search(PurePosixPath(name).name)
    return f"job {found['job']}" if found else ""


def _numbered_job(name: str) -> str:
    """The job in `%x-%j.out` of Slurm, unless the number is that of a rank or a host."""
    last = PurePosixPath(name).name
    found, said = _GIVEN.fullmatch(last), named(last)
    return f"job {found['job']}" if found and said.rank is None and said.host is None else ""


class _FolderOf:
    """Gives the first folder in which the files differ, unless it is named after a host or a rank."""

    def __init__(self, files: Files) -> None:
        parts = [PurePosixPath(name).parts for name in files if not _of_a_host(files[name])]
        self._depth = 0
        while parts and len({each[self._depth : self._depth + 1] for each in parts}) == 1:
            if not parts[0][self._depth : self._depth + 1]:
                break
            self._depth += 1

    def __call__(self, name: str) -> str:
        parts = PurePosixPath(name).parts
        if len(parts) < self._depth + 2:
            return ""
        folder = parts[self._depth]
        said = named(f"{folder}/x")
        own = said.host is None and said.rank is None and not folder.startswith("attempt_")
        return folder if own and not folder.isdecimal() else ""


def _by(files: Files, job: Callable[[str], str]) -> dict[str, Files]:
    """The files of each job; empty if a file that ranks wrote has no job."""
    found: dict[str, dict[str, Sequence[Scan]]] = {}
    for name, scans in files.items():
        if _of_a_host(scans):
            continue
        said = job(name)
        if not said:
            return {}
        found.setdefault(said, {})[name] = scans
    return dict(found)


def _with_hosts(files: Files, jobs: Mapping[str, Files]) -> dict[str, Files]:
    """The jobs with the kernel logs added to each: these may concern any job."""
    more = {name: scans for name, scans in files.items() if _of_a_host(scans)}
    return {job: {**own, **more} for job, own in jobs.items()}


def _of_a_host(scans: Sequence[Scan]) -> bool:
    return all(set(each.forms) <= _OF_HOSTS and each.forms for each in scans)


def _apart(one: Files, other: Files) -> bool:
    """Whether the same ranks wrote in both, and one ended before the other began."""
    if not _are_whole(one, other) or not _ranks(one) & _ranks(other):
        return False
    spans = [_span(one), _span(other)]
    return all(spans) and (spans[0][1] < spans[1][0] or spans[1][1] < spans[0][0])


def _ranks(files: Files) -> set[int]:
    """Those that the lines or names give; local ranks stand for them if few are known."""
    scans = _scans(files)
    found = set().union(*map(ranks_of, scans), (one for it in scans if (one := it.named.rank) is not None))
    local = {each.named.local for each in scans if each.named.local is not None}
    return found if 2 * len(found) > len(local) else found | local


def _span(files: Files) -> tuple[float, ...]:
    first = [each.first_at for each in _scans(files) if each.first_at is not None]
    last = [each.last_at for each in _scans(files) if each.last_at is not None]
    return (min(first), max(last)) if first and last else ()
