"""Device tools, which may hang or serve one caller at a time, are called one by one in one shell loop.

Each call is framed: its output, then a line `@ KEY HOW`, where HOW is the exit code, `hung SECONDS`, `stuck
SECONDS` if it could not even be killed, `long`, or `unasked` with the reason. So the output up to the point
where the fact was stopped can be read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from doctor.errors import UnreadableOutput
from doctor.probe.shell import TOOLS

T = TypeVar("T")
CALL_SECONDS = 4
"""Time limit of one call, unless the script sets L to something else."""


def calling(tool: str, elsewhere: str, seconds: int) -> str:
    """It finds the tool and defines `q`, which calls it: again if it says so, not after two hung calls."""
    find = f't=$(command -v {tool}) || t={elsewhere}; [ -x "$t" ] || {{ [ -e "$t" ] && exit 126; exit 127; }}'
    return f"{find}\n{defining(seconds)}"


def defining(seconds: int, most_bytes: int = 30_000) -> str:
    """The same for a script that sets `t` to its tool itself; `most_bytes` limits one answer."""
    limits = f"E=$((u+{seconds - 1})) L={CALL_SECONDS} B={most_bytes} h= w="
    return f"{TOOLS}\nnow; {limits}\nnap 0.1"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The answer to one call, stdout and stderr together. `failed` says why there is none."""

    key: str
    rc: int
    text: str
    failed: str = ""
    unasked: str = ""
    hung: int = 0
    """How many seconds the call was waited for, in vain."""
    stuck: bool = False
    """It hung and could not even be killed: it waits in the kernel, for the driver."""


_FRAME = re.compile(r"^@ (\S{1,64}) (?:(\d{1,3})|(hung|stuck|unasked|long)(?: (\w{1,8}))?)$", re.MULTILINE)


def calls(text: str, tool: str) -> Iterator[ToolCall]:
    """The calls that ended, or were skipped for a reason, in the order in which they were made."""
    start = 0
    for frame in _FRAME.finditer(text):
        key, rc, how, detail = frame.groups()
        if rc:
            yield ToolCall(key, int(rc), text[start : frame.start()].strip("\n"))
        else:
            failed = why_not(tool, how, detail or "")
            seconds = int(detail) if how in ("hung", "stuck") and (detail or "").isdecimal() else 0
            yield ToolCall(key, 0, "", failed, detail if how == "unasked" else "", seconds, how == "stuck")
        start = frame.end()


def answered(call: ToolCall | None, tool: str) -> ToolCall:
    """The call. Raises UnreadableOutput if it was not made, or has no answer."""
    if call is None or call.failed:
        raise UnreadableOutput(call.failed if call else f"{tool} did not answer in time")
    return call


def why_not(tool: str, how: str, detail: str) -> str:
    asked = {
        "hung": f"{tool} did not answer within {detail} s",
        "stuck": f"{tool} did not answer within {detail} s, and could not be killed",
        "long": f"{tool} printed without end",
    }
    unasked = {
        "busy": f"{tool} was busy all the time",
        "hung": f"not asked: {tool} had hung twice before",
        "writes": f"not asked: {tool} would note the answer in its configuration",
    }
    return asked.get(how) or unasked.get(detail, f"not asked: the time for {tool} was used up")


def some(found: T, call: ToolCall, tool: str) -> T:
    """What was read. Raises UnreadableOutput if that is nothing."""
    if not found:
        raise UnreadableOutput(complaint(call, tool))
    return found


def complaint(call: ToolCall, tool: str) -> str:
    """What a tool printed instead of the expected answer."""
    lines = [line.strip() for line in call.text.splitlines() if line.strip()]
    said = lines[-1][:120] if lines else f"{tool} printed nothing"
    return f"{said} (exit code {call.rc})" if call.rc else said
