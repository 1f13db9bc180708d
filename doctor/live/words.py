"""A running job and a frame of its stacks in words, for every output format."""

import re
from datetime import datetime, timezone

from doctor.live.evidence import Frame
from doctor.live.jobs.job import RunningJob
from doctor.text.nodeset import fold
from doctor.text.ranks import ranks_text

MOST = 8
"""The most ranges of ranks in one sentence."""
_INSTALLED = re.compile(r"^.*/(?:(?:site|dist)-packages|lib(?:64)?/python3[\d.]*)/")
"""The installation folder before the path of a library's file."""


def job_words(job: RunningJob, now: str = "", *, name: bool = False) -> str:
    """ "torchrun, 8 ranks on node[1-4], since 10:02 UTC". `now` begins with the date of the judgement; if the
    job started on that date, the date is left out.
    """
    ranks = f"{job.expected} rank{'' if job.expected == 1 else 's'}"
    master = next((rank.master for rank in job.ranks if rank.master), job.name if job.starters else "")
    port = f"port {master.rpartition(':')[2]}" if name and master else ""
    pid = f"pid {job.first.pid}" if name and job.first else ""
    begun = f"since {_clock(job.started, now[:10])}" if job.started else ""
    where = f"{ranks} on {fold(job.hosts)}" if job.ranks else f"no rank yet, on {fold(job.hosts)}"
    return ", ".join(filter(None, (job.launcher, where, begun, port, pid)))


def _clock(since_1970: float, today: str) -> str:
    try:
        shown = f"{datetime.fromtimestamp(since_1970, timezone.utc):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return "?"
    return shown.removeprefix(f"{today} ")


def missing_words(job: RunningJob) -> str:
    """The ranks that were not found, in words; empty if there are none."""
    gone = [rank for rank, _ in job.gone]
    elsewhere = [rank for rank in job.missing if rank not in gone]
    hosts = fold({host for _, host in job.gone})
    are, were = "is" if len(gone) == 1 else "are", "was" if len(elsewhere) == 1 else "were"
    said = (
        f"{ranks_text(gone, most=MOST)} of {hosts} {are} gone" if gone else "",
        f"{ranks_text(elsewhere, most=MOST)} {were} not found" if elsewhere else "",
    )
    return "; ".join(filter(None, said))


def frame_words(frame: Frame) -> str:
    source = f": {frame.source.strip()}" if frame.source.strip() else ""
    source = " (the file was changed since)" if frame.changed else source
    return f"{_INSTALLED.sub('', frame.file)}:{frame.line} in {frame.name}{source}"
