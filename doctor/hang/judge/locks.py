"""Who holds the lock on a file that a process waits for, and whether that process gets anything done."""

import re
from collections.abc import Sequence

from doctor.hang.judge.judgement import Activity, Cause, HeldLock
from doctor.hang.judge.progress import BUSY, TICKS
from doctor.live import threads
from doctor.live.evidence import FileLock, Frame, JobMember, LockHolder
from doctor.live.places import user_index

_DATABASE = re.compile(r"execute|commit|rollback|sqlite|\bdbm\b|shelve")
"""In the line, or in a function, of one that asks a database in a file."""
_BASE = re.compile(r"\.(?:db|sqlite3?)\Z")
LONGEST = 160
"""The most characters of a holder's command line in a sentence."""


def waits_for_lock(
    member: JobMember, frames: Sequence[Frame], apart: float, *, woken: bool
) -> Activity | None:
    """The activity of a process that waits for a lock on a file; None if nothing shows that it does.
    `woken`: its main thread ran between the looks, as one does that tries again and again.
    """
    lock = _waited(member, frames, woken)
    if lock is None:
        return None
    words = f"waits for the lock {lock.path or 'on a file'}"
    if not lock.holders:
        return _unheld(lock, words)
    before = {each.pid: each for one in (member.a.locks if member.a else ()) for each in one.holders}
    stays = [each for each in lock.holders if each.pid in before]
    holder = next(iter(stays or lock.holders))
    own = holder.pid == member.pid
    words = f"{words}, held by {'itself' if own else named(holder)}"
    held = HeldLock(lock.path, holder.pid)
    if not stays:
        return Activity(Cause.LOCK, f"{words}, not by the same process as before", unproved=True, held=held)
    doubt = _works(before[holder.pid], holder, apart)
    return Activity(
        Cause.LOCK, words + doubt, unproved=bool(doubt), polls=True, certain=lock.by == "kernel", held=held
    )


def _waited(member: JobMember, frames: Sequence[Frame], woken: bool) -> FileLock | None:
    look, waits = member.b, threads.waiting(member)
    sleeps = woken and (threads.in_kernel(waits, ("nanosleep",)) or threads.polls(threads.main(waits)))
    for by in ("kernel", "library", "own", "open"):
        for lock in look.locks if look else ():
            if lock.by == by and (by == "kernel" or (sleeps and fits(lock, frames))):
                return lock
    return None


def fits(lock: FileLock, frames: Sequence[Frame]) -> bool:
    """Whether one that sleeps again and again may wait for this lock."""
    if lock.by != "open":
        return True
    own = frames[: user_index(frames) + 1]
    unknown = bool(own) and not own[-1].source and bool(_BASE.search(lock.path))
    asks = any(_DATABASE.search(f"{each.name} {each.source}") for each in own)
    return bool(lock.holders) and (asks or unknown)


def _unheld(lock: FileLock, words: str) -> Activity:
    """Of a lock that no process of this host holds."""
    held = HeldLock(lock.path, None)
    if lock.kind or lock.by == "kernel":
        return Activity(
            Cause.LOCK, f"{words}, held by no process that can be seen here", polls=True, held=held
        )
    says = f"sleeps again and again while the file {lock.path} exists"
    if lock.by == "library":
        says = f"waits for the file {lock.path} to go"
    return Activity(Cause.LOCK, f"{says}: no process of this host has it open", polls=True, held=held)


def named(holder: LockHolder) -> str:
    words = " ".join(holder.command.split())  # that of `python -c` may have many lines
    command = words if len(words) <= LONGEST else f"{words[:LONGEST]}…"
    return f"process {holder.pid} ({command}, {holder.user}, for {holder.age:.0f} s)"


def _works(before: LockHolder, now: LockHolder, apart: float) -> str:
    """Why the holder may release it; empty if it stands still."""
    if now.moved is None or before.moved is None:
        return ", and what that does may not be seen"
    if now.moved != before.moved:
        return ", which reads or writes"
    used = (now.cpu - before.cpu) / TICKS / max(apart, 0.1)
    return ", which computes" if used > BUSY or before.state == now.state == "R" else ""
