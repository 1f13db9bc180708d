"""`doctor hang --watch`: one look after another until a job hangs or the job has ended."""

import math
import time
from collections.abc import Callable
from dataclasses import replace

from msgspec import structs

from doctor.exam.progress import ProgressLine
from doctor.hang.judge import LIMIT, HangState, Judgement, judged
from doctor.hang.judge.pace import StepPace
from doctor.hang.options import HangWishes
from doctor.live.jobs.job import RunningJob
from doctor.live.sight import Sight
from doctor.stage import Stage
from doctor.text.announce import announce

EVERY = 10.0
"""Seconds from the start of one look to the start of the next."""
LEAST = 1.0
"""The least pause in seconds between two looks, even if a look took long."""


def watch(
    look: Callable[[], Sight],
    wishes: HangWishes,
    line: ProgressLine,
    *,
    quiet: bool = False,
    until: float = math.inf,
    every: float = EVERY,
) -> tuple[Sight, Judgement, bool]:
    """Look again and again. Returns the last look and its judgement, even if an interrupt ended the watch;
    and whether the job hangs now or has ended.
    """
    last: tuple[Sight, Judgement] | None = None
    job: RunningJob | None = None
    number = absent = 0
    pace = StepPace()
    try:
        while True:
            began = time.monotonic()
            sight = look()
            limit = pace.limit(LIMIT if wishes.limit is None else wishes.limit)
            found = _of_the_same(job, sight, replace(wishes, limit=limit))
            pace.add(found, time.monotonic())
            last, number = (sight, found), number + 1
            absent = absent + 1 if found.verdict is HangState.NO_JOB else 0
            job = found.job or job
            text = f"look {number}: {found.sentence}"
            if not quiet and not line.live:
                announce(f"{sight.evidence.started[11:19]} UTC, {text}")
            ends = number == 1 or (absent > 1 and not found.unreached)
            if any(one.verdict is HangState.HANG for one in (found, *found.each)) or (absent and ends):
                return *last, number > 1 or not absent
            again = max(began + every, time.monotonic() + min(LEAST, every))
            if again + wishes.apart >= until:
                return *last, False
            while (left := again - time.monotonic()) > 0:
                line(Stage("watch", f"{text} Next look in {math.ceil(left)} s."))
                time.sleep(min(left, 1.0))
    except KeyboardInterrupt:
        if last is None:
            raise
        return *last, False


def _of_the_same(before: RunningJob | None, sight: Sight, wishes: HangWishes) -> Judgement:
    """The judgement of the watched job, even if another job has started on these hosts. The evidence keeps
    what was chosen.
    """
    sight.evidence = structs.replace(sight.evidence, choice=wishes.choice())
    found = judged(sight.evidence)
    if before is None or found.verdict is not HangState.SEVERAL:
        return found
    own = _ranks(before)
    same = [job for job in found.jobs if own & _ranks(job)]
    others = {pid for job in found.jobs if job not in same for _, pid in _ranks(job)}
    pids = [pid for job in same for _, pid in sorted(own & _ranks(job)) if pid not in others]
    return _of_the_same(None, sight, replace(wishes, pid=pids[0])) if len(same) == 1 and pids else found


def _ranks(job: RunningJob) -> set[tuple[str, int]]:
    return {(rank.host, rank.pid) for rank in job.ranks}
