"""Whether a rank is inside a collective: by its stack, or by its threads if the stack cannot show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from doctor.hang.judge.judgement import RankStanding
from doctor.live import places, threads
from doctor.live.collectives import FILES, NOTICES, WAITS, called_by, collective_of, in_backward, synchronises
from doctor.live.evidence import Frame, JobMember, Look
from doctor.live.places import made_step, step_of

_MAY_WAIT = (*FILES["may wait"], *places.WRAPPERS)
STORE = "the store"
"""The operation of a rank that waits for a key that another one sets."""
ENDED = ("", "Z", "X")
"""States of a process that has ended."""


@dataclass(frozen=True, slots=True)
class LookPosition:
    """What one look shows about whether a rank is inside a collective."""

    inside: bool | None
    by: str = ""
    operation: str = ""
    noticed: bool = False


def standing(member: JobMember) -> RankStanding:
    """Where a rank stands by all looks. It is outside only if it is outside in the first and the last look
    and never inside between them.
    """
    looks = [(_seen(look, member), places.frames_of(look)) for look in _all_looks(member)]
    (first, before), *middle, (last, now) = looks
    chosen = last if last.by or not first.by else first
    inside = chosen.inside
    outside = first.inside is last.inside is False and not any(seen.inside for seen, _ in middle)
    if inside is False and not outside:
        inside = None
    frames = now or before
    own = places.user_frame(frames)
    crossed = {True, False} <= {seen.inside for seen, _ in looks}
    ways = [
        one or two
        for (one, lines), (two, others) in pairwise((seen.inside, frames) for seen, frames in looks if frames)
        if places.lines_of(lines) != places.lines_of(others)
    ]
    return RankStanding(
        member=member,
        inside=inside,
        by=chosen.by,
        operation=chosen.operation,
        place=places.place_of(own),
        function=own.name if own else "",
        frames=places.shown_frames(frames),
        step=step_of(member.b),
        noticed=chosen.noticed,
        moved=stepped(member) or crossed or any(ways),
        went=bool(ways),
    )


def _all_looks(member: JobMember) -> tuple[Look | None, ...]:
    return member.a, *member.between, member.b


def stepped(member: JobMember) -> bool:
    return any(made_step(before, now) for before, now in pairwise(map(step_of, _all_looks(member))))


def _seen(look: Look | None, member: JobMember) -> LookPosition:
    if look is None or look.state in ENDED:
        return LookPosition(None)
    frames = places.frames_of(look)
    if frames:
        return _by_stack(look, member, frames)
    return LookPosition(True, "threads", STORE) if _asks_store(member) else _by_threads(look)


def _asks_store(member: JobMember) -> bool:
    """Whether its main thread waits in both looks for an answer of the store in which the ranks meet."""
    port = ":" + (member.master.rpartition(":")[2] or "?")
    looks = [look for look in (member.a, member.b) if look and look.connections]
    return bool(looks) and all(
        any(each.awaited and (each.peer.endswith(port)) for each in look.connections) for look in looks
    )


def _by_threads(look: Look) -> LookPosition:
    waits = threads.gloo_groups(look)
    if waits is None or threads.uses_device(look):  # there, a group of gloo may serve another thread
        return LookPosition(None)
    if waits:
        return LookPosition(True, "threads")
    main = threads.main(look)
    may_wait = threads.polls(main) or threads.waits_with_limit(main)
    return LookPosition(None) if may_wait else LookPosition(False, "threads")


def _by_stack(look: Look, member: JobMember, frames: Sequence[Frame]) -> LookPosition:
    cut = places.user_index(frames)
    library = frames[:cut]
    if any(frame.file.startswith("<frozen importlib") for frame in library):
        return LookPosition(False, "stack")
    if operation := collective_of(frames):
        return LookPosition(True, "stack", operation)
    if in_backward(library):
        return _ask(look, member, "backward")
    if any(part in frame.file for frame in library[:1] for part in _MAY_WAIT):
        return _ask(look, member, library[0].name)
    if _asks_store(member):
        return LookPosition(True, "stack", STORE)
    device = threads.uses_device(look) or not threads.uses_gloo(look)
    main = threads.main(look)
    busy_elsewhere = main is not None and ("nanosleep" in main.waits or threads.polls(main))
    if name := synchronises(library):
        return LookPosition(True, "stack", name, noticed=True) if device else LookPosition(False, "stack")
    if cut == 0 and not busy_elsewhere:
        return _at_own_line(look, frames[0].source.rpartition(" ... ")[2], device)
    return LookPosition(False, "stack")


def _ask(look: Look, member: JobMember, operation: str) -> LookPosition:
    """The position by the threads, since this Python frame does not show whether it waits or computes."""
    waits = threads.gloo_groups(look)
    if waits or (waits is not None and threads.waits_with_limit(threads.main(look))):
        return LookPosition(True, "stack", operation)
    if waits is None or threads.uses_device(look):
        asleep = threads.idle(member.a, member.b)
        return LookPosition(True, "threads", operation) if asleep else LookPosition(None, "", operation)
    return LookPosition(False, "stack", operation)


def _at_own_line(look: Look, source: str, device: bool) -> LookPosition:
    """The position if the innermost frame is the user's: C code called there may wait in a collective."""
    waits = threads.gloo_groups(look)
    main = threads.main(look)
    if found := WAITS.search(source):
        if waits or waits is None or threads.waits_with_limit(main):
            return LookPosition(True, "stack", called_by(found))
        return LookPosition(False if not threads.uses_device(look) else None, "stack")
    if device and (found := NOTICES.search(source)):
        return LookPosition(True, "stack", found[0].strip(".("), noticed=True)
    if source:
        return LookPosition(False, "stack")
    if waits and threads.in_futex(main):
        return LookPosition(True, "stack", "wait")
    if waits is not None and threads.waits_with_limit(main):
        return LookPosition(None)
    blind = device and threads.uses_device(look) and (threads.in_futex(main) or look.state == "R")
    return LookPosition(None) if blind else LookPosition(False, "stack")
