"""Fills in a line from its neighbours: torchrun's tables, Open MPI's frames, messages of several lines.

`above` are the lines before it, the nearest first; `below` are the lines after it.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from doctor.logs.forms.line_facts import LineFacts, Parse
from doctor.logs.forms.times import DATED, Clock
from doctor.logs.forms.torch import is_exception
from doctor.logs.model import Form

FAR = 40
"""The most lines before and after a line that are examined."""

_FIELD = re.compile(
    r" {2}(?P<key>time|host|rank|exitcode|error_file|traceback) {0,6}: (?P<value>.{0,300})", re.DOTALL
)
_TIME = re.compile(DATED)
_RANK = re.compile(r"(?P<rank>\d{1,6}) \(local_rank: (?P<local>\d{1,4})\)")
_PID = re.compile(r"-?\d{1,4} \(pid: (?P<pid>\d{1,9})\)")
FIRST = ("Root Cause (first observed failure):", "Root Cause:")
"""The heading of the entry of the rank that torchrun saw fail first, and that of torch before 1.10."""
_OF_RANK = re.compile(r" \(RANK (\d{1,6})\)$")
_SYSLOGD = re.compile(r"Message from syslogd@([\w.-]{1,80}) at ")
_SPAWNED = re.compile(r"-- Process (?P<local>\d{1,6}) terminated with the following error:")
"""What mp.spawn writes above the traceback of one of its processes."""
_FRAME = re.compile(r"(?<!-)-{70,80}$")
_INDENT = "  "
"""torchrun's table indents the traceback of a rank by this."""
_ANY_NAME = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,9}[A-Za-z_]\w{0,60}(?:: |\s{0,9}$)")
_CALL = re.compile(r"  File \"[^\"]{1,500}\", line \d{1,9}, in ")
_FLAT, _MARKS = re.compile(r"File \"[^\"]{1,500}\", line \d"), re.compile(r"[\^~]+$")
_OF_FRAME = 3
"""The lines of a frame: the place, the code, and the marks below it."""
_RAY_TASK = re.compile(r"ray::.{1,400}?\(pid=(?P<pid>\d{1,9}), ip=\[?(?P<ip>[\w.:-]{1,45})")
_NCCL = re.compile(r"Last error:|nccl\w{1,40}: ")
"""Lines of torch's message of an error of NCCL: what NCCL says last stands below them."""
_GO_ON = frozenset({Form.CANN, Form.MINDSPORE, Form.PLOG, Form.TORCH_NPU, Form.TORCH, Form.PYTHON})
"""Forms whose messages may have several lines."""


class LineContext(Protocol):
    """The neighbours of a line, which are only computed if they are needed."""

    def above(self, most: int = FAR) -> Sequence[str]:
        """The lines before it, the nearest first."""

    def below(self) -> Sequence[str]:
        """The lines after it."""

    def dashes(self) -> bool:
        """Whether there are long lines of dashes before and after it."""


def in_block(text: str, facts: LineFacts, around: LineContext, parse: Parse, clock: Clock) -> None:
    """Fill in what the line itself does not state."""
    if _FIELD.match(text, facts.start):
        _table(text, facts, around.above(), around.below(), parse, clock)
    elif text.startswith(FIRST, facts.start):
        _table(text, facts, (), around.below()[1:], parse, clock)  # below "[0]:"
    elif (
        facts.form is Form.PLAIN
        and around.dashes()
        and _near_frame(around.above())
        and _near_frame(around.below())
    ):
        facts.form = Form.MPI
    elif facts.form is Form.KERNEL and facts.host is None:
        above = next(iter(around.above()), "")
        facts.host = told[1] if (told := _SYSLOGD.match(above)) else None
    elif facts.form is Form.PYTHON:
        spawned(facts, around.above())
        of_ray_task(text, facts, around.above())
        if facts.rank is None and facts.pid is None:
            facts.rank = _logged(around.above(), parse)
    elif not facts.headed and facts.at is None:
        _head(text, facts, around, parse)


def in_table(text: str, facts: LineFacts, around: LineContext, parse: Parse, clock: Clock) -> None:
    """Note the rank whose traceback the line ends, if the traceback stands in torchrun's table."""
    at = facts.start + len(_INDENT)
    if (
        facts.form is not Form.PLAIN
        or not text.startswith(_INDENT, facts.start)
        or not is_exception(text, at)
    ):
        return
    prefix, above = text[: facts.start], around.above()
    for place, line in enumerate(above):
        own = line.removeprefix(prefix)
        if own.startswith("  traceback : Traceback (most recent"):
            _table(text, facts, above[place:], (), parse, clock)
            facts.form, facts.level, facts.headed, facts.start = Form.PYTHON, "ERROR", True, at
        if own.strip() and not own.startswith(_INDENT * 2):
            return


def ends_traceback(text: str, facts: LineFacts, around: LineContext) -> None:
    """Note that a line ends a traceback, whatever its exception is called: it stands right below a frame."""
    if facts.form is not Form.PLAIN or not _ANY_NAME.match(text, facts.start):
        return
    prefix = text[: facts.start]
    above = [line.removeprefix(prefix) for line in around.above()[:_OF_FRAME]]
    if above and above[0].startswith(_INDENT) and any(map(_CALL.match, above)):
        facts.form, facts.level, facts.headed = Form.PYTHON, "ERROR", True


def lone(text: str, facts: LineFacts, around: LineContext, parse: Parse) -> None:
    """Note that an indented line is an exception: the line above it is not one that it continues."""
    at = facts.start + len(text[facts.start :]) - len(text[facts.start :].lstrip(" "))
    if facts.form is not Form.PLAIN or at == facts.start or not is_exception(text, at):
        return
    prefix = text[: facts.start]
    own = (line.removeprefix(prefix) for line in around.above() if line.startswith(prefix))
    head = next((line for line in own if line.strip() and not line.startswith(text[facts.start : at])), "")
    if not (head.rstrip().endswith((":", "(", ",", "{", "[")) or parse(head).headed):
        facts.form, facts.level, facts.headed, facts.start = Form.PYTHON, "ERROR", True, at


def spawned(facts: LineFacts, above: Sequence[str]) -> None:
    """Note the process of mp.spawn, or the rank, that the heading of its traceback names."""
    if facts.rank is None and facts.local is None:
        found = next(filter(None, map(_SPAWNED.search, above)), None)
        facts.worker = int(found["local"]) if found else facts.worker
        head = next((line for line in above if "Traceback (most recent call last)" in line), "")
        facts.rank = int(told[1]) if (told := _OF_RANK.search(head)) else None


def _logged(above: Sequence[str], parse: Parse) -> int | None:
    """The rank in whose record a traceback begins: "[12:00:00 TP3] Stopped: Traceback (most …"."""
    head = next((line for line in above if line[:1] not in (" ", "\t")), "")
    return parse(head).rank if "Traceback (most recent call last)" in head else None


def goes_on(own: str, over: str) -> bool:
    """Whether a line under `over` belongs to a traceback, whose blanks may have been lost on the way."""
    return own[:1] in (" ", "\t") or bool(_FLAT.match(own) or _FLAT.match(over) or _MARKS.match(own))


def of_ray_task(text: str, facts: LineFacts, above: Sequence[str]) -> bool:
    """Whether it is the exception of a Ray task; then the process that raised it is filled in, as another
    one prints it. The task stands above its frames.
    """
    prefix = text[: facts.start]
    for own, over in pairwise((*(line.removeprefix(prefix) for line in above), "")):
        if goes_on(own, over):
            continue
        task = _RAY_TASK.search(own) if "ray::" in own else None
        if task:
            facts.pid, facts.host, facts.shared = int(task["pid"]), task["ip"], True
        return task is not None
    return False


def _table(
    text: str, facts: LineFacts, above: Sequence[str], below: Sequence[str], parse: Parse, clock: Clock
) -> None:
    """Fill in the other fields of the same entry of torchrun's table."""
    facts.form = Form.ELASTIC
    for lines in ([text], above, below):
        for line in lines[:8]:
            field = _FIELD.match(line, parse(line).start)
            if not field:
                break
            _field(field["key"], field["value"], facts, clock)


def _field(key: str, value: str, facts: LineFacts, clock: Clock) -> None:
    if key == "time" and facts.at is None:
        time = _TIME.match(value)
        if time:
            facts.at, facts.zoned = clock.at(time)
    elif key == "host" and facts.host is None:
        host = value.strip()[:253]
        facts.host = host if host not in ("", "localhost") else None
    elif key == "rank" and (rank := _RANK.match(value)):
        facts.rank, facts.local, facts.task = int(rank["rank"]), int(rank["local"]), False
    elif key == "exitcode" and (pid := _PID.match(value)):
        facts.pid = int(pid["pid"])


def _near_frame(lines: Sequence[str]) -> bool:
    """Whether one of Open MPI's lines of dashes is near; its messages stand between two of them."""
    return any(_FRAME.search(line.rstrip()) for line in lines[:FAR])


def _head(text: str, facts: LineFacts, around: LineContext, parse: Parse) -> None:
    """Fill in values from the line that it continues: the nearest header above blank and indented lines, and
    above those between which NCCL puts its last error.
    """
    last = any(line[facts.start :].rstrip() == "Last error:" for line in around.above(1))
    if not (last or text[facts.start : facts.start + 1] in " \t" or facts.form is Form.CANN):
        return
    nearest_first = ((0, 4), (4, FAR))  # the header is mostly near
    for line in (each for at, most in nearest_first for each in around.above(most)[at:]):
        head = parse(line)
        if head.rank != facts.rank and facts.rank is not None:
            continue  # another rank's line in between
        own = line[head.start :]
        if last and _NCCL.match(own):
            continue
        if head.headed or (last and head.form is Form.TORCH):
            if head.form in _GO_ON and (facts.form in (Form.PLAIN, head.form) or facts.form is Form.CANN):
                facts.inherit(head)
            return
        if own.strip() and own[0] not in " \t" and head.form is not Form.CANN:
            return
