"""What each node runs under srun, and the lines that it exchanges with the controller. Pure.

srun gives its own stdin to every task, and mixes the tasks' output line by line. So each line to a host
carries the names of its recipients, and each task picks its own; each line from a host carries the host's
name and a key that its task drew and showed to the controller alone, so that no node can speak for another.
Slurm may cut lines longer than 1023 bytes: longer ones travel in pieces, and each piece but the last ends in
a bare `%`.

The task needs a POSIX sh and GNU sed. It identifies itself with the run's token, which is in its environment
but not in a command line, since others can read those. It receives the command and its number of lines, runs
it with the rest as stdin, and prints the exit status when both streams have ended. It ends with its stdin.
"""

import hmac
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from doctor.text.hostprogram import host_program

TOKEN = "DOCTOR_TOKEN"
"""The variable that holds the run's token."""
PIECE = 400
"""The longest piece of a line: with token and longest name, Slurm never cuts it, even if it is all `%`."""
EVERYBODY = ","

TASK = host_program(__file__, "task.sh").strip("\n")
assert str(PIECE) in TASK


def to_hosts(names: Collection[str] | None, lines: Iterable[bytes]) -> bytes:
    """Lines for the stdin of these hosts' programs; None means all hosts."""
    head = _address(names) + b" ="
    return b"".join(head + line + b"\n" for line in lines)


def hang_up(names: Collection[str] | None) -> bytes:
    """The line that ends the stdin of these hosts' programs; None means all hosts."""
    return _address(names) + b" q\n"


def _address(names: Collection[str] | None) -> bytes:
    return (EVERYBODY if names is None else f",{','.join(names)},").encode("ascii")


def opening(command: str, stdin: bytes) -> list[bytes]:
    """The first lines for a program: its command, and its input."""
    words = command.encode().split(b"\n")
    rest = stdin.split(b"\n")
    return [b"%d" % len(words), *words, *(rest if rest[-1] else rest[:-1])]


def openings(texts: dict[str, list[bytes]]) -> bytes:
    """The first lines for all hosts: what begins or ends the same for all of them is sent once."""
    lists = list(texts.values())
    shortest = min(map(len, lists))
    head = next((n for n in range(shortest) if any(each[n] != lists[0][n] for each in lists)), shortest)
    most = shortest - head
    tail = next((n for n in range(most) if any(each[-1 - n] != lists[0][-1 - n] for each in lists)), most)
    sent = [to_hosts(None, lists[0][:head])]
    for name, lines in texts.items():
        sent.append(to_hosts([name], lines[head : len(lines) - tail]))
    sent.append(to_hosts(None, lists[0][len(lists[0]) - tail :]))
    return b"".join(sent)


@dataclass(frozen=True, slots=True)
class TaskLine:
    """One line of srun's output. `host` is None if srun itself, or something else, printed it."""

    host: str | None
    kind: Literal["data", "hello", "contested", "ended", "other"]
    """contested: another task has already identified itself as this host."""
    data: bytes = b""
    rc: int | None = None


class Keys:
    """Which task and key belong to which of `names`: a task that knows the run's token says its own."""

    def __init__(self, token: str, names: Collection[str]) -> None:
        self._hello = re.compile(rb"%s (\S+) %%h ([0-9a-f]{%d})$" % (token.encode("ascii"), KEY))
        self._names = {name.encode("ascii"): name for name in names}
        self._of: dict[bytes, tuple[bytes, bytes]] = {}
        self._is: dict[bytes, bytes] = {}

    def greeting(self, task: bytes, line: bytes) -> TaskLine | None:
        """The greeting of a host that identifies itself; a task can only be one host."""
        found = self._hello.search(line)
        if not found or found[1] not in self._names or self._is.setdefault(task, found[1]) != found[1]:
            return None
        known = self._of.setdefault(found[1], (task, found[2]))
        return TaskLine(self._names[found[1]], "hello" if known == (task, found[2]) else "contested")

    def speaker(self, task: bytes, line: bytes) -> tuple[str, bytes] | None:
        """The host that sent a line, and its text; a Prolog may have left a line open before it."""
        for found in _MARK.finditer(line):
            of, key = self._of.get(found[2], (b"", b""))
            if of == task and hmac.compare_digest(key, found[1]):
                return self._names[found[2]], line[found.end() :]
        return None


KEY = 32
_TASK = re.compile(rb" *(\d{1,9}): ")
"""The prefix of a line that srun itself writes with --label: the number of the task."""
_MARK = re.compile(rb"([0-9a-f]{%d}) ([A-Za-z0-9._-]+) " % KEY)


class StreamSplitter:
    """Splits one stream of srun by host."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._begun = bytearray()

    def hear(self, data: bytes) -> list[TaskLine]:
        *lines, rest = (bytes(self._begun) + data).split(b"\n")
        self._begun = bytearray(rest[-LONGEST_LINE:])
        return [self._parse_line(line) for line in lines]

    def rest(self) -> list[TaskLine]:
        """The last line, if the stream ended without a line end."""
        line, self._begun = bytes(self._begun), bytearray()
        return [self._parse_line(line)] if line else []

    def _parse_line(self, line: bytes) -> TaskLine:
        label = _TASK.match(line)
        task, line = (label[1], line[label.end() :]) if label else (b"", line)
        speaker = self._keys.speaker(task, line)
        if speaker is None:
            return self._keys.greeting(task, line) or TaskLine(None, "other", line[:LONGEST_LINE])
        host, text = speaker
        if text.startswith(b"%x "):
            code = text[3:]
            return TaskLine(host, "ended", rc=int(code) if code.isdigit() and len(code) < 4 else None)
        if text.endswith(b"%"):
            return TaskLine(host, "data", _plain(text[:-1]))
        return TaskLine(host, "data", _plain(text) + b"\n")


LONGEST_LINE = 8192


def _plain(text: bytes) -> bytes:
    return text.replace(b"%p", b"%")
