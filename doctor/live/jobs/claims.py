"""Which of the claimed jobs are real. A process may claim anything about itself."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from doctor.live.evidence import Look
from doctor.live.jobs.job import RunningJob
from doctor.live.jobs.owners import joins
from doctor.live.places import main_thread, user_index
from doctor.text.nodeset import fold

MOST = 8
"""The most notes of each kind."""
_NUMBERS = {2: "two", 3: "three", 4: "four"}


def counted(
    jobs: Sequence[RunningJob], known: Sequence[RunningJob]
) -> tuple[tuple[RunningJob, ...], tuple[str, ...]]:
    """The jobs that count, and notes about the others. If there were no looks, or if no job would count, all
    jobs count. `known`: all jobs that were found.
    """
    held: dict[str, float] = {}
    for job in known:
        if job.bound:
            held[job.ranks[0].job] = max(held.get(job.ranks[0].job, 0.0), _oldest(job))
    found = tuple(job for job in jobs if _counts(job, held))
    if not found or not any(rank.a or rank.b for job in jobs for rank in job.ranks):
        return tuple(jobs), tuple(_owners(jobs, known))
    left = [_claim(job) for job in jobs if job not in found]
    more = [f"and {len(left) - MOST} more such claims"] if len(left) > MOST else []
    return found, (*_owners(jobs, known), *left[:MOST], *more)


def _counts(job: RunningJob, held: Mapping[str, float]) -> bool:
    """Whether a job counts: its ranks are bound to it, or they may still be starting.

    Ranks that are starting must be the complete world, or must not be younger than the bound ranks with the
    same name: anybody can claim a name. `held`: the age of the oldest bound rank, by name.
    """
    if job.bound:
        return True
    free = not job.missing or held.get(job.ranks[0].job, 0.0) <= _oldest(job)
    begin = (each.hidden or joins(each) or any(map(_imports, each.looks)) for each in job.ranks)
    return free and not job.stray and any(begin)


def _imports(look: Look) -> bool:
    """Whether it imports modules or waits for storage."""
    thread = main_thread(look)
    frames = thread.frames if thread else ()
    inner = frames[: user_index(frames)]
    return look.state == "D" or any(frame.file.startswith("<frozen importlib") for frame in inner)


def _oldest(job: RunningJob) -> float:
    return max((rank.age for rank in job.ranks), default=0.0)


def _owners(jobs: Sequence[RunningJob], known: Sequence[RunningJob]) -> Iterator[str]:
    """ "two users have ranks of 10.0.0.1:29500: root (4) and alice (1)" """
    ranks = {job.ranks[0].job: Counter[str]() for job in jobs[:MOST]}
    for job in known:
        if (name := job.ranks[0].job) in ranks:
            ranks[name][job.owner] += len(job.ranks)
    for name, of in ranks.items():
        if len(of) > 1:
            *most, last = (f"{user} ({number})" for user, number in of.most_common(MOST))
            more = f" and {len(of) - MOST} more" if len(of) > MOST else ""
            number = _NUMBERS.get(len(of), str(len(of)))
            yield f"{number} users have ranks of {name}: {', '.join(most)} and {last}{more}"


def _claim(job: RunningJob) -> str:
    """ "process 163 of alice on node2 says that it is rank 4 of 10.0.0.1:29500, and does not count: ..." """
    first, number = job.ranks[0], len(job.ranks)
    which = f"rank {first.rank}" if number == 1 and first.rank is not None else "ranks"
    who = f"process {first.pid}" if number == 1 else f"{number} processes ({first.pid}, ...)"
    return (
        f"{who} of {job.owner} on {fold(job.hosts)} "
        f"{'says that it is' if number == 1 else 'say that they are'} {which} of {first.job}, "
        f"and {'does not count: it has' if number == 1 else 'do not count: they have'} "
        "no connection to a rank and no launcher"
    )
