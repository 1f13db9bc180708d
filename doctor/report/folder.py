"""A folder with the whole report of each run, in files of its own, never overwritten, never half written."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

from doctor.errors import UsageError

MOST_TRIES = 1000
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_NEW = os.O_WRONLY | os.O_CLOEXEC


def make_folder(path: Path) -> None:
    """Before the run: the folder is there, and a file can be written into it. Raises UsageError."""
    try:
        path.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
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


def add_files(folder: Path, name: str, contents: Mapping[str, bytes]) -> dict[str, Path]:
    """One file for each suffix, all under one name that no file has yet. Raises OSError."""
    made: list[Path] = []
    with contextlib.ExitStack() as stack:
        drafts = {
            suffix: stack.enter_context(_UnnamedFile(folder, data)) for suffix, data in contents.items()
        }
        for number in range(1, MOST_TRIES):
            stem = name if number == 1 else f"{name}.{number}"
            made.clear()
            try:
                for suffix, draft in drafts.items():
                    draft.publish(folder / f"{stem}{suffix}")
                    made.append(folder / f"{stem}{suffix}")
            except FileExistsError:
                _take_back(made)
                continue
            except BaseException:
                _take_back(made)
                raise
            return dict(zip(drafts, made, strict=True))
    raise FileExistsError(17, "every name for it is taken")


def _take_back(paths: list[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()


class _UnnamedFile:
    """A file without a name until it is whole; where no file can be without, one that is hidden."""

    def __init__(self, folder: Path, data: bytes) -> None:
        self._folder, self._data = folder, data
        self._named: Path | None = None
        self._handle: int | None = None
        with contextlib.suppress(OSError, AttributeError):
            self._handle = os.open(folder, os.O_TMPFILE | _NEW, PRIVATE_FILE)
        try:
            self._fill()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> _UnnamedFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if self._named is not None:
            with contextlib.suppress(OSError):
                self._named.unlink()

    def publish(self, path: Path) -> None:
        """Give it a name, all at once; FileExistsError where the name is taken."""
        try:
            self._link(path)
        except FileExistsError:
            raise
        except OSError:
            if self._named is None:
                self.__exit__()
                self._fill()
                self.publish(path)
            else:  # a file system without links: the name is taken first
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | _NEW, PRIVATE_FILE))
                os.replace(self._named, path)
                self._named = None

    def _fill(self) -> None:
        if self._handle is None:
            named = self._folder / f".doctor-{secrets.token_hex(8)}.tmp"
            self._handle = os.open(named, os.O_CREAT | os.O_EXCL | _NEW, PRIVATE_FILE)
            self._named = named
        with open(self._handle, "wb", closefd=False) as file:
            file.write(self._data)
        os.fsync(self._handle)

    def _link(self, path: Path) -> None:
        if self._named is not None:
            os.link(self._named, path)
        else:  # with a folder's handle, which the whole path leaves unused, the link is followed
            os.link(f"/proc/self/fd/{self._handle}", path, src_dir_fd=self._handle, follow_symlinks=True)
