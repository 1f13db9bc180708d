"""One look at the ranks of the hosts, or at those of the jobs that the options choose."""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import psutil
from msgspec import structs

from doctor.exam.host_session import HostSession
from doctor.live.agents import LookPatience
from doctor.live.evidence import LiveEvidence
from doctor.live.jobs.find import chosen, chosen_starts, find_jobs
from doctor.live.jobs.starting import starting_jobs
from doctor.live.options import RunningJobWishes
from doctor.live.sight import PATIENCE, Choose, HostsToSee, Sight, see
from doctor.text.grouped import grouped


def look_at(
    session: HostSession,
    wishes: RunningJobWishes,
    choose: Choose | None = None,
    command: Callable[[str], Any] = lambda _: None,
    *,
    apart: float = 2.0,
) -> Sight:
    """Look at the ranks of these hosts, or at those that the options or `choose` choose. `command`: what each
    host is told of the command whose ranks are to be marked.
    """
    asked = to_see(session, wishes, apart)
    sight = see(replace(asked, choose=choose or asked.choose, command=command), apart)
    sight.evidence = structs.replace(sight.evidence, choice=wishes.choice())
    return sight


def to_see(session: HostSession, wishes: RunningJobWishes, apart: float = 0.0) -> HostsToSee:
    way = session.request.way
    return HostsToSee(
        session.hosts,
        session.transport,
        way.sudo,
        session.way,
        session.until,
        LookPatience(whole=whole(way.timeout, apart)),
        session.line,
        lambda evidence: narrowed(evidence, wishes),
        wishes.pyspy,
    )


def whole(timeout: float, apart: float, age: float | None = None) -> float:
    """Seconds for the looks, so that the whole answer takes no longer than --timeout, if that leaves at least
    half of it. `age`: seconds since this program was started. Writing the report takes about half as long as
    the start. An age above --timeout is not that of a start alone, so it does not count.
    """
    age = max(0.0, time.time() - psutil.Process().create_time()) if age is None else age
    return max(timeout - 1.5 * (age if age < timeout else 0.0) - apart - PATIENCE.stop, timeout / 2)


def narrowed(evidence: LiveEvidence, wishes: RunningJobWishes) -> Mapping[str, Collection[int]] | None:
    """The PIDs of the chosen ranks and of all ranks with the same job name, by host: only connections show
    which of these belong to the same job. None if no option chooses a job.
    """
    choice = wishes.choice()
    if all(each is None for each in choice.of_job):
        return None
    jobs = find_jobs(evidence)
    names = {rank.job for job in chosen(jobs, choice) for rank in job.ranks}
    ranks = (rank for job in jobs for rank in job.ranks if rank.job in names)
    starts = chosen_starts(starting_jobs(evidence, jobs), choice)
    starters = (each.member for start in starts for each in start.starters)
    return grouped((each.host, each.pid) for each in (*ranks, *starters))
