"""Rank 0: waits for the others, runs the command through them, and sends all of them the same exit code."""

import signal
import time
from collections.abc import Callable, Collection
from dataclasses import replace

from doctor.errors import EXIT_BROKEN, DoctorError, NotExamined
from doctor.exam.in_job.find_head import speaks_as_head
from doctor.exam.in_job.hub import Hub
from doctor.exam.in_job.job_key import VARIABLE
from doctor.exam.in_job.messages import Hello
from doctor.exam.in_job.missing_ranks import Roster
from doctor.exam.in_job.rank_env import JobRank
from doctor.exam.in_job.relay import JobTransport
from doctor.exam.progress import progress_line
from doctor.exam.request import Ready, Request
from doctor.exam.signals import signal_of
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.wishes import JobWishes
from doctor.stage import Stage
from doctor.targets.inventory import Targets
from doctor.text.ranks import ranks_text

SOURCE = "the job"


def lead(seat: JobRank, me: Hello, request: Request, join: float, command: Callable[[Request], int]) -> int:
    hub = Hub(seat, me)
    code = EXIT_BROKEN
    try:
        hub.listen()
        began = time.monotonic()
        _join(hub, request, join)
        _refuse_impostors(hub)
        deadline = request.way.deadline
        if deadline is not None:
            left = max(0.1, deadline - (time.monotonic() - began))
            request = replace(request, way=replace(request.way, deadline=left))
        code = command(replace(request, ready=_ready(Roster(hub, join))))
    except KeyboardInterrupt as stop:
        code = 128 + signal_of(stop)
        raise
    except DoctorError as error:
        code = error.exit_code
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a launcher ends all ranks when the first one fails
        hub.tell(code)
        hub.close()
    return code


def _join(hub: Hub, request: Request, seconds: float) -> None:
    line, world = progress_line(request.outputs), hub.seat.world

    def tell(came: Collection[int]) -> None:
        missing = ranks_text(set(range(world)).difference(came), most=3)
        doing = f"{len(came)}/{world} came  waiting for {missing}"
        line(Stage("ranks", doing, len(came), world, limit=seconds))

    try:
        hub.join(seconds, tell)
    finally:
        line.clear()
    for rank in hub.roll_call():  # ranks that do not answer are not asked to run anything
        hub.members[rank].silent = True


def _refuse_impostors(hub: Hub) -> None:
    """Ranks that cannot tell us from another rank 0 would not believe our verdict: they all get the same."""
    unsure = any(member.link and not member.hello.sure for member in hub.members.values())
    for port, uid in hub.rivals.items() if unsure else ():
        if speaks_as_head(hub.seat, port):
            raise NotExamined(
                f"--in-job: port {port} of {hub.own_place[0]}, where ranks look for rank 0, is held by the "
                f"user with uid {uid}, whose program claims to be rank 0.",
                f"Give all ranks a {VARIABLE}: then nobody can guess their ports.",
            )


def _ready(roster: Roster) -> Ready:
    hub = roster.hub
    processes = tuple(
        ProcessEnv(
            f"rank {rank}",
            roster.names[member.place],
            member.hello.env,
            pid=member.hello.pid,
            parent=member.hello.parent,
        )
        for rank, member in sorted(hub.members.items())
    )
    complete = len(processes) == hub.seat.world  # missing ranks are reported as such
    launch = Launch(SOURCE, processes, complete=complete, live=True, met=True)
    way = JobTransport(hub, {name: place for place, name in roster.names.items()}, roster.unheard)
    wishes = JobWishes(launch=launch)
    return Ready(Targets(roster.hosts(), SOURCE, wishes=wishes, way=lambda *_: way), roster.absent)
