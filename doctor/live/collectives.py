"""Whether a stack waits in a collective, or for its device, by its frames alone."""

import re
from collections.abc import Sequence

from doctor.live.evidence import Frame, JobMember
from doctor.live.places import frames_of, user_index
from doctor.text.hostprogram import sections

RPC, RPC_CALLS = "rpc.", "torch/distributed/rpc/api.py"
"""Before the name of a call that waits for another rank's answer, and the file of such calls."""
MEETING = "init_process_group"
"""The function in which each rank waits until all ranks are there."""
_WORDS = sections(__file__, "collectives.txt")
FILES = {name: tuple(words.split()) for name, words in _WORDS["files"].items()}
_WAIT = _WORDS["functions"]["wait"].split()
_CLIPS = "torch/nn/utils/clip_grad.py"
NOTICES = re.compile(r"\.(?:item|cpu|tolist|numpy|asnumpy|synchronize)\(|clip_grad_norm_\(|\.to\(['\"]cpu")
"""Lines at which the host waits for its device."""
WAITS = re.compile(
    r"(?<=\bi)(?:recv|send)\(|\.wait\(|"
    r"\b(?:comm\w*|hvd|COMM_WORLD)\.(?:I?\w*(?:reduce|gather|cast|all|arrier|recv|send|probe)\w*)\(",
    re.I,
)


def meets(member: JobMember) -> bool:
    """Whether its stack waits for the first meeting of all ranks."""
    frames = (*frames_of(member.a), *frames_of(member.b))
    return any(frame.name == MEETING and "torch/distributed/" in frame.file for frame in frames)


def started_beside(frames: Sequence[Frame]) -> bool:
    """Whether multiprocessing started it, as it may have started other ranks, with locks for all of them."""
    return any("/multiprocessing/process.py" in frame.file for frame in frames)


def waits_in(frames: Sequence[Frame], *, device: bool = True) -> str:
    """The operation in which a stack waits for other ranks or for its device, by the stack alone; empty if it
    shows none. `device`: whether the job has devices that a line of Python may wait for.
    """
    cut = user_index(frames)
    if operation := collective_of(frames) or synchronises(frames[:cut]):
        return operation
    source = frames[0].source.rpartition(" ... ")[2] if cut == 0 and frames else ""
    found = WAITS.search(source) or (NOTICES.search(source) if device else None)
    return called_by(found) if found else ""


def called_by(found: re.Match[str]) -> str:
    """The name of the call at which the host waits, by its line."""
    return found[0].strip(".(").rpartition(".")[2]


def collective_of(frames: Sequence[Frame]) -> str:
    """The outermost function of a collective, which is the one that the user called, or a barrier of
    multiprocessing, at which ranks of one parent wait for each other.
    """
    named, library = "", frames[: user_index(frames)]
    for frame in library:
        shared = "/multiprocessing/" in library[0].file + frame.file and started_beside(frames)
        if shared and frame.name in ("Barrier.wait", "BarrierProxy.wait"):
            return frame.name
        if any(part in frame.file for part in FILES["collectives"]):
            name = frame.name.rpartition(".")[2]
            if RPC_CALLS in frame.file:
                name = RPC + name if name not in ("wrapper", "_invoke_rpc") else named
            named = name if not name.startswith("_") or not named else named
    return named or next((each.name for each in library[:1] if each.name in _WAIT), "")


def in_backward(frames: Sequence[Frame]) -> bool:
    """Whether the engine computes gradients; collectives of the gradients are waited for in there, too."""
    return any(frame.name == "_engine_run_backward" for frame in frames[: user_index(frames)])


def synchronises(library: Sequence[Frame]) -> str:
    for frame in library:
        name = frame.name.rpartition(".")[2]
        if name == "synchronize" and any(part in frame.file for part in FILES["synchronises"]):
            return name
        if _CLIPS in frame.file:
            return "clip_grad_norm_"
    return ""
