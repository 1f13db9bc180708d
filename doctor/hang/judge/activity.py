"""What a process outside collectives is doing, and whether that is work."""

from __future__ import annotations

import re
from collections.abc import Sequence

from doctor.hang.evidence import Frame, HangMember, Look, Thread
from doctor.hang.judge import threads
from doctor.hang.judge.judgement import Activity, Cause
from doctor.hang.judge.places import chain_of, main_thread, place_of, shown_frames, user_frame, user_index
from doctor.hang.judge.position import stepped
from doctor.hang.judge.rights import silent

MOVED = 25_000
"""Bytes per second that count as work. It is low because a checkpoint may go to slow storage."""
BUSY = 0.15
"""A process counts as busy if it uses more than this share of a core."""
TICKS = 100
"""Ticks of CPU time per second."""
_LOADS = {"_try_get_data", "_next_data", "_get_data", "_get_next"}
_LOADERS = ("torch/utils/data/dataloader.py", "mindspore/dataset/")
_IDLE_WORKER = {"_poll", "poll", "wait"}
_COMPILERS = (
    "torch/_dynamo/",
    "torch/_inductor/",
    "triton/",
    "mindspore/_extends/",
    "mindspore/common/api.py",
)
_STORAGE = (
    *(
        "request_wait_answer",
        "fuse_",
        "folio_lock",
        "folio_wait",
        "lock_page",
        "wait_on_page",
        "nfs",
        "rpc_wait",
    ),
    *(
        "io_schedule",
        "fsync",
        "jbd2",
        "xfs_",
        "ext4_",
        "wb_wait",
        "cl_sync_io",
        "osc_",
        "ll_",
        "ceph_",
        "cifs_",
    ),
    *("blkdev", "submit_bio", "wait_on_bit", "sync_inodes", "writeback", "gpfs", "beegfs", "balance_dirty"),
)
_DEAD_STORAGE = (
    "request_wait_answer",
    "fuse_",
    "nfs",
    "rpc_wait",
    "cl_sync_io",
    "osc_",
    "ll_",
    "ceph_",
    "cifs_",
)
_FILE_LOCKS = ("locks_lock_inode_wait", "fcntl_setlk", "posix_lock", "flock_lock")
_OPENS_PIPE = ("wait_for_partner", "fifo_open")
_READS_PIPE = ("pipe_read", "pipe_wait")
_NETWORK = ("sk_wait", "tcp_recv", "inet_csk", "wait_woken", "unix_stream", "skb_wait")
_DULL = re.compile(
    r"\.(?:so|py|pyc|log|out|err|jsonl)\b[^/]*$|/(?:log|std(?:out|err))[^/]*$|^/(?:dev|proc|sys)/"
)
_EVALUATES = re.compile(r"(?i)eval|valid|predict|infer|generat|benchmark|metric|(?:^|[._])test")
"""Names of functions that one rank may run alone and for a long time."""
_DEBUGGERS = ("/pdb.py", "/bdb.py", "/IPython/", "/ipdb/", "/debugpy/")
_READS_TERMINAL = ("n_tty_read", "tty_read")
_FOR_A_CHILD = {Cause.CHILD, Cause.INPUT, Cause.PIPE, Cause.LOCK}
FILES = 3


def doing(member: HangMember, helpers: Sequence[HangMember], apart: float) -> Activity:
    """What this process is doing. Its `helpers` may do its work."""
    frames = _frames(member.b) or _frames(member.a)
    if _loads(frames):
        return _loading(member, helpers, apart)
    own = _own(member, apart)
    if not own.works and _compiles(frames):
        busy = any(_busy(each, apart) for each in (member, *helpers))
        return Activity(Cause.COMPILES, "compiles" if busy else "waits for its compiler", works=busy)
    if own.cause in _FOR_A_CHILD and not own.works:
        return _for_a_child(member, helpers, apart) or own
    return own


def _for_a_child(member: HangMember, helpers: Sequence[HangMember], apart: float) -> Activity | None:
    """The activity of child processes that may do its work (an upload, a pool); None if none is active."""
    children = [each for each in helpers if each.helps == member.pid and not _idle_worker(each)]
    if any(_moves_enough(each, apart) for each in children):
        return Activity(Cause.CHILD, "waits for a child process, which moves data", works=True)
    changed = any(_state_of(each.a) != _state_of(each.b) == "" or each.a is None for each in children)
    if changed or any(_busy(each, apart) for each in children):
        return Activity(Cause.CHILD, "waits for a child process, which is busy", unproved=True)
    return None


def _state_of(look: Look | None) -> str:
    return look.state if look else ""


def stuck_in_kernel(member: HangMember) -> bool:
    """Whether it stayed in state D: not woken and no bytes moved between the looks, and not for storage."""
    first, last = member.a, member.b
    if first is None or last is None or first.state != "D" or last.state != "D":
        return False
    before, now = threads.main(first), threads.main(last)
    woken = before is not None and now is not None and before.switches != now.switches
    return not woken and _moved(member) == 0 and not storage(member)


def storage(member: HangMember) -> bool:
    return _in_kernel(member.b, _STORAGE) or _in_kernel(member.a, _STORAGE)


def kernel_function(member: HangMember) -> str:
    look = member.b or member.a
    main = threads.main(look)
    named = main.waits if main and main.waits not in ("", "0") else ""
    return named or next(iter(look.kernel if look else ()), "")


def _own(member: HangMember, apart: float) -> Activity:
    frames = _frames(member.b) or _frames(member.a)
    imports = any(frame.file.startswith("<frozen importlib") for frame in frames[: user_index(frames)])
    if _moves_enough(member, apart) and imports:
        return Activity(Cause.IMPORTS, "imports modules", works=True)
    if _moves_enough(member, apart):
        return Activity(
            Cause.WRITES, f"{_moves(frames)}: {_size(_moved(member))} in {apart:.0f} s", works=True
        )
    if stepped(member):
        return Activity(Cause.COMPUTES, "works: it made a step between the looks", works=True)
    if imports:
        return Activity(Cause.IMPORTS, "imports modules", works=_busy(member, apart), certain=False)
    if _busy(member, apart):
        return _computing(member)
    return _waiting(member, frames)


def _moves_enough(member: HangMember, apart: float) -> bool:
    return _moved(member) > MOVED * max(apart, 1.0)


def _moves(frames: Sequence[Frame]) -> str:
    names = " ".join(frame.name.lower() for frame in frames)
    if "checkpoint" in names or "save" in names:
        return "writes a checkpoint"
    return "loads data" if "load" in names else "moves data"


def _computing(member: HangMember) -> Activity:
    before, now = _frames(member.a), _frames(member.b)
    if any(_EVALUATES.search(frame.name) for look in member.looks for frame in _frames(look)):
        return Activity(Cause.COMPUTES, "computes: it may evaluate alone", unproved=True)
    chains = {chain_of(frames) for frames in map(_frames, member.looks) if frames}
    if before and now and len(chains) == 1:
        return Activity(Cause.COMPUTES, "computes: an endless loop or very long work")
    if before and now:
        return Activity(Cause.COMPUTES, "computes, and goes from function to function", unproved=True)
    if silent(member):
        return Activity(Cause.COMPUTES, "computes, or waits for a CPU of its busy host", unproved=True)
    return Activity(Cause.COMPUTES, "computes")


def _waiting(member: HangMember, frames: Sequence[Frame]) -> Activity:
    look = member.b or member.a
    main = threads.main(look)
    waits = main.waits if main else ""
    gil = _holds_gil(member)
    if _debugs(frames):
        return Activity(Cause.INPUT, "waits in a Python debugger for somebody to type")
    if _in_kernel(look, _FILE_LOCKS):
        return Activity(Cause.LOCK, f"waits for a lock on a file{_named_files(look)}", certain=bool(frames))
    if _in_kernel(look, _OPENS_PIPE):
        return Activity(
            Cause.PIPE, "waits for somebody to open the other end of a pipe", certain=bool(frames)
        )
    if _in_kernel(look, _STORAGE):
        what = "a file system that does not answer" if _in_kernel(look, _DEAD_STORAGE) else "storage"
        return Activity(Cause.STORAGE, f"waits for {what}{_named_files(look)}")
    if gil:
        return Activity(
            Cause.GIL, "holds the GIL in C code" + (" that sleeps" if "nanosleep" in waits else "")
        )
    if "nanosleep" in waits:
        return Activity(Cause.SLEEPS, "sleeps")
    if _in_kernel(look, _READS_PIPE):
        return Activity(Cause.PIPE, "reads a pipe that stays empty")
    if "do_wait" in waits and "futex" not in waits:
        return Activity(Cause.CHILD, "waits for a child process")
    if threads.in_futex(main):
        if holder := _gil_holder(member):
            return Activity(Cause.GIL, f"waits for the GIL, which another thread of it holds at {holder}")
        return Activity(
            Cause.LOCK, "waits for a lock" + ("" if frames else " or another thread"), certain=bool(frames)
        )
    if _types(look, main, frames):
        return Activity(Cause.INPUT, "waits for somebody to type")
    if _in_kernel(look, _NETWORK):
        return Activity(Cause.INPUT, "waits for an answer over the network")
    if threads.polls(main):
        return Activity(Cause.INPUT, "waits for input")
    if name := kernel_function(member):
        return Activity(Cause.ELSEWHERE, f"waits in the kernel ({name})")
    return Activity(Cause.ELSEWHERE, "is outside every collective")


def _debugs(frames: Sequence[Frame]) -> bool:
    return any(part in frame.file for frame in frames[: user_index(frames)] for part in _DEBUGGERS)


def _types(look: Look | None, main: Thread | None, frames: Sequence[Frame]) -> bool:
    """Whether it reads its terminal or its standard input."""
    if _in_kernel(look, _READS_TERMINAL):
        return True
    stdin = main is not None and threads.reads_file(main) and main.syscall[1:2] == ("0x0",)
    return stdin and (not frames or bool(re.search(r"\binput\(|\bstdin\b", frames[0].source)))


def _loads(frames: Sequence[Frame]) -> bool:
    return any(
        frame.name.rpartition(".")[2] in _LOADS and any(part in frame.file for part in _LOADERS)
        for frame in frames[: user_index(frames)]
    )


def _loading(member: HangMember, helpers: Sequence[HangMember], apart: float) -> Activity:
    """The activity of a rank that waits for its data loader: what one of the workers at work is doing."""
    says = "waits for its data loader"
    workers = [each for each in helpers if each.helps == member.pid]
    at_work = [each for each in workers if not _idle_worker(each)]
    if not workers:
        return Activity(Cause.LOADER, f"{says}, and no worker of it runs")
    if not at_work:
        return Activity(Cause.LOADER, f"{says}, whose workers seem idle")
    own = {each.pid: _state(each) or _own(each, apart) for each in at_work}
    worker = min(at_work, key=lambda each: (own[each.pid].works, own[each.pid].unproved, each.pid))
    frames = _frames(worker.b) or _frames(worker.a)
    at = user_frame(frames)
    where = f" in {at.name.rpartition('.')[2]}, {place_of(at)}" if at and not own[worker.pid].place else ""
    return Activity(
        Cause.LOADER,
        f"{says}: worker {worker.pid} {own[worker.pid].words}{where}",
        works=own[worker.pid].works,
        unproved=own[worker.pid].unproved,
        certain=bool(frames),
        place=place_of(at),
        frames=shown_frames(frames),
    )


def _state(worker: HangMember) -> Activity | None:
    state = (worker.b or worker.a or Look(pid=worker.pid, state="")).state
    words = {"T": "is stopped", "t": "is held by a debugger", "Z": "has ended", "": "has ended"}.get(state)
    if state == "D" and not storage(worker):
        words = f"is stuck in the kernel ({kernel_function(worker)})"
    return Activity(Cause.LOADER, words) if words else None


def _idle_worker(worker: HangMember) -> bool:
    """Whether it waits for its rank to request data."""
    frames = _frames(worker.b) or _frames(worker.a)
    waits_there = {frame.name.rpartition(".")[2] for frame in frames[:4]} & _IDLE_WORKER
    loops = any(frame.name == "_worker_loop" for frame in frames)
    return _state(worker) is None and (bool(waits_there) or (bool(frames) and not loops))


def _compiles(frames: Sequence[Frame]) -> bool:
    return any(part in frame.file for frame in frames for part in _COMPILERS[:3]) and any(
        "compile" in frame.name.lower() or "codegen" in frame.name.lower() for frame in frames
    )


def _frames(look: Look | None) -> tuple[Frame, ...]:
    thread = main_thread(look)
    return thread.frames if thread else ()


def _moved(member: HangMember) -> int:
    return max(0, member.b.bytes_moved - member.a.bytes_moved) if member.a and member.b else 0


def _busy(member: HangMember, apart: float) -> bool:
    """Whether it computes. State R in both looks counts as well: on a crowded host it may get no CPU time."""
    if member.a is None or member.b is None:
        return False
    used = (member.b.cpu - member.a.cpu) / TICKS / max(apart, 0.1)
    return used > BUSY or member.a.state == member.b.state == "R"


def _in_kernel(look: Look | None, names: Sequence[str]) -> bool:
    main = threads.main(look)
    said = ((main.waits,) if main else ()) + (look.kernel if look else ())
    return any(each.lstrip("_").startswith(name) or f"_{name}" in each for each in said for name in names)


def _holds_gil(member: HangMember) -> bool:
    first, last = main_thread(member.a), main_thread(member.b)
    asleep = member.b is not None and member.b.state == "S"
    return bool(first and last and first.owns_gil and last.owns_gil and asleep)


def _gil_holder(member: HangMember) -> str:
    """The line at which another thread holds the GIL in both looks; empty if there is none."""
    holders = []
    for look in (member.a, member.b):
        others = [t for t in (look.python if look else ()) if t.owns_gil and t is not main_thread(look)]
        holders.append(place_of(user_frame(others[0].frames)) if others else "")
    return holders[0] if holders[0] == holders[1] else ""


def _named_files(look: Look | None) -> str:
    """In words: the file that it reads or writes right now, or some of the files that it has open."""
    files = tuple(dict.fromkeys(look.files if look else ()))
    if files and threads.reads_file(threads.main(look)):
        return f": {files[0]}"
    files = tuple(name for name in files if not _DULL.search(name))
    return f" (open: {', '.join(files[:FILES])})" if files else ""


def _size(number: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1_000:
            return f"{number:.0f} {unit}"
        number /= 1_000
    return f"{number:.1f} TB"
