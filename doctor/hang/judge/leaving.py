"""A rank that has ended its training and cannot exit, and a child that waits for a lock held over a fork."""

from collections.abc import Sequence
from dataclasses import replace

from doctor.hang.judge.judgement import Activity, Cause
from doctor.live import places, threads
from doctor.live.evidence import Frame, JobMember, Look, PythonThread

_EXITS = {
    "_shutdown": "/threading.py",
    "_python_exit": "/concurrent/futures/",
    "_exit_function": "/multiprocessing/util.py",
}
"""Functions that Python calls when the program is over, with their files."""


def leaves(frames: Sequence[Frame]) -> bool:
    """Whether the program of the main thread is over."""
    outer = frames[-1] if frames and places.user_index(frames) == len(frames) else None
    return outer is not None and _EXITS.get(places.short(outer.name), "\n") in outer.file


def leaving(own: Activity, member: JobMember) -> Activity:
    """The activity of a rank that leaves: what keeps it. `own`: what its main thread does."""
    says = "has ended its training and cannot exit"
    keeps = _keeps(member.b)
    if keeps is None:
        unproved = own.works or own.unproved
        return replace(own, cause=Cause.LEFT, words=f"{says}: it {own.words}", works=False, unproved=unproved)
    at = places.user_frame(keeps.frames)
    where = f"{places.short(at.name)}, {places.place_of(at)}" if at else "?"
    collective = any("torch/distributed/" in frame.file for frame in keeps.frames)
    return Activity(
        Cause.LEFT,
        f"{says}: its thread {keeps.name or keeps.tid} is in {where}",
        unproved=own.works or own.unproved or collective or bool(threads.gloo_groups(member.b)),
        place=places.place_of(at),
        frames=places.shown_frames(keeps.frames),
    )


def _keeps(look: Look | None) -> PythonThread | None:
    """The thread that the main thread waits for, if one runs the user's code."""
    main = places.main_thread(look)
    others = [one for one in (look.python if look else ()) if one is not main and one.frames]
    return next((one for one in others if not all(places.is_library(at.file) for at in one.frames)), None)


def forked_with_lock(child: JobMember, parent: JobMember) -> bool:
    """Whether it waits for a lock that no thread of it can release: its only thread waits, and nothing but
    this process uses the lock. It was forked while another thread of its parent held it.
    """
    looks = (child.a, child.b)
    calls = {one.threads[0].syscall for one in looks if one and len(one.threads) == 1}
    if child.command != parent.command or len(calls) != 1 or not all(looks):
        return False
    main = threads.main(child.b)
    return threads.in_futex(main) and not threads.waits_with_limit(main) and threads.shares(main) is False
