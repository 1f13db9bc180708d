"""Runs the command of --notify: a person's own way to be told."""

import contextlib
import os
import signal
import subprocess

from doctor.text.announce import announce
from doctor.text.printable import clean_line

SUMMARY = "DOCTOR_SUMMARY"
"""The variable that has the news in one line."""
PATIENCE = 55
"""Seconds that the command may take."""


def notified(command: str, headline: str, text: str, *, grouped: bool = False) -> None:
    """Run it with the text on its stdin, and say so if it fails. What it prints goes to stderr: ours may be
    piped on. `grouped`: our own group is ended with all that is in it, so it stays there.
    """
    environment = {**os.environ, SUMMARY: clean_line(headline)}
    words = ["sh", "-c", command]
    own = not grouped
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=2, env=environment, start_new_session=own
    ) as ran:
        try:
            ran.communicate(text.encode(errors="replace"), PATIENCE)
            why = f"its exit code is {ran.returncode}" if ran.returncode else ""
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if own else os.kill)(ran.pid, signal.SIGKILL)
            why = "it did not end"
    if why:
        announce(f"the command of --notify failed: {why}.")
