"""Adds to a line what the lines around it say: where a rank was when Ctrl-C ended it, and the call in which
it waited; what found no space; what MindSpore's data pipeline complains of.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import dropwhile, pairwise, takewhile

from doctor.logs.forms.block import goes_on
from doctor.logs.reading.cut_off import BEGINS, FRAME
from doctor.text.hostprogram import table

INTERRUPTED = "KeyboardInterrupt"
UNCAUGHT = "terminate called after throwing"
_CALLS, *_ROWS = ("|".join(rows) for _, *rows in table(__file__, "stacks.txt"))
_WAITS, _COLLECTIVE, _RAISED, _FRAME, _LIBRARY, _ENVIRON, _PYTHONS_OWN, _WHAT = map(
    re.compile, (rf"\b({_CALLS})\(", *_ROWS)
)
_OWN = re.compile(r"[a-z]\w{0,40}")
NO_SPACE = "[Errno 28] No space left on device"
_DURING = "During handling of the above exception"
_MOST_HANDLED = 240
_NEAR = 6
MOST_LINES = 40
"""The most lines of a traceback that are kept: the innermost."""
PIPELINE = "- Dataset Pipeline Error Message:"
WORDS = (INTERRUPTED, NO_SPACE, PIPELINE, UNCAUGHT)
_BY_USER = "Execute user Python code failed"
_RULE = re.compile(r"\s{0,8}-{20,}\s*$")


def stopped_at(text: str, prefix: str, above: Iterable[str]) -> str:
    """The line with the place of the rank added: "… (train.py:31, in average, waits in all_reduce)".

    `above` are the lines before it, the nearest first; `prefix` is the launcher's prefix of the line.
    """
    waits = source = ""
    for own in _own(above, prefix):
        frame = _FRAME.match(own)
        if frame is None:
            source = own
            continue
        if not _LIBRARY.search(frame["file"]):
            if waits and (asked := _WAITS.search(source)):
                waits = asked[1]
            place = f"{frame['file'].rpartition('/')[2]}:{frame['line']}, in {frame['where']}"
            return f"{text.rstrip()} ({place}{f', waits in {waits}' if waits else ''})"
        if "/torch/distributed/" in frame["file"]:
            waits = frame["where"] if _OWN.fullmatch(frame["where"]) else waits or "a collective"
        elif frame["file"].endswith("torch/autograd/graph.py"):
            waits = "backward"
        source = ""
    return text


def with_what(text: str, below: Iterable[str]) -> str:
    """The line of C++ about an exception that nothing caught, with the message of the exception."""
    prefix = text.partition(UNCAUGHT)[0].rstrip()
    near = _own((line for _, line in zip(range(_NEAR), below, strict=False)), prefix)
    return text.rstrip() + next((found[0] for found in map(_WHAT.match, near) if found), "")


def in_semlock(text: str, above: Iterable[str]) -> str:
    """The line, if it is about a semaphore, which is a file in /dev/shm: "… (in SemLock)"."""
    near = (line for _, line in zip(range(_NEAR), above, strict=False))
    semaphore = any("_multiprocessing.SemLock(" in line for line in near)
    return f"{text.rstrip()} (in SemLock)" if semaphore else text


def of_pipeline(text: str, above: Iterable[str], below: Iterable[str]) -> str:
    """The heading of MindSpore's message with what stands below it: "… (Crop: Crop height is too large.)", or
    with the exception of the program from the call stack above it. `above` has the nearest line first.
    """
    prefix = text.partition(PIPELINE)[0]
    said = next((each for each in _own(below, prefix) if each and not _RULE.match(each)), "")
    said = said.removeprefix("[ERROR] ").strip()
    if _BY_USER in said:
        said, place = "", ""
        for line in _own(above, prefix):
            said = said or (line.strip() if _RAISED.match(line.strip()) else "")
            frame = _FRAME.match(line)
            if said and frame:
                place = f", {frame['file'].rpartition('/')[2]}:{frame['line']}, in {frame['where']}"
                break
        said += place
    return f"{text.rstrip()} ({said})" if said else text


def traceback_above(above: Iterable[str], *prefixes: str) -> tuple[str, ...]:
    """The lines of the traceback above an exception, from its heading on; empty if none is there.

    `above` are the lines before it, the nearest first; `prefixes` stand in front of its lines.
    """
    found: list[str] = []
    lines = (line for line in above if line.startswith(prefixes))
    owns = (line.removeprefix(next(filter(line.startswith, prefixes))) for line in lines)
    for own, over in pairwise((*owns, "")):
        begins = BEGINS in own
        if not (begins or goes_on(own, over)):
            break
        found.append(own.rstrip())
        if begins:
            break
    return tuple(reversed(found[:MOST_LINES])) if any(map(_FRAME.match, found)) else ()


def raised_at(above: Sequence[str]) -> re.Match[str] | None:
    """The innermost frame of the traceback above an exception that is not in a module of Python's own."""
    frames = [*filter(None, map(FRAME.search, takewhile(lambda line: BEGINS not in line, above)))]
    others = (each for each in frames if not _PYTHONS_OWN.search(each["file"]))
    return next(others, frames[0] if frames else None)


def handled(above: Sequence[str], prefix: str) -> str:
    """The exception that was being handled when that one was raised, whose traceback is above it."""
    own = [line.removeprefix(prefix).strip() for line in dropwhile(lambda line: BEGINS not in line, above)]
    said = [line for line in own[1:9] if line]
    if not (said and said[0].startswith(_DURING)):
        return ""
    return next(filter(_RAISED.match, said[1:]), "")[:_MOST_HANDLED]


def of_environ(above: Sequence[str]) -> bool:
    """Whether the exception is that of a variable that is not in os.environ."""
    frame = next(filter(None, map(FRAME.search, above)), None)
    return (
        frame is not None and _ENVIRON.search(frame["file"]) is not None and frame["where"] == "__getitem__"
    )


def own_frame(frames: Sequence[str]) -> tuple[str, int] | None:
    """The file and the line of the innermost call that is not in a library."""
    for each in filter(None, map(_FRAME.match, reversed(frames))):
        if not _LIBRARY.search(each["file"]):
            return each["file"], int(each["line"])
    return None


def waits_in(frames: Sequence[str]) -> str:
    """The collective, or backward, in which a program waited: "broadcast (train.py:66)"; empty if unknown."""
    calls = [each for each in map(_FRAME.match, frames) if each and "/torch/distributed/" in each["file"]]
    names = [each["where"] for each in calls if _COLLECTIVE.fullmatch(each["where"])]
    names += ["backward"] * any("torch/autograd/graph.py" in each for each in frames)
    place = own_frame(frames)
    return f"{names[0]} ({place[0].rpartition('/')[2]}:{place[1]})" if names and place else ""


def _own(lines: Iterable[str], prefix: str) -> Iterable[str]:
    """The texts of the lines with that prefix."""
    return (line[len(prefix) :] for line in lines if line.startswith(prefix))
