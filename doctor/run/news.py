"""Tells people what was found while the command runs: on stderr, in files, and by their own command."""

import contextlib
import sys
from collections.abc import Mapping

from doctor.errors import DoctorError
from doctor.exam.notify import PATIENCE, notified
from doctor.run.apart import Apart
from doctor.run.folder import RunFolder
from doctor.run.output import Output
from doctor.text.announce import announce
from doctor.text.terminal import tell

NOTIFIES = PATIENCE + 5
"""Seconds after which a command of --notify is ended from outside."""


class Newsroom:
    def __init__(
        self, folder: RunFolder, notify: str | None, output: Output | None = None, *, raw: bool
    ) -> None:
        """`raw`: a terminal shows what is written as it is, without beginning lines by itself. `output` must
        not have it.
        """
        self._folder, self._notify, self._output, self.raw = folder, notify, output, raw
        self._running: list[Apart[None]] = []
        self._told_at = 0
        """How much the command had printed when something was told."""

    def begin_line(self) -> None:
        """Leave the line of a terminal in which the command stopped, or a key was shown as ^C."""
        output, screen = self._output, sys.stderr is not None and sys.stderr.isatty()
        if output and screen and output.total != self._told_at and output.in_line:
            tell("\r\n" if self.raw else "\n", drawn=True)
        self._told_at = output.total if output else 0

    def tell(self, text: str) -> None:
        self.begin_line()
        with self._output.without_ours() if self._output else contextlib.nullcontext():
            tell(text.replace("\n", "\r\n") if self.raw else text, drawn=True)

    def publish(self, name: str, headline: str, text: str, files: Mapping[str, bytes]) -> None:
        kept = self._folder.write({f"{name}{suffix}": data for suffix, data in files.items()})
        announce(headline, self.tell)
        self.tell(text)
        if kept:
            announce(f"the report is in {self._folder.path}", self.tell)
        if self._notify:
            self._running.append(Apart(lambda: notified(self._notify or "", headline, text, grouped=True)))

    def reap(self, seconds: float = 0.0) -> None:
        """Leave no process of a command of --notify that has ended. Waits at most so long for each."""
        for each in [each for each in self._running if each.poll(seconds)]:
            self._running.remove(each)
            with contextlib.suppress(DoctorError):  # it told what broke
                each.result()

    def close(self) -> None:
        """Wait for the commands of --notify, and end those that take too long."""
        self.reap(NOTIFIES)
        while self._running:
            self._running.pop().end()
