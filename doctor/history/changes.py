"""`doctor check --notify`: what this run changed, by the earlier runs in its folder. Nothing else is kept."""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from doctor.exam.notify import notified
from doctor.history.fleet import passed, roots
from doctor.history.kept import KeptReport, find_runs
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold
from doctor.text.outfile import add_files

MOST_RUNS = 10
"""The earlier runs of the same exam that say what was wrong before."""
PATIENCE = 5.0
"""Seconds for which two runs wait for each other; whoever may read the folder could hold it for ever."""
Open = set[tuple[str, str]]
"""The checks that fail, each with its host; without one, the whole run is at fault."""


def kept_and_told(command: str, folder: Path, name: str, files: Mapping[str, bytes]) -> dict[str, Path]:
    """Keep the files, and tell what is new. Of two runs that end at once, the second knows the first."""
    news = ""
    try:
        with _one_by_one(folder):
            news = _news(folder, msgspec.json.decode(files[".json"], type=KeptReport))
            return add_files(folder, name, files)
    finally:
        if news:
            notified(command, news, files[".txt"].decode())


def _news(folder: Path, now: KeptReport) -> str:
    kept = find_runs([folder])
    kept.files = [each for each in kept.files if os.path.dirname(each[1]) == str(folder)]  # it is ours
    runs = (
        each
        for each in kept.runs(newest=True)
        if (each.run.command, each.run.exam) == (now.run.command, now.run.exam)
        and each.run.started[:10] <= now.run.started[:10]  # a clock that was wrong once decides nothing
    )
    before: Open = set()
    for each in reversed([*islice(runs, MOST_RUNS)]):
        before = _after(before, each)
    after = _after(before, now)
    said = (("", after - before), ("no longer ", before - after))
    return "; ".join(f"{word}{_words(changed)}" for word, changed in said if changed)


def _after(before: Open, run: KeptReport) -> Open:
    """What was not looked at, or is waived, stays as it was."""
    good = passed(run, {check for check, _ in before})
    failed = {(each.check or "", host) for each in roots(run) for host in each.hosts or ("",)}
    return {(check, host) for check, host in before if check not in good.get(host, ())} | failed


def _words(changed: Open) -> str:
    """`node3: gpu-xid, node[1-2]: shm-small`."""
    hosts = grouped(sorted(changed)).items()
    return ", ".join(f"{fold(filter(None, names)) or 'the run'}: {check}" for check, names in hosts)


@contextmanager
def _one_by_one(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    until = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < until:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(handle)
