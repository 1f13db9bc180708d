"""What a process outside collectives is doing, and whether that is work."""

import re
from collections.abc import Sequence
from dataclasses import replace

from doctor.hang.judge.judgement import Activity, Cause
from doctor.hang.judge.leaving import forked_with_lock, leaves, leaving
from doctor.hang.judge.locks import LONGEST
from doctor.hang.judge.position import stepped
from doctor.hang.judge.progress import NONE, Ends, Progress, asked, busy, progress
from doctor.hang.judge.rights import silent
from doctor.hang.judge.waiting import kernel_function, storage, waits_for
from doctor.live import places, threads
from doctor.live.collectives import collective_of
from doctor.live.evidence import Frame, JobMember, Look

MOVED = 25_000
"""Bytes per second that count as work. It is low because a checkpoint may go to slow storage."""
_LOADS = {"_try_get_data", "_next_data", "_get_data", "_get_next"}
_LOADERS = ("torch/utils/data/dataloader.py", "mindspore/dataset/")
_IDLE_WORKER = {"_poll", "poll", "wait"}
_COMPILERS = ("torch/_dynamo/", "torch/_inductor/", "triton/", "torch/utils/cpp_extension.py")
_EVALUATES = re.compile(r"(?i)eval|valid|predict|infer|generat|benchmark|metric|(?:^|[._])test")
"""Names of functions that one rank may run alone and for a long time."""
_STATES = {
    "T": (Cause.STOPPED, "is stopped"),
    "t": (Cause.TRACED, "is held by a debugger"),
    **dict.fromkeys(("Z", ""), (Cause.ENDED, "has ended")),
}
FORKED = "waits for a lock that none of its threads holds: it was forked while another thread held it"
_UNREAD = "writes to a pipe that its parent does not read"
_READ = "have {who} read what its child writes while it waits for it (communicate()), or send that to a file"
_FOR_A_CHILD = {Cause.CHILD, Cause.INPUT, Cause.PIPE, Cause.AWAITS}
"""Causes that may be a wait for a child process, even for one that waits itself."""


def doing(member: JobMember, helpers: Sequence[JobMember], apart: float, ranks: Ends = NONE) -> Activity:
    """What this process is doing. Its `helpers` may do its work. `ranks`: what its job's connections use."""
    frames = places.frames_of(member.b) or places.frames_of(member.a)
    if _loads(frames):
        return _loading(member, helpers, apart, ranks)
    own = _own(member, apart, ranks)
    if leaves(frames):
        return leaving(_for_a_child(own, member, helpers, apart, ranks) or own, member)
    if own.works:
        return own
    child = _for_a_child(own, member, helpers, apart, ranks)
    if _compiles(frames) and not (own.held or own.polls):
        builds = next((each for each in (member, *helpers) if busy(each, apart)), None)
        name = builds.command.partition(" ")[0].rpartition("/")[2] if builds else ""
        by = f": process {builds.pid} ({name}) computes" if builds and builds.helps else ""
        if builds or not (child and (child.unproved or child.works)):
            words = f"compiles{by}" if builds else "waits for its compiler"
            return Activity(Cause.COMPILES, words, works=bool(builds))
    return child or own


def _for_a_child(
    own: Activity, member: JobMember, helpers: Sequence[JobMember], apart: float, ranks: Ends
) -> Activity | None:
    """The activity of child processes that may do its work (an upload, a pool); None if there is none.

    A process that waits for a lock, or sleeps again and again, may wait for a child that works. Whether it
    waits for a child that itself waits is unknown, so that this does not excuse it.
    """
    may = own.cause in _FOR_A_CHILD or own.cause in (Cause.LOCK, Cause.QUEUE) or own.polls
    children = [each for each in helpers if each.helps == member.pid] if may else []
    own_pids = {each.pid for each in children}
    does = [(each, _of_helper(each, apart, ranks)) for each in children]
    for child, activity in does:
        if activity.works:
            words = f"waits for its child {child.pid}, which {activity.words}"
            return Activity(Cause.CHILD, words, works=True)
    for child in children:
        held = _state(child) if _may_answer(child, member, ranks) else None
        if held and (held.certain or (own.cause is Cause.PIPE and child.parent not in own_pids)):
            words = f"waits for its child {child.pid} ({held.words.partition(' ')[2]})"
            do = (
                f"read what process {child.pid} printed last, in the log of {{who}}, then start the job again"
            )
            return replace(held, words=words, do=do if held.cause is Cause.ENDED else "")
    for child, activity in does:
        if activity.unproved and (own.cause in _FOR_A_CHILD or activity.cause is Cause.COMPUTES):
            words = f"waits for its child {child.pid}, which {activity.words}"
            return Activity(Cause.CHILD, words, unproved=True)
    ended = [each for each in children if each.a is None or not _state_of(each.b)]
    ended = [each for each in ended if each.a is None or _state_of(each.a) or each.parent in own_pids]
    if any(
        each.parent not in own_pids or not each.command.partition(" ")[0].endswith("sleep") for each in ended
    ):
        return Activity(Cause.CHILD, "waits for a child process, and one started or ended", unproved=True)
    waited = _waited_for(member, children) if own.cause is Cause.CHILD else None
    if own.cause is Cause.INPUT and own.unproved and not asked(member, ranks):
        stuck = [child for child, activity in does if activity.cause not in (Cause.INPUT, Cause.PIPE)]
        waited = stuck[0] if len(stuck) == 1 else None
    stands = next((activity for child, activity in does if child is waited), None)
    runs = next((each for each in reversed(children) if waited and each.parent == waited.pid), None)
    if waited and stands and runs and stands.cause is Cause.CHILD:
        again = "" if _state_of(runs.b) else " again and again"
        it = next((activity for child, activity in does if child is runs), stands)
        why = (
            f", which {it.words}" if it.cause in (Cause.PIPE, Cause.LOCK, Cause.STORAGE) and not again else ""
        )
        words = f"runs {' '.join(runs.command.split())[:LONGEST]}{again}{why}"
        do = (
            f"look at what process {waited.pid} tests or waits for: {{who}} waits at {{place}} until it comes"
        )
        stands = replace(stands, words=words, polls=bool(again), do=do)
    return _of_child(waited, stands, member, own) if waited and stands else None


def _of_helper(helper: JobMember, apart: float, ranks: Ends) -> Activity:
    if operation := collective_of(places.frames_of(helper.b) or places.frames_of(helper.a)):
        words = f"waits in {operation} for ranks of its own: RANK and WORLD_SIZE came from its parent"
        return Activity(Cause.CHILD, words)
    return _own(helper, apart, ranks)


def _may_answer(child: JobMember, member: JobMember, ranks: Ends) -> bool:
    """Whether the rank may wait for this child: not if it waits for the answer of another end of TCP."""
    due, look = asked(member, ranks), child.b
    if due is None or look is None:
        return due is None
    here = due.peer.rpartition(":")[0] == due.local.rpartition(":")[0]
    listens = here and any("a socket" in thread.asks for thread in look.threads)  # it has not accepted it yet
    return listens or any(end.local == due.peer for end in look.connections)


def _waited_for(member: JobMember, children: Sequence[JobMember]) -> JobMember | None:
    """The child that its system call names, or its only one."""
    main = threads.main(member.b)
    named = main.syscall[1] if main and len(main.syscall) > 1 else ""
    by_call = next((each for each in children if hex(each.pid) == named), None)
    first = [each for each in children if each.parent not in {one.pid for one in children}]
    return by_call or (first[0] if len(first) == 1 else None)


def _of_child(child: JobMember, does: Activity, parent: JobMember, own: Activity) -> Activity:
    """The activity of a rank whose child stands still. `own`: what the rank itself waits for."""
    frames = places.frames_of(child.b) or places.frames_of(child.a)
    at = places.user_frame(frames)
    where = f" in {places.short(at.name)}, {places.place_of(at)}" if at else ""
    if does.cause is Cause.LOCK and not does.held and forked_with_lock(child, parent):
        does = replace(does, cause=Cause.FORK, words=FORKED, do="")
    if does.cause is Cause.PIPE and f" to process {parent.pid} " in does.words:
        does = replace(does, words=_UNREAD, do=_READ)
    name = f" ({' '.join(child.command.split())[:LONGEST]})" if child.command and not at else ""
    says = f"waits for its child {child.pid}{name}, which {does.words}{where}"
    if own.cause is Cause.INPUT:  # perhaps for another process
        says = f"{own.words}; its child {child.pid} {does.words}{where}"
    return replace(
        does,
        cause=Cause.FORK if does.cause is Cause.FORK else Cause.CHILD,
        words=says,
        unproved=does.unproved or own.unproved,
        certain=does.certain and not own.unproved,
        place=places.place_of(at),
        frames=places.shown_frames(frames),
        pid=child.pid,
    )


def _state_of(look: Look | None) -> str:
    return look.state if look else ""


def _own(member: JobMember, apart: float, ranks: Ends) -> Activity:
    frames = places.frames_of(member.b) or places.frames_of(member.a)
    imports = any(frame.file.startswith("<frozen importlib") for frame in frames[: places.user_index(frames)])
    did = progress(member, apart, ranks)
    enough = did.bytes > MOVED * max(apart, 1.0)
    if imports:
        works = enough or did.read_on or busy(member, apart)
        return Activity(Cause.IMPORTS, "imports modules", works=works, unproved=did.calls > 0 or did.woken)
    if enough:
        how = f"{_size(did.bytes)} in {apart:.0f} s"
        return Activity(Cause.WRITES, f"{_moves(frames, did)}: {how}", works=True)
    if did.read_on:
        return Activity(Cause.WRITES, f"{_moves(frames, did)}, slowly", works=True)
    if busy(member, apart):
        return _computing(member)
    if stepped(member):
        return Activity(Cause.COMPUTES, "works: it made a step between the looks", works=True)
    return waits_for(member, frames, did, apart, ranks)


def _moves(frames: Sequence[Frame], did: Progress) -> str:
    names = " ".join(frame.name.lower() for frame in frames)
    if 2 * did.network > did.bytes > 0:
        return "sends or receives data over the network"
    if "checkpoint" in names or "save" in names:
        return "writes a checkpoint"
    return "loads data" if "load" in names else "moves data"


def _computing(member: JobMember) -> Activity:
    """It is never proved that a computation has no end."""
    stacks = [frames for look in member.looks if (frames := places.frames_of(look))]
    if any(_EVALUATES.search(frame.name) for frames in stacks for frame in frames):
        words = "computes: it may evaluate alone"
    elif len({places.lines_of(frames) for frames in stacks}) > 1:
        words = "computes, and goes from line to line"
    elif len(stacks) > 1:
        words = f"computes, at the same line in {len(stacks)} looks"
    elif silent(member):
        words = "computes, or waits for a CPU of its busy host"
    else:
        words = "computes"
    return Activity(Cause.COMPUTES, words, unproved=True)


def _loads(frames: Sequence[Frame]) -> bool:
    return any(
        frame.name.rpartition(".")[2] in _LOADS and any(part in frame.file for part in _LOADERS)
        for frame in frames[: places.user_index(frames)]
    )


def _loading(member: JobMember, helpers: Sequence[JobMember], apart: float, ranks: Ends) -> Activity:
    """The activity of a rank that waits for its data loader: what one of the workers at work is doing."""
    says = "waits for its data loader"
    workers = [each for each in helpers if each.helps == member.pid]
    at_work = [each for each in workers if not _idle_worker(each)]
    if not workers:
        return Activity(Cause.LOADER, f"{says}, and no worker of it runs")
    if not at_work:
        return Activity(Cause.LOADER, f"{says}, whose workers seem idle")
    own = {each.pid: _state(each) or _own(each, apart, ranks) for each in at_work}
    for each in at_work:
        locked = own[each.pid].cause is Cause.LOCK and not own[each.pid].held
        if locked and forked_with_lock(each, member):
            own[each.pid] = replace(own[each.pid], cause=Cause.FORK, words=FORKED, do="")
    worker = min(at_work, key=lambda each: (own[each.pid].works, own[each.pid].unproved, each.pid))
    frames = places.frames_of(worker.b) or places.frames_of(worker.a)
    at = places.user_frame(frames)
    its = own[worker.pid]
    where = f" in {places.short(at.name)}, {places.place_of(at)}" if at and not its.place else ""
    return Activity(
        its.cause if its.cause in (Cause.FORK, Cause.STOPPED) else Cause.LOADER,
        f"{says}: worker {worker.pid} {its.words}{where}",
        works=its.works,
        unproved=its.unproved,
        certain=bool(frames),
        place=places.place_of(at),
        frames=places.shown_frames(frames),
        held=its.held,
        pid=worker.pid,
    )


def _state(worker: JobMember) -> Activity | None:
    state = (worker.b or worker.a or Look(pid=worker.pid, state="")).state
    stays = worker.a is not None and worker.a.state == state
    cause, words = _STATES.get(state, (Cause.KERNEL, ""))
    if state == "D" and not storage(worker):
        words = f"is stuck in the kernel ({kernel_function(worker)})"
    return Activity(cause, words, certain=stays and state in ("T", "t"), pid=worker.pid) if words else None


def _idle_worker(worker: JobMember) -> bool:
    """Whether it waits for its rank to request data."""
    frames = places.frames_of(worker.b) or places.frames_of(worker.a)
    waits_there = {frame.name.rpartition(".")[2] for frame in frames[:4]} & _IDLE_WORKER
    loops = any(frame.name == "_worker_loop" for frame in frames)
    return _state(worker) is None and (bool(waits_there) or (bool(frames) and not loops))


def _compiles(frames: Sequence[Frame]) -> bool:
    return any(part in frame.file for frame in frames for part in _COMPILERS) and any(
        "compile" in frame.name.lower() or "codegen" in frame.name.lower() for frame in frames
    )


def _size(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1_000:
            return f"{number:.0f} {unit}"
        number /= 1_000
    return f"{number:.1f} TB"
