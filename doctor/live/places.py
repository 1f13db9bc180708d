"""Which frame of a stack is the user's own code, and how a place is written."""

from collections.abc import Sequence

from doctor.live.evidence import Frame, Look, PythonThread

_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python", "/lib64/python", "/torch/", "/mindspore/")
WRAPPERS = ("/vllm/distributed/", "/sglang/srt/distributed/", "/megatron/core/", "/deepspeed/comm/")
"""Files of frameworks around torch's collectives, which may lie in a checkout of the user."""
_RPC, _RAY = "torch/distributed/rpc/", "/ray/_private/"
_POOL, _LOOP = "/concurrent/futures/", "/asyncio/"
_CELL = "<ipython-input-"
FRAMES = 3
"""The most frames of a stack that a report shows."""


def is_library(file: str) -> bool:
    inner = file.startswith("<") and not file.startswith(_CELL)
    return inner or any(part in file for part in (*_LIBRARIES, *WRAPPERS))


def main_thread(look: Look | None) -> PythonThread | None:
    """The thread that trains: the main thread, unless that only serves another one, as in actors of Ray and
    in workers of RPC, or waits until another one is done, as with a checkpoint that a thread writes.
    """
    main = _first_thread(look)
    others = [thread for thread in (look.python if look else ()) if thread is not main]
    at_work = [thread for thread in others if _has_own_code(thread)]
    awaited = _awaited(main, others, at_work)
    if len(awaited) == 1:
        return awaited[0]
    if main is None:
        return main
    remote = any(_RPC in frame.file for frame in main.frames[: user_index(main.frames)])
    called = [one for one in at_work if any(_RPC in frame.file for frame in one.frames)] if remote else []
    if not called and len(at_work) == 1 and not _has_own_code(main):
        called = at_work if any(_RAY in frame.file for frame in main.frames) else []
    return min(called, key=lambda one: one.tid, default=main)


def _awaited(
    main: PythonThread | None, others: Sequence[PythonThread], at_work: Sequence[PythonThread]
) -> Sequence[PythonThread]:
    """The threads that the user's code in the main thread may wait for: those of a pool, or one to join."""
    if main is None or not _has_own_code(main):
        return ()
    library = main.frames[: user_index(main.frames)]
    if any(
        (short(frame.name) == "result" and _POOL in frame.file) or _LOOP in frame.file for frame in library
    ):
        pool = [each for each in others if any(f"{_POOL}thread.py" in frame.file for frame in each.frames)]
        return [each for each in pool if short(each.frames[0].name) != "_worker"]
    joins = any(short(frame.name) == "join" and "/threading.py" in frame.file for frame in library)
    return at_work if joins else ()


def _has_own_code(thread: PythonThread) -> bool:
    return user_index(thread.frames) < len(thread.frames)


def _first_thread(look: Look | None) -> PythonThread | None:
    """The thread whose TID is the PID. py-spy may list other threads first."""
    threads = [thread for thread in look.python if thread.frames] if look else []
    found = [thread for thread in threads if look and thread.tid == look.pid]
    found += [thread for thread in threads if thread.name == "MainThread"]
    return next(iter(found or threads[:1]), None)


def frames_of(look: Look | None) -> tuple[Frame, ...]:
    """The stack of the main thread; empty if it is unknown."""
    thread = main_thread(look)
    return thread.frames if thread else ()


def user_index(frames: Sequence[Frame]) -> int:
    """The index of the innermost frame outside libraries; the number of frames if all are in libraries."""
    return next((at for at, frame in enumerate(frames) if not is_library(frame.file)), len(frames))


def user_frame(frames: Sequence[Frame]) -> Frame | None:
    at = user_index(frames)
    if at < len(frames):
        return frames[at]
    beneath = ("/torch/", *WRAPPERS)
    beyond = (frame for frame in frames if not frame.file.startswith("<"))
    named = (frame for frame in beyond if not any(part in frame.file for part in beneath))
    return next(named, frames[0] if frames else None)


def place_of(frame: Frame | None) -> str:
    """ "train.py:57" """
    return f"{frame.file.rpartition('/')[2]}:{frame.line}" if frame else ""


def short(function: str) -> str:
    """The name without its class, which only some versions of Python include."""
    return function.rpartition(".")[2]


def shown_frames(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """The user's innermost frames, or the libraries' if the user has none."""
    return tuple(([frame for frame in frames if not is_library(frame.file)] or list(frames))[:FRAMES])


def lines_of(frames: Sequence[Frame]) -> tuple[object, ...]:
    """The functions and lines of a stack, each once, to compare it with another."""
    return tuple(dict.fromkeys((frame.name, frame.file, frame.line) for frame in frames))


FASTEST = 10_000
"""A counter that changes by at least this much between two looks does not count steps."""


def made_step(before: int | None, now: int | None) -> bool:
    """Whether a counter shows training steps. The counter of an endless loop rises too fast."""
    return before is not None and now is not None and 0 < abs(now - before) < FASTEST


def step_of(look: Look | None) -> int | None:
    thread = main_thread(look)
    return thread.step if thread else None
