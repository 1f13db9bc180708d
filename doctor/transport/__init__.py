"""What every way to reach hosts offers: ssh/, slurm/, pods/, openssh.py, local.py, exam/in_job/relay.py.

A transport knows how to get a script to a shell on each host and its answer back. It never raises because of
one host: a failing host becomes an `UnreachedHost`, and the others continue.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from doctor.model import Answer, UnreachedHost

if TYPE_CHECKING:
    from doctor.transport.question import Question


@dataclass(frozen=True, slots=True)
class Script:
    """What to run on one host: a command line for its login shell, and the input for its stdin.

    After `stdin` was sent, it stays open until a line equal to `last_line` (bytes, without newline) arrives
    or the command ends, so a script can watch its stdin to notice that the controller is gone.
    `question` is what the script was made from.
    """

    command: str
    stdin: bytes
    last_line: bytes
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line that a session's program printed on stdout, without its newline."""

    host: str
    text: bytes


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """A session's program is gone. `unreached` is set if it never began or the connection broke."""

    host: str
    rc: int | None
    stderr: bytes
    unreached: UnreachedHost | None = None


class Session(Protocol):
    """One program on each of several hosts, spoken to in lines. Closing the session ends all of them."""

    def send(self, host: str, line: bytes) -> None:
        """Queue one line (without newline) for a host; a host that is gone ignores it."""

    def receive(self, timeout: float) -> Line | SessionEnd | None:
        """The next line or end of any host; None after `timeout` seconds of silence. Hosts take turns."""

    def end(self, host: str) -> None:
        """End the program of one host. Nothing more is received from it, not even its end."""

    def close(self) -> None: ...


class Transport(Protocol):
    name: str

    @property
    def warnings(self) -> Sequence[str]:
        """What the user should know besides the hosts' outcomes."""

    def run(
        self, scripts: Mapping[str, Script], timeout: float, until: float = math.inf
    ) -> Iterator[Answer | UnreachedHost]:
        """Run each host's script, all hosts at once; yield each host's outcome as it arrives.

        `timeout` is a host's whole time, from its start: connecting, running, answering. Every host has its
        outcome by `until`, of time.monotonic(). A script is looked up when its host's turn comes.
        """

    def open(self, scripts: Mapping[str, Script], until: float = math.inf) -> Session:
        """Start each host's program and keep talking to it. No host is dialled after `until`."""

    def close(self) -> None:
        """Drop every connection. Safe to call twice, and after a signal interrupted a run."""
