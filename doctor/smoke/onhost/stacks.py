"""Where each rank is in its program: evidence of why it hangs. Python 3.6 and later.

A rank writes its stack itself when it gets SIGUSR2, even while C code holds the interpreter. A stopped rank
cannot: py-spy reads its stack from outside. Without py-spy the rank is woken for a moment and stopped again.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time

from doctor.agents.onhost.process import die_with_parent, kernel_place, tracer
from doctor.smoke.onhost.memory import anonymous
from doctor.smoke.onhost.ranks import Rank

LONGEST = 8192
OWN_SECONDS = 0.6  # a rank without CPU answers late
SETTLED = 0.04  # a stack that has not grown for this long is complete
SPY_SECONDS = 1.2


class Stack:
    """The stack of one rank, while it is being taken."""

    def __init__(self, rank: Rank, spy: "str | None") -> None:
        self.rank = rank
        self.text = ""
        self.done = False
        self._spy_path = spy
        self._spy = None  # type: subprocess.Popen[bytes] | None
        self._woken = False
        self._state = rank.raw_state
        if self._state not in ("T", "t") or not self._spy_on():
            self._ask()

    def poll(self) -> None:
        if self.done:
            return
        if self._spy is not None:
            self._poll_spy()
        else:
            self._poll_own()

    def _ask(self) -> None:
        """Let the rank write its stack itself."""
        self._spy = None
        self._from = self._size = os.fstat(self.rank.stack).st_size
        self._grew = time.monotonic()
        self._until = self._grew + OWN_SECONDS
        if not self.rank.can_write_stack:
            self._finish()
            return
        self._kill(signal.SIGUSR2)
        if self._state == "T":
            self._woken = True
            self._kill(signal.SIGCONT)

    def _poll_own(self) -> None:
        now = time.monotonic()
        size = os.fstat(self.rank.stack).st_size
        if size > self._size:
            self._size, self._grew = size, now
        if not (size > self._from and now - self._grew >= SETTLED) and now < self._until:
            return
        self.text = os.pread(self.rank.stack, LONGEST, self._from).decode("utf-8", "replace")
        if self._woken:
            self._kill(signal.SIGSTOP)
        if self.text or self._state in ("T", "t") or not self._spy_on():
            self._finish()

    def _spy_on(self) -> bool:
        if self._spy_path is None:
            return False
        self._heard = anonymous(0)
        try:
            self._spy = subprocess.Popen(
                [self._spy_path, "dump", "--nonblocking", "--pid", str(self.rank.pid)],
                stdin=subprocess.DEVNULL,
                stdout=self._heard,
                stderr=subprocess.DEVNULL,
                preexec_fn=die_with_parent,
            )
        except OSError:
            os.close(self._heard)
            return False
        self._until = time.monotonic() + SPY_SECONDS
        return True

    def _poll_spy(self) -> None:
        assert self._spy is not None
        if self._spy.poll() is None:
            if time.monotonic() < self._until:
                return
            self._spy.kill()
        if self._spy.returncode == 0:
            self.text = os.pread(self._heard, LONGEST, 0).decode("utf-8", "replace")
        os.close(self._heard)
        if self.text or self._state not in ("T", "t"):
            self._finish()
        else:
            self._ask()

    def _finish(self) -> None:
        self.done = True
        where = kernel_place(self.rank.pid) if self._state == "D" else ""
        if where:
            self.text = ("In the kernel: " + where + "\n" + self.text)[:LONGEST]
        by = tracer(self.rank.pid) if self._state == "t" else ""
        if by:
            self.text = f"Traced by {by}\n{self.text}"[:LONGEST]

    def _kill(self, number: int) -> None:
        if not self.rank.gone:
            with contextlib.suppress(OSError):
                os.kill(self.rank.pid, number)


class Stacks:
    """The stacks of several ranks, taken at the same time."""

    def __init__(self, ranks: "list[Rank]", python: str) -> None:
        beside = os.path.join(os.path.dirname(python), "py-spy")
        spy = shutil.which("py-spy") or (beside if os.access(beside, os.X_OK) else None)
        self.stacks = [Stack(rank, spy) for rank in ranks]

    def poll(self) -> "dict[str, str] | None":
        """The texts by rank once all are complete, None before."""
        for stack in self.stacks:
            stack.poll()
        if not all(stack.done for stack in self.stacks):
            return None
        return {str(stack.rank.number): stack.text for stack in self.stacks if stack.text}
