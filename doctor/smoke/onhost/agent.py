"""The smoke agent: starts, watches and ends the ranks of one host on behalf of the controller.

Standard library only, Python 3.6 and later, one thread, no torch. It ends on command, when its stdin
ends, or when no line comes for as long as its lease, and then ends every process that it started.

Commands and answers are JSON objects, one per line, as smoke/messages.py has them; other lines are ignored.
"""

import contextlib
import os
import select
import signal
import sys
import time
from typing import Any

from doctor.agents.onhost.lifeline import LEASE
from doctor.agents.onhost.process import adopt_orphans, die_with_parent, end_children
from doctor.agents.onhost.voice import HostAgent, parse
from doctor.smoke.onhost.host import HostRanks, StartFailure

STUCK = 3.0  # seconds after the lease when the kernel ends this process, whatever it waits for
END_SECONDS = 2.0
ENOUGH = 1 << 20  # unsent bytes, beyond which it reads nothing more from ranks
OFTEN, SELDOM = 0.1, 0.5
POLL = 0.02
MOST = 5 * POLL


class Stillness:
    """For how long nothing has moved on this host, counted in the agent's own looks.

    A look counts for a few turns at most: an agent that itself got no CPU for a second has not seen a rank
    stand still for a second. A rank that waited for a processor has not stood still either; `gap` includes
    its pauses all the same, so that the limit is larger if ranks wait.
    """

    def __init__(self) -> None:
        self.quiet = 0.0
        self._pause = 0.0
        self.gap = 0.0
        self._phase = None  # type: tuple[int, bool] | None
        self._seconds = 0.0
        self._looked = time.monotonic()

    def seconds(self) -> float:
        """How many seconds the time since the last look counts for."""
        now = time.monotonic()
        self._seconds = min(now - self._looked, MOST)
        self._looked = now
        return self._seconds

    def poll(self, moved: bool, phase: "tuple[int, bool] | None", still: float) -> None:
        """Count a look at all pages. `phase` is that of the rank furthest behind; None without working ranks.
        Each of them has stood still for at least `still` seconds, without its waits for a processor.
        """
        self._pause = 0.0 if phase is None else self._pause + self._seconds
        if phase != self._phase:
            self._phase, self.gap = phase, 0.0
        elif moved:
            self.gap = max(self.gap, self._pause)
        if moved:
            self._pause = 0.0
        self.quiet = min(self._pause, still)


class SmokeAgent(HostAgent):
    def __init__(self, program: bytes, head: int) -> None:
        HostAgent.__init__(self, STUCK)
        self.program = program
        self.head = head
        self.host = None  # type: HostRanks | None
        self.still = Stillness()
        self.moved = False
        self.shown_at = 0.0
        self.bell, self.ring = os.pipe()
        self.poll = select.poll()

    # Its life.

    def serve(self) -> None:
        self._prepare()
        cores, load = len(os.sched_getaffinity(0)), round(os.getloadavg()[0], 2)
        self.say("ready", python=sys.version.split()[0], cores=cores, load=load)
        due = time.monotonic()
        while self.goes_on():
            now = time.monotonic()
            if now >= due:
                self._turn(now)
                due = max(due + POLL, now)
            self._wait(due)

    def _prepare(self) -> None:
        for descriptor in (self.bell, self.ring):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self.ring)
        die_with_parent(number=signal.SIGTERM)
        adopt_orphans()
        self.poll.register(0, select.POLLIN)
        self.poll.register(self.bell, select.POLLIN)

    def _wait(self, until: float) -> None:
        """Read commands and write answers, until it is time to look again."""
        if self.unsaid:
            self.poll.register(1, select.POLLOUT)
        else:
            with contextlib.suppress(KeyError):
                self.poll.unregister(1)
        for descriptor, _ in self.poll.poll(max(0.0, until - time.monotonic()) * 1000):
            if descriptor == 0:
                for line in self.lifeline.lines():
                    self._command(line)
            elif descriptor == 1:
                self.flush()
            else:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.bell, 4096)

    def end(self) -> None:
        """End all processes, and report it."""
        survivors = self.host.stop() if self.host is not None else end_children(END_SECONDS)
        if self.host is not None and self.host.ranks:
            self.say("memory", peak=self.host.peak_memory())
        for pid, state in survivors:
            why = "it is in uninterruptible sleep" if state == "D" else f"its state is {state or 'unknown'}"
            self.say("trouble", text=f"process {pid} cannot be killed ({why})")

    # Commands.

    def _command(self, line: bytes) -> None:
        told = parse(line) or {}
        what = told.get("do")
        if what == "stop":
            self.over = True
        elif what == "start" and self.host is None:
            self._start(told)
        elif self.host is None:
            return
        elif what == "join":
            self.host.join(line)
        elif what == "look":
            self.still.poll(self.host.look(self.still.seconds()), self.host.phase(), self.host.still())
            self._show(told.get("id"))
        elif what == "stacks":
            self.host.take_stacks()

    def _start(self, told: "dict[str, Any]") -> None:
        self.hold(told.get("lease", LEASE))
        self.host = HostRanks(self.program, self.head)
        try:
            self.host.start(told)
        except StartFailure as error:
            self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        self.say("trouble", text=why)
        self.over = True

    # Looking.

    def _turn(self, now: float) -> None:
        host = self.host
        if host is None or len(self.unsaid) > ENOUGH:
            return
        moved = host.look(self.still.seconds())
        self.still.poll(moved, host.phase(), host.still())
        self.moved = self.moved or moved
        for said in host.news():
            self.say(**said)
        if host.trouble:
            self._give_up(host.trouble)
        elif host.state_changed or now - self.shown_at >= (OFTEN if self.moved else SELDOM):
            self._show(None)  # even without ranks, it shows that this host answers

    def _show(self, number: Any) -> None:
        assert self.host is not None
        self.shown_at = time.monotonic()
        self.moved = self.host.state_changed = False
        self.say(
            "pages",
            id=number if isinstance(number, int) else None,
            gap=round(self.still.gap, 3),
            quiet=round(self.still.quiet, 3),
            ranks=[rank.shown() for rank in self.host.ranks if not rank.gone],
        )


def main(program: bytes, head: int) -> None:
    SmokeAgent(program, head).live()
