"""What a process waits for, by the kernel function that it sleeps in, its stack and its connections."""

import re
from collections.abc import Sequence
from dataclasses import replace

from doctor.hang.judge.judgement import Activity, Cause
from doctor.hang.judge.locks import waits_for_lock
from doctor.hang.judge.progress import NONE, Ends, Progress, asked, elsewhere
from doctor.live import threads
from doctor.live.collectives import started_beside
from doctor.live.evidence import Connection, Frame, JobMember, Look, PythonThread, Thread
from doctor.live.onhost.descriptors import OF_COLLECTIVES
from doctor.live.places import frames_of, main_thread, place_of, short, user_frame, user_index
from doctor.live.wires import is_lossy
from doctor.text.hostprogram import sections

_BY = {name: tuple(words.split()) for name, words in sections(__file__, "waiting.txt")["names"].items()}
_TOLD = sections(__file__, "do.txt")
_DO, _SAYS = _TOLD["do"], _TOLD["waits"]
_BY["storage"] += _BY["dead storage"]
_BY["network"] += _BY["local"]
_NO_ANSWER = "a file system that does not answer"
_STOPPED = re.compile(r"process (\d{1,9}) \(.*, stopped\)$")
_DULL = re.compile(
    r"\.(?:so|py|pyc|log|out|err|jsonl)\b[^/]*$|/(?:log|std(?:out|err))[^/]*$|^/(?:dev|proc|sys)/"
)
_LOOP = "/asyncio/"
"""Files of a loop that may wait for anything."""
_TAKES = re.compile(r"\bwith\b|\bacquire\(")
_BLOCKS = (*_BY["network"], *_BY["reads pipe"], *_BY["writes pipe"], *_BY["storage"], "do_wait")
_MAY_BE_ASKED = (Cause.SLEEPS, Cause.LOCK, Cause.QUEUE, Cause.INPUT, Cause.AWAITS)
SLOW = ", which may be slow"
PATIENCE = 600.0
"""Seconds after which the answer of a service is no longer expected: those between them give up earlier."""
TRICKLE = 1_000
"""Bytes per second over the network that may be slow work, or a heartbeat."""
FILES = 3


def waits_for(
    member: JobMember, frames: Sequence[Frame], did: Progress, apart: float, ranks: Ends = NONE
) -> Activity:
    """What it waits for. It is unproved if it may be work that goes on, or an answer that may still come."""
    if locked := waits_for_lock(member, frames, apart, woken=did.woken):
        return locked
    found = _waits_for(member, frames, ranks)
    if found.cause is Cause.SLEEPS and did.woken:
        found = replace(found, words="sleeps again and again", polls=True, do=_DO["polls"])
    doubt = "" if found.unproved else _doubt(found, member, did, apart, ranks)
    return doubted(found, doubt) if doubt else found


def doubted(found: Activity, doubt: str) -> Activity:
    """The wait, which may be work all the same: a file system that answered at times does answer."""
    words = found.words.replace(_NO_ANSWER, "storage") if found.cause is Cause.STORAGE else found.words
    return replace(found, words=f"{words}{doubt}", unproved=True)


def _doubt(found: Activity, member: JobMember, did: Progress, apart: float, ranks: Ends) -> str:
    """Why it may work all the same, in words that follow what it waits for; empty if it stands still."""
    sleeps = found.cause is Cause.SLEEPS and not did.woken
    if did.calls:
        return ", and reads or writes little in between"
    if did.network > TRICKLE * max(apart, 1.0) and not sleeps:
        return ", and sends or receives little over the network"
    if did.lines:
        return ", and goes from line to line"
    if did.other_thread and found.cause is not Cause.GIL:
        return "; another thread of it works"
    flushes = threads.in_kernel(member.b, _BY["flushes"]) and not threads.in_kernel(
        member.b, _BY["dead storage"]
    )
    if found.cause is Cause.STORAGE and (did.woken or flushes):
        return SLOW
    if found.cause is Cause.ELSEWHERE and (did.ran or did.woken):
        return ", and runs now and then"
    by_itself = member.b is not None and member.b.timed and not re.search(r"\bwith\b", _line(member.b))
    if found.cause in (Cause.LOCK, Cause.QUEUE) and by_itself:
        return "; the handler of a timer may end that"
    frames = frames_of(member.b)
    asks = _talks(frames) if frames else found.cause is Cause.LOCK and _thread_asks(member)
    if found.cause in (Cause.LOCK, Cause.QUEUE) and asks:
        return " until another process answers"
    if found.cause in _MAY_BE_ASKED and not sleeps:
        peer = _asked_by_a_thread(member, ranks)
        if peer is None and _thread_polls(member):
            return " until another process answers"
        return f"; {peer.peer} has not answered it yet" if peer and _may_answer(peer) else ""
    return ""


def _waits_for(member: JobMember, frames: Sequence[Frame], ranks: Ends) -> Activity:
    look = threads.waiting(member)
    main = threads.main(look)
    waits = main.waits if main else ""
    if _talks(frames, _BY["debuggers"]):
        after = any("post_mortem" in each.name + each.source for each in frames)
        do = _DO["post mortem" if after else "continue"]
        return Activity(Cause.TYPES, "waits in a Python debugger for somebody to type", do=do)
    if look and [each.frames for each in look.python] == [()] and _types(look, main, ()):
        return Activity(Cause.TYPES, "waits for somebody to type at the prompt of Python", do=_DO["prompt"])
    if threads.in_kernel(look, _BY["file locks"]):
        words = f"waits for a lock on a file{_named_files(look)}"
        return Activity(Cause.LOCK, words, certain=bool(frames), polls=True)
    if threads.in_kernel(look, _BY["opens pipe"]):
        return Activity(Cause.PIPE, _SAYS["opens"], certain=bool(frames), do=_DO["opens"])
    if threads.in_kernel(look, _BY["storage"]):
        what = _NO_ANSWER if threads.in_kernel(look, _BY["dead storage"]) else "storage"
        return Activity(Cause.STORAGE, f"waits for {what}{_named_files(look)}")
    if _holds_gil(member):
        return Activity(
            Cause.GIL, "holds the GIL in C code" + (" that sleeps" if "nanosleep" in waits else "")
        )
    if threads.in_kernel(look, ("nanosleep", *_BY["signals"])):
        return Activity(
            Cause.SLEEPS, "waits for a signal" if threads.in_kernel(look, _BY["signals"]) else "sleeps"
        )
    if threads.in_kernel(look, _BY["writes pipe"]):
        return _full_pipe(main.asks[0] if main and main.asks else "", certain=bool(frames))
    if main and (terminal := next((end for end in main.asks if end.startswith("/dev/")), "")):
        if main.syscall[:1] in (("write",), ("writev",)):
            return Activity(Cause.TERMINAL, f"writes to the terminal {terminal}, which is stopped")
        return Activity(Cause.TYPES, "waits for somebody to type")
    if threads.in_kernel(look, _BY["reads pipe"]) and main and main.asks:
        if frames and "input(" in frames[0].source and _types(look, main, frames):
            return Activity(Cause.TYPES, "waits in input() for somebody to answer at its standard input")
        return _local_answer(main.asks)
    if threads.in_kernel(look, _BY["reads pipe"]):
        fills = ", which its parent or another rank may fill" if started_beside(frames) else ""
        what = _SAYS["queue" if _gets(frames) else "pipe"]
        return Activity(Cause.PIPE, f"{what}{fills}", unproved=bool(fills))
    reads_child = threads.polls(main) and _talks(frames, ("/subprocess.py",))
    if reads_child or ("do_wait" in waits and "futex" not in waits):
        return Activity(Cause.CHILD, "waits for a child process")
    if threads.in_futex(main):
        if holder := _gil_holder(member):
            return Activity(Cause.GIL, f"waits for the GIL, which another thread of it holds at {holder}")
        if threads.shares(main) and started_beside(frames):
            return Activity(Cause.LOCK, _SAYS["other rank"], unproved=True, polls=True)
        return _lock(look, frames) if frames else Activity(Cause.LOCK, "waits for a lock or another thread")
    if _types(look, main, frames):
        return Activity(Cause.TYPES, "waits for somebody to type")
    peer = asked(member, ranks)
    others = next(elsewhere(member, look, ranks), None)
    talks = _talks(frames) if frames else threads.polls(main)
    if "put" in {each.name for each in frames[: user_index(frames)]} and _talks(frames, _BY["managers"]):
        return Activity(Cause.QUEUE, _SAYS["manager"], unproved=True, do=_DO["takes out"])
    if not peer and ((main and main.asks) or threads.in_kernel(look, _BY["local"])):
        return _local_answer(main.asks if main else ())
    if peer or threads.in_kernel(look, _BY["network"]) or (others and talks):
        return _answer(peer or others)
    if frames and talks and threads.polls(main) and not _talks(frames, (_LOOP,)):
        return Activity(Cause.INPUT, "waits for another process to answer", unproved=True)
    if threads.polls(main) and frames and f"{_LOOP}base_events.py" in frames[min(1, len(frames) - 1)].file:
        return Activity(Cause.AWAITS, _SAYS["loop"], do=_DO["awaited"])
    if threads.polls(main):
        return Activity(Cause.INPUT, "waits for input")
    if name := kernel_function(member):
        return Activity(Cause.ELSEWHERE, f"waits in the kernel ({name})")
    return Activity(Cause.ELSEWHERE, "is outside every collective")


def _line(look: Look) -> str:
    """The text of the user's innermost line."""
    own = user_frame(frames_of(look))
    return own.source if own else ""


def _gets(frames: Sequence[Frame]) -> bool:
    """Whether it takes an item from a queue of Python."""
    own = frames[: user_index(frames)]
    return any(short(each.name) == "get" and each.file.endswith(_BY["queues"]) for each in own)


def _lock(look: Look | None, frames: Sequence[Frame]) -> Activity:
    """The wait for a lock, or for another thread of its own."""
    others = [each for each in (look.python if look else ()) if each.frames and each is not main_thread(look)]
    if _gets(frames):
        left = "" if others else " (no other Python thread of it is left to put one)"
        return Activity(Cause.QUEUE, f"waits for an item of a queue{left}", certain=True, do=_DO["fills"])
    waiting = {each.tid for each in (look.threads if look else ()) if threads.in_futex(each)}
    for each in others if _TAKES.search(frames[0].source) else ():
        at = each.frames[0]
        if each.tid in waiting and _TAKES.search(at.source) and at.source != frames[0].source:
            here, other = place_of(frames[0]), f"its thread {each.name or each.tid} for one, {place_of(at)}"
            words = f"waits for a lock, {here}, and {other}: each may hold what the other waits for"
            return Activity(
                Cause.LOCK, words, certain=True, place=here, frames=(frames[0], at), do=_DO["order"]
            )
    stacks = [each.frames for each in (look.python if look else ()) if each.frames]
    pool = [each for each in stacks if _in_pool(each, "/thread.py")]
    nested = pool and all(_in_pool(each[: user_index(each)], "/_base.py") for each in (frames, *pool))
    if nested and len(stacks) <= len(pool) + 1:  # the main thread, and no other that may end a task
        return Activity(Cause.LOCK, _SAYS["pool"], certain=True, do=_DO["pool"])
    held = _may_hold(frames, others, look)
    if held and (own := user_frame(held.frames)):
        shown = tuple(filter(None, (user_frame(frames), own)))
        here, by = place_of(shown[0]), f"its thread {held.name or held.tid}"
        what = "an event, {}, which {} may set" if _signalled(frames) else "a lock, {}, which {} may hold"
        words = f"waits for {what.format(here, by)}: that is in {short(own.name)}, {place_of(own)}"
        do = _DO["sets" if _signalled(frames) else "holds"]
        its = next((each for each in (look.threads if look else ()) if each.tid == held.tid), None)
        if its and its.asks and any(part in its.waits for part in _BY["writes pipe"]):
            pipe = _full_pipe(its.asks[0], certain=True)
            do = pipe.do.replace("{place}", place_of(own)) or do
            words = f"{words}, and {pipe.words}"
        return Activity(Cause.LOCK, words, certain=True, place=here, frames=shown, do=do)
    if threads.shares(threads.main(look)):
        return Activity(Cause.LOCK, _SAYS["shared"], certain=True, do=_DO["shared"])
    if not others and user_index(frames) == 0 and _TAKES.search(frames[0].source):
        return Activity(Cause.LOCK, _SAYS["twice"], certain=True, do=_DO["twice"])
    return Activity(Cause.LOCK, "waits for a lock", certain=True)


def _in_pool(frames: Sequence[Frame], file: str) -> bool:
    return any(f"/concurrent/futures{file}" in frame.file for frame in frames)


def _may_hold(
    frames: Sequence[Frame], others: Sequence[PythonThread], look: Look | None
) -> PythonThread | None:
    """The thread that sleeps, for anything but a lock, in the function that takes the lock, or that waits for
    others below a function of the same file.
    """
    takes = next((each for each in frames if short(each.name) not in ("acquire", "__enter__")), None)
    only = _signalled(frames) and len(others) == 1
    if takes is None or not (_TAKES.search(frames[0].source) or takes is not frames[0] or only):
        return None
    kernel = {each.tid: each.waits for each in (look.threads if look else ())}
    for each in others:
        waits, beside = kernel.get(each.tid, ""), [at for at in each.frames if at.file == takes.file]
        blocks = any(part in waits for part in _BLOCKS) and "accept" not in waits
        inside = any(at.name == takes.name for at in beside) and waits not in ("", "0")
        if beside and "futex" not in waits and (blocks or inside):
            return each
    return None


def _signalled(frames: Sequence[Frame]) -> bool:
    """Whether it waits until another thread of it sets an event, or notifies a condition."""
    return frames[0].file.endswith("/threading.py") and short(frames[0].name) == "wait"


def _full_pipe(end: str, *, certain: bool) -> Activity:
    if stopped := _STOPPED.search(end):
        return Activity(Cause.STOPPED, f"writes to {end}", certain=certain, pid=int(stopped[1]))
    words = f"writes to {end}, which does not read it" if end else "writes to a pipe that is full"
    reader = re.search(r"process (\d{1,9}) ", end)
    do = f"end process {reader[1]}, or have it read what {{who}} writes at {{place}}" if reader else ""
    return Activity(Cause.PIPE, words, certain=certain, do=do)


def _answer(peer: Connection | None) -> Activity:
    """The wait for a service: whether it will answer, only the service shows."""
    where = f" of {peer.peer}" if peer else ""
    words = f"waits for an answer{where} over the network"
    if peer and is_lossy(peer):
        return Activity(Cause.INPUT, f"{words}: what is sent there is never acknowledged")
    seen = f" (ss -tlnp 'sport = :{peer.peer.rpartition(':')[2]}' there shows who listens)" if peer else ""
    do = f"find out why {peer.peer} does not answer{seen}, and limit the wait at {{place}}" if peer else ""
    return Activity(Cause.INPUT, words, unproved=peer is None or _may_answer(peer), do=do)


def _local_answer(asks: Sequence[str]) -> Activity:
    where = f" over {asks[0]}" if asks else ""
    return Activity(Cause.INPUT, f"waits for another process to answer{where}", unproved=True)


def _may_answer(peer: Connection) -> bool:
    return min(peer.last_sent, peer.last_received) < 1000 * PATIENCE


def _talks(frames: Sequence[Frame], libraries: Sequence[str] = _BY["talks"]) -> bool:
    return any(part in frame.file for frame in frames[: user_index(frames)] for part in libraries)


def _thread_asks(member: JobMember) -> bool:
    """Whether a thread of it, other than those of libraries of collectives, reads a socket, by the kernel."""
    look = member.b
    return any(
        any(part in thread.waits for part in _BY["network"]) and not thread.name.startswith(OF_COLLECTIVES)
        for thread in (look.threads if look else ())
        if thread is not threads.main(look)
    )


def _thread_polls(member: JobMember) -> bool:
    """Whether one of its threads waits for a local process, as a loop of asyncio in a thread does. Without
    stacks, threads of Python are known by their name, which is that of the main thread.
    """
    look = member.b
    main = threads.main(look)
    talking = {each.tid for each in (look.python if look else ()) if _talks(each.frames)}
    names = ("python", main.name) if main and not frames_of(look) else ()
    waits = [each for each in (look.threads if look else ()) if each.asks]
    return any(each.tid in talking or each.name.startswith(names) for each in waits)


def _asked_by_a_thread(member: JobMember, ranks: Ends) -> Connection | None:
    """The connection over which one of its threads waits for an answer. If no stack is known, any may do so.

    Many processes keep a connection that is idle, so it must have spoken last. With TLS, the other end does:
    it sends tickets after the request.
    """
    stacks = [thread.frames for thread in (member.b.python if member.b else ())]
    if any("/ssl.py" in frame.file for frames in stacks for frame in frames[: user_index(frames)]):
        return next(elsewhere(member, member.b, ranks), None)
    return asked(member, ranks) if not stacks or any(map(_talks, stacks)) else None


def _types(look: Look | None, main: Thread | None, frames: Sequence[Frame]) -> bool:
    """Whether it reads its terminal or its standard input."""
    if threads.in_kernel(look, _BY["reads terminal"]):
        return True
    stdin = main is not None and threads.reads_file(main) and main.syscall[1:2] == ("0x0",)
    return stdin and (not frames or bool(re.search(r"\binput\(|\bstdin\b", frames[0].source)))


def frozen(member: JobMember) -> bool:
    """Whether a control group keeps it from running in both looks. Kernels show this in different ways."""
    return all(look is not None and _frozen(look) for look in (member.a, member.b))


def _frozen(look: Look) -> bool:
    main = threads.main(look)
    waits = main.waits if main else ""
    if look.state == "S":
        return waits in _BY["frozen"]
    return look.state == "D" and (
        waits in _BY["frozen"] or any(each in waits for each in _BY["interruptible"])
    )


def stuck_in_kernel(member: JobMember) -> bool:
    """Whether it stayed in state D: not woken and no bytes moved between the looks, and not for storage."""
    first, last = member.a, member.b
    if first is None or last is None or first.state != "D" or last.state != "D":
        return False
    return not threads.woken(first, last) and first.bytes_moved == last.bytes_moved and not storage(member)


def storage(member: JobMember) -> bool:
    return threads.in_kernel(member.b, _BY["storage"]) or threads.in_kernel(member.a, _BY["storage"])


def kernel_function(member: JobMember) -> str:
    look = member.b or member.a
    main = threads.main(look)
    named = main.waits if main and main.waits not in ("", "0") else ""
    return named or next(iter(look.kernel if look else ()), "")


def _holds_gil(member: JobMember) -> bool:
    first, last = main_thread(member.a), main_thread(member.b)
    asleep = member.b is not None and member.b.state == "S"
    return bool(first and last and first.owns_gil and last.owns_gil and asleep)


def _gil_holder(member: JobMember) -> str:
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
