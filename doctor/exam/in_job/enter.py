"""`--in-job` from the command line to the exit code, on whichever rank this is."""

import os
import signal
import socket
from collections.abc import Callable

from doctor import __version__
from doctor.exam.in_job import proc
from doctor.exam.in_job.messages import Hello, Welcome
from doctor.exam.in_job.own_programs import Makers
from doctor.exam.in_job.rank_env import OWN, JobRank, is_scheduler, read_job_rank
from doctor.exam.request import Request
from doctor.exam.signals import stop_on_signals
from doctor.job.launch.variables import kept
from doctor.report.out.outputs import empty_lists
from doctor.text.announce import announce
from doctor.text.printable import clean_line
from doctor.text.speech import t
from doctor.text.terminal import tell

JOIN = 60.0
"""Seconds for all ranks to arrive."""


def in_job(request: Request, command: Callable[[Request], int], own: Callable[[Request], Makers]) -> int:
    """The same exit code on every rank; only rank 0 runs the command, which prints and writes files.

    `own`: what the other ranks make the programs of this command from.
    """
    if is_scheduler(os.environ):
        return 0
    seat: JobRank | None = None
    try:
        seat = read_job_rank(os.environ)
    finally:
        if seat is None or seat.rank == 0:
            empty_lists(request.outputs, request.inputs())
    me = _hello(seat)
    for name in filter(OWN.fullmatch, [*os.environ]):  # the programs that we start must not look like a rank
        del os.environ[name]
    join = _join_seconds(request)
    stop_on_signals()
    if seat.rank == 0:
        from doctor.exam.in_job.lead import lead

        return lead(seat, me, request, join, command)
    from doctor.exam.in_job.member import Membership

    def joined(head: Welcome) -> None:
        if request.outputs.verbose:
            tell(t(f"rank {seat.rank} has reached rank 0 ({clean_line(head.host)}, pid {head.pid})\n"))

    outcome = Membership(seat, me, request, own(request), joined).follow(join)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a launcher ends all ranks when the first one fails
    for words in outcome.words:
        announce(words)
    return outcome.code


def _join_seconds(request: Request) -> float:
    """Seconds for all ranks to arrive; the rest of the deadline must suffice for the examination."""
    way = request.way
    seconds = JOIN if way.connect_timeout is None else way.connect_timeout
    return seconds if way.deadline is None else min(seconds, way.deadline / 2)


def _hello(seat: JobRank) -> Hello:
    pid = os.getpid()
    return Hello(
        rank=seat.rank,
        world=seat.world,
        host=socket.gethostname()[:400],
        machine=proc.identity()[:400],
        pid=pid,
        parent=os.getppid(),
        began=proc.started(pid),
        version=__version__,
        env=dict(list(kept(dict(os.environ)).items())[:400]),
    )
