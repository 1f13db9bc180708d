"""The agent of `doctor hang`: it finds the ranks of one host and looks at them twice, for the controller.

Standard library only, Python 3.6 and later. It ends when its stdin closes, on command, or when no line has
come for the time of its lease. It writes no file: py-spy is kept in memory only. A child does the work, so
that this process always answers; the child's own children do everything that may block.

Commands are JSON objects, one per line, with a kind in "do": find, tool (a part of py-spy, compressed, in
base64), look, ends, beat, stop. Answers have a kind in "say": member, found, armed, look, library, seen,
ends, done, trouble, bye (the last one).
"""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import time
import traceback
import zlib
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from doctor.agents.onhost.lifeline import LEASE
from doctor.agents.onhost.process import adopt_orphans, die_with_parent, end_children
from doctor.agents.onhost.voice import HostAgent, parse
from doctor.live.onhost import careful, ends, libraries, look, proc, resolver, stacks
from doctor.live.onhost.launchers import Launchers

BEAT = b'"beat"}'
"""How a beat ends. No other command ends like this."""
STUCK = 3.0
"""Seconds after the end of the lease until the kernel ends this process, even if it is blocked."""
END_SECONDS = 1.0
ENOUGH = 1 << 20
"""Unsent bytes beyond which the agent stops reading from its child."""
MOST_TOOL = 64 << 20
NICE = 10
"""Lower priority than the job, but not the lowest: at 19, a look took minutes on a busy host."""
CROWDED = 4
"""If this many processes wait for each processor, the look needs the normal priority to end in time."""
LONGEST_APART = 60.0
OF_VERSION = 0.1
"""The share of the time of a look that py-spy may take to start and print its version."""


class MessageWriter:
    """Writes the child's messages, one per line."""

    def __init__(self, out: "BinaryIO") -> None:
        self.out = out

    def __call__(self, say: str, **words: Any) -> None:
        self.out.write(json.dumps(dict(say=say, **words), sort_keys=False).encode("ascii") + b"\n")
        self.out.flush()


def _do(work: "Callable[[MessageWriter], None]", say: MessageWriter) -> None:
    try:
        work(say)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        say("trouble", text=f"{type(error).__name__}: {error} ({place[0]}:{place[1]})"[:1000])


class LookAgent(HostAgent):
    def __init__(self) -> None:
        HostAgent.__init__(self, STUCK)
        self.ear = None  # type: int | None
        """The pipe that the child writes to."""
        self.doing = ""
        self.next = []  # type: list[tuple[str, Callable[[MessageWriter], None]]]
        """What the child does next: its name, and the work."""
        self.looked = False
        self.begun = b""
        self.members = []  # type: list[dict[str, Any]]
        self.unread = []  # type: list[str]
        self.packed = zlib.decompressobj()
        self.tool = None  # type: int | None
        self.size = 0
        self.beat = 0.0
        """The seconds between two beats of the controller."""

    # The process itself.

    def serve(self) -> None:
        with contextlib.suppress(OSError):
            if os.getloadavg()[0] < CROWDED * stacks.processors():
                os.nice(NICE)
        os.set_blocking(0, False)
        die_with_parent(number=signal.SIGTERM)
        adopt_orphans()
        while self.goes_on():
            self._wait()

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        if self.unsaid:
            poll.register(1, select.POLLOUT)
        if self.ear is not None and len(self.unsaid) < ENOUGH:
            poll.register(self.ear, select.POLLIN)
        for descriptor, _ in poll.poll(200):
            if descriptor == 0:
                self._commands(self.lifeline.lines())
            elif descriptor == 1:
                self.flush()
            else:
                self._hear_child()

    def end(self) -> None:
        """End all processes that it started, and report those that do not end."""
        for pid, state in end_children(END_SECONDS):
            self.say("trouble", text=f"process {pid} of doctor cannot be ended (state {state})")

    # Commands.

    def _commands(self, lines: "list[bytes]") -> None:
        """Carry out the commands. If a login or a slow link delayed a command, beats have gathered behind it:
        the first was sent at once, and one more after each interval.
        """
        for place, line in enumerate(lines):
            self._command(line, max(0, sum(each.endswith(BEAT) for each in lines[place + 1 :]) - 1))

    def _command(self, line: bytes, beats: int) -> None:
        told = parse(line) or {}
        what = told.get("do")
        if what == "stop":
            self.over = True
        elif what == "find" and not self.doing:
            self.hold(told.get("lease", LEASE))
            self.beat = seconds_of(told.get("beat"), 0.0)
            within = max(0.0, seconds_of(told.get("within"), look.WHOLE) - beats * self.beat)
            known, command = Launchers(told["launchers"]), told.get("command")
            self.then("find", lambda say: say("members", **look.find(known, os.getppid(), within, command)))
        elif what == "tool":
            self._receive_tool(told)
        elif what == "look" and not self.looked:
            self.looked = True
            apart = min(max(seconds_of(told.get("apart"), 2.0), 0.0), LONGEST_APART)
            within = max(0.0, seconds_of(told.get("within"), 2 * look.LOOK) - beats * self.beat)
            pids = told.get("pids")
            chosen = set(pids) if isinstance(pids, list) else None
            asked = told.get("names")
            names = [str(name) for name in asked] if isinstance(asked, list) else []
            self.then("look", lambda say: self._look(apart, within, chosen, names, say))
        elif what == "ends":
            self.then("ends", lambda say: say("ends", ends=ends.asked(told["ends"])))
        elif what is not None:
            self.do(what, told)

    def do(self, what: str, told: "Mapping[str, Any]") -> None:
        """Carry out a command that only a subclass knows."""

    def _receive_tool(self, told: "dict[str, Any]") -> None:
        """Receive a part of py-spy."""
        try:
            if self.tool is None:
                self.tool = os.memfd_create("py-spy")  # type: ignore[attr-defined, unused-ignore]
            data = self.packed.decompress(base64.b64decode(told.get("data", "")), MOST_TOOL)
            self.size += len(data)
            with open(self.tool, "ab", closefd=False) as file:
                file.write(data)
            if self.size > MOST_TOOL:
                raise ValueError("it is too large")
        except (OSError, ValueError, TypeError, AttributeError, zlib.error) as error:
            self.say("armed", problem=str(error)[:200])
            return
        if told.get("last"):
            self.say("armed", problem="" if self.packed.eof else "it is incomplete")

    # The child.

    def then(self, what: str, work: "Callable[[MessageWriter], None]") -> None:
        """Let the child do this as soon as it has done everything that was asked before."""
        self.next.append((what, work))
        self._go_on()

    def _go_on(self) -> None:
        if self.ear is None and self.next:
            self.doing, work = self.next.pop(0)
            _, self.ear = careful.forked(lambda out: _do(work, MessageWriter(out)))
            os.set_blocking(self.ear, False)

    def _hear_child(self) -> None:
        assert self.ear is not None
        try:
            data = os.read(self.ear, 65536)
        except BlockingIOError:
            return
        lines = (self.begun + data).split(b"\n")
        self.begun = lines.pop()
        for line in lines:
            if line.startswith(b'{"say": "members"'):
                self._report_members(json.loads(line.decode("ascii")))
            else:
                self.unsaid += line + b"\n"
        if not data:
            os.close(self.ear)
            self.ear, self.begun = None, b""
            with contextlib.suppress(OSError):
                os.waitpid(-1, os.WNOHANG)
            self.say("done", what=self.doing)
            self._go_on()
        self.flush()

    def _report_members(self, told: "dict[str, Any]") -> None:
        self.members, self.unread = told["members"], told["unread"]
        for member in self.members:
            shown = {key: value for key, value in member.items() if value is not None}
            self.say("member", member=dict(shown, host=""))
        self.say(
            "found",
            ranks=sum(member.get("helps") is None for member in self.members),
            machine=os.uname().machine,
            memory=hasattr(os, "memfd_create"),
            unread=self.unread,
            addresses=proc.addresses(),
            may_be=told["may_be"],
        )

    def _look(
        self, apart: float, within: float, pids: "set[int] | None", names: "list[str]", say: "MessageWriter"
    ) -> None:
        over = time.monotonic() + within
        members = self.chosen(pids)
        pyspy, what, why = self.pyspy(min(stacks.SECONDS, within * OF_VERSION))
        unread = ["Python stacks: " + why] if why else []
        within = max(0.0, over - time.monotonic())
        gathering = libraries.GatherProcess([m for m in members if "words" not in m], apart, within)
        named = resolver.resolved(names, min(resolver.SECONDS, within / 2))
        looks = look.Looks(members, pyspy, say, max(0.0, over - time.monotonic()))
        at, apart = looks.both(apart)
        for text in gathering.texts():
            say("library", text=text)
        self.say_seen(say, looks, at, apart, what, unread, names=named)

    def say_seen(
        self,
        say: "MessageWriter",
        looks: "look.Looks",
        at: float,
        apart: float,
        what: str,
        unread: "list[str]",
        **more: "Any",
    ) -> None:
        """The end of the looks. `what`: the tool that showed stacks."""
        if looks.no_ages:
            unread.append("connections: " + looks.no_ages)
        say(
            "seen",
            at=at,
            apart=apart,
            root=looks.root,
            stacks=what,
            ages=not looks.no_ages,
            addresses=proc.addresses(),
            unplugged=ends.unplugged(),
            unread=unread,
            loose=looks.loose,
            told=[dict(numbers, pid=pid) for pid, numbers in looks.told.items() if numbers],
            **more,
        )

    def chosen(self, pids: "set[int] | None") -> "list[dict[str, Any]]":
        """These ranks with their helpers; None means all."""
        return [m for m in self.members if pids is None or {m["pid"], m.get("helps")} & pids]

    def pyspy(self, seconds: float) -> "tuple[stacks.PySpy | None, str, str]":
        """The py-spy to use, its description, and why there is none. `seconds`: the limit for each start."""
        why = "no py-spy was brought, and the host has none"
        if self.tool is not None:
            brought = stacks.PySpy(f"/proc/self/fd/{self.tool}", self.tool)
            version, refused = brought.version(seconds)
            if version:
                return brought, version + ", brought", ""
            why = f"the py-spy that was brought cannot be used ({refused}), and the host has none"
        own = shutil.which("py-spy")
        if own:
            version, refused = stacks.PySpy(own).version(seconds)
            if version:
                return stacks.PySpy(own), version + " of the host", ""
            why = "the py-spy of the host cannot be used: " + refused
        return None, "", why


def seconds_of(told: Any, otherwise: float) -> float:
    return float(told) if isinstance(told, (int, float)) else otherwise


def main(program: bytes, head: int) -> None:
    del program, head
    LookAgent().live()
