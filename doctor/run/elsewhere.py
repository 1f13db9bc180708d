"""The ranks on other hosts of a command that doctor ends. Its launcher ends them; what is left is named."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from doctor.errors import DoctorError
from doctor.exam.request import Request
from doctor.run.apart import apart
from doctor.text.nodeset import fold

if TYPE_CHECKING:
    from doctor.hang.judge import Judgement
    from doctor.live.evidence import LiveEvidence

BY_THEMSELVES = 3.0
"""Seconds in which a launcher that was ended may end its own ranks."""


@dataclass(frozen=True, slots=True)
class RankElsewhere:
    host: str
    pid: int
    start: int
    """As in `JobMember`."""
    rank: int | None
    line: str
    """What ends it; empty if that is unknown."""

    @property
    def name(self) -> str:
        return f"rank {self.rank} on {self.host}" if self.rank is not None else f"{self.host} pid {self.pid}"


def ranks_elsewhere(found: Judgement, evidence: LiveEvidence) -> tuple[RankElsewhere, ...]:
    """The ranks of the command's job that do not run below the command."""
    from doctor.live.onhost.origin import BELOW
    from doctor.live.reach import reach_of

    if found.job is None:
        return ()
    reach = reach_of(evidence)
    return tuple(
        RankElsewhere(each.host, each.pid, each.start, each.rank, reach.on(each.host, f"kill {each.pid}"))
        for each in found.job.ranks
        if each.started != BELOW
    )


def left_elsewhere(request: Request, ranks: Sequence[RankElsewhere]) -> tuple[str, ...]:
    """What still runs, each in a sentence with the line that ends it."""
    if not ranks:
        return ()
    time.sleep(BY_THEMSELVES)
    try:
        return apart(partial(_left, request, ranks))
    except DoctorError as error:
        hosts = fold({each.host for each in ranks})
        return (f"ranks on {hosts} may still run: {error.message.rstrip('.')}",)


def _left(request: Request, ranks: Sequence[RankElsewhere]) -> tuple[str, ...]:
    from doctor.exam.host_session import open_session
    from doctor.live.look import look_at
    from doctor.live.options import RunningJobWishes

    quiet = replace(request, command="hang", outputs=replace(request.outputs, quiet=True))
    asked = {each.host for each in ranks}
    with closing(open_session(quiet, os.environ)) as session:
        session.hosts = tuple(host for host in session.hosts if host.name in asked)
        seen = look_at(session, RunningJobWishes(), lambda _: {}).evidence  # to find them is enough
    return tuple(still_runs(ranks, seen))


def still_runs(ranks: Sequence[RankElsewhere], evidence: LiveEvidence) -> Iterator[str]:
    answered = {host.host for host in evidence.hosts}
    there = {(each.host, each.pid, each.start) for host in evidence.hosts for each in host.members}
    for each in ranks:
        name = each.name if each.line else f"{each.name} (process {each.pid})"
        end = f"; to end it: {each.line}" if each.line else ""
        if each.host not in answered:
            yield f"{name} may still run: its host did not answer{end}"
        elif (each.host, each.pid, each.start) in there:
            yield f"{name} still runs{end}"
