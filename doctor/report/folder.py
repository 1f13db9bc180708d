"""A folder with the whole report of each run, in files of its own, never overwritten."""

from __future__ import annotations

import tempfile
from pathlib import Path

from doctor.errors import UsageError
from doctor.text import outfile


def make_folder(path: Path) -> None:
    """Before the run: the folder is there, is ours, and a file can be written into it. Raises UsageError."""
    try:
        if why := outfile.why_not_ours(path):  # its owner could put other reports into their places
            raise UsageError(f"--report-dir {path}: {why}.", "Name a folder of yours, or a new one.")
        outfile.make_folder(path.absolute())
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "that is no name of a folder"
        raise UsageError(
            f"--report-dir {path}: cannot be written: {why}.", "Name a folder that is writable."
        ) from None


def run_name(started: str, job: str, pid: int, *, interrupted: bool = False) -> str:
    """`doctor-20261120T101500Z-4711-1234`: when, in which job, by which process."""
    when = "".join(filter(str.isalnum, started))
    parts = ("doctor", when, job, str(pid), "interrupted" if interrupted else "")
    return "-".join(part for part in parts if part)
