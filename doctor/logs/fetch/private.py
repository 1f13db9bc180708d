"""The folder that holds fetched logs while they are read. It is removed at the end; if the run is killed, the
next run removes it.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "doctor-logs-"
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def private_folder() -> Iterator[Path]:
    """A new folder. The run holds a lock on it, which disappears with the run, however it ends."""
    _remove_those_of_the_dead()
    folder, handle = _locked()
    try:
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def _locked() -> tuple[Path, int]:
    """A new folder and its lock. If another run removes it before it is locked, a new one is made."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(folder, FOLDER)
            with contextlib.suppress(OSError):  # the file system has no locks: then no run removes the folder
                fcntl.flock(handle, fcntl.LOCK_EX)
            if folder.exists():
                return folder, handle
            os.close(handle)


def _remove_those_of_the_dead() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = os.open(folder, FOLDER)
            try:
                about = os.fstat(handle)
                if about.st_uid == os.geteuid() and stat.S_IMODE(about.st_mode) == 0o700:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
