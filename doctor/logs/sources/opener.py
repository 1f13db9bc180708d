"""Opens the inputs: files, folders, archives, standard input; one file after the other, as a stream."""

import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeVar

from doctor.logs.sources.archive import ArchiveMember, tar_members, zip_members
from doctor.logs.sources.kind import HEAD, FileKind, kind_of, no_log
from doctor.logs.sources.limits import (
    CHUNK,
    LINK,
    NO_FILE,
    NO_LOG,
    NO_TEXT,
    TWICE,
    DamagedInput,
    OmittedInputs,
    ReadLimits,
)
from doctor.logs.sources.patience import Patience
from doctor.logs.sources.recorder import lines_of
from doctor.logs.sources.stream import File, PeekStream, Pipe, Stream, UnpackedStream, words

T = TypeVar("T")
Input = Path | BinaryIO
"""A path, or a stream such as standard input."""
_PACKED = frozenset({FileKind.GZIP, FileKind.BZIP2, FileKind.XZ})


@dataclass(slots=True)
class InputFile:
    """An open file, to be read before the next one is opened."""

    name: str
    size: int
    written: float
    stream: PeekStream
    problem: str = ""
    whole: bool = False
    """Whether it is a file on disk, not a part of an archive."""


class Sources:
    """`files()` goes through all inputs once; `left_out` says afterwards what was not read."""

    def __init__(
        self,
        given: Sequence[Input],
        limits: ReadLimits,
        now: float,
        deadline: float | None = None,
        *,
        apart: bool = False,
        taken: Callable[[int], None] | None = None,
    ) -> None:
        """`apart`: each input has a time limit of its own, since a hostile host may have sent it. `taken` is
        called with the size of each piece that was read from a disk or a pipe.
        """
        self._given = given
        self._limits = limits
        self._now = now
        self._patience = Patience(limits, deadline, taken)
        self._apart = apart
        self._looked = self._read = 0
        self._seen: set[tuple[int, int]] = set()
        self.left_out = OmittedInputs()

    def files(self) -> Iterator[InputFile]:
        for given in self._given:
            if self._apart:
                self._patience = self._patience.afresh(self._limits)
            if not isinstance(given, (str, os.PathLike)):
                yield from self._any("standard input", -1, self._now, Pipe(given, self._patience), None)
                continue
            try:
                status = os.stat(given)
            except OSError as error:
                self.left_out.add(str(given), _why(error))
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from self._folder(str(given))
            else:
                yield from self._path(str(given), named=True)

    def total(self) -> int:
        """The size of all inputs as far as it is known; 0 if one is a pipe."""
        if not all(isinstance(given, (str, os.PathLike)) for given in self._given):
            return 0
        return sum(_size(str(given), self._limits.looked_at) for given in self._given)

    def _folder(self, top: str) -> Iterator[InputFile]:
        """The files of a folder in the order of names. Links are not followed: they may lead anywhere."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as found:
                    entries = sorted(self._counted(found, folder), key=lambda each: each.name)
            except OSError as error:
                self.left_out.add(folder, _why(error))
                continue
            for entry in entries:
                if entry.is_symlink():
                    self.left_out.add(entry.path, LINK)
                elif entry.is_file(follow_symlinks=False):
                    yield from self._path(entry.path, named=False)
                elif not entry.is_dir(follow_symlinks=False):
                    self.left_out.add(entry.path, NO_FILE)
            waiting += reversed([each.path for each in entries if each.is_dir(follow_symlinks=False)])

    def _counted(self, found: Iterator[T], name: str) -> Iterator[T]:
        """The entries of a folder or an archive, as far as the limit goes."""
        for entry in found:
            if self._looked >= self._limits.looked_at:
                self.left_out.add(name, f"more than {self._limits.looked_at:,} files were given")
                return
            self._looked += 1
            yield entry

    def _path(self, path: str, *, named: bool) -> Iterator[InputFile]:
        if not named and no_log(path):
            self.left_out.add(path, NO_LOG)
            return
        try:
            number = os.open(
                path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if named else os.O_NOFOLLOW)
            )
        except (OSError, ValueError) as error:
            self.left_out.add(path, _why(error))
            return
        with open(number, "rb", buffering=0) as raw:
            file = File(raw, self._patience)
            if not stat.S_ISREG(file.status.st_mode):
                self.left_out.add(path, NO_FILE)
                return
            same = (file.status.st_dev, file.status.st_ino)
            if same in self._seen:
                self.left_out.add(path, TWICE)
                return
            self._seen.add(same)
            yield from self._any(path, file.left, file.status.st_mtime, file, raw)

    def _any(
        self,
        name: str,
        size: int,
        written: float,
        stream: Stream,
        file: BinaryIO | io.FileIO | None,
        depth: int = 0,
    ) -> Iterator[InputFile]:
        """A text file itself, or the files of an archive and of archives in it, up to one level."""
        if over := self._patience.over:
            self.left_out.add(name, over)
            return
        ahead = PeekStream(stream, self._patience)
        kind = kind_of(ahead.peek(HEAD))
        if kind in _PACKED:
            ahead = PeekStream(UnpackedStream(ahead, kind, self._limits), self._patience)
            kind = kind_of(ahead.peek(HEAD))
            size = -1
            if kind in _PACKED:
                self.left_out.add(name, "packed more than once")
                return
        if told := lines_of(name, ahead):
            stream, kind, size = Pipe(io.BytesIO(told), self._patience), FileKind.TEXT, len(told)
            ahead = PeekStream(stream, self._patience)
        if kind in (FileKind.TAR, FileKind.ZIP):
            if depth > 1:
                self.left_out.add(name, "an archive in an archive in an archive")
                return
            yield from self._archive(name, kind, ahead, file, depth)
        elif kind is FileKind.ZSTD:
            self.left_out.add(name, "packed with zstd: unpack it first, with zstd -d")
        elif kind is FileKind.BINARY:
            self.left_out.add(name, NO_TEXT)
        elif self._read >= self._limits.read:
            self.left_out.add(name, f"more than {self._limits.read:,} files")
        else:
            self._read += 1
            yield InputFile(name, size, written, ahead, whole=isinstance(stream, File))

    def _archive(
        self, name: str, kind: FileKind, ahead: PeekStream, file: BinaryIO | io.FileIO | None, depth: int
    ) -> Iterator[InputFile]:
        try:
            if kind is FileKind.TAR:
                members = tar_members(ahead)
            elif file is None:
                members = zip_members(self._whole(ahead), self._limits)
            else:
                self._patience.grant(os.fstat(file.fileno()).st_blocks * 512)  # holes add no time
                members = zip_members(file, self._limits)
            with closing(members):
                for member in self._counted(members, name):
                    yield from self._member(name, member, depth)
        except DamagedInput as error:
            self.left_out.add(name, f"{error}; what could be read of it counts")

    def _member(self, name: str, member: ArchiveMember, depth: int) -> Iterator[InputFile]:
        path = f"{name}/{member.name.lstrip('./')}"
        reason = member.other or (NO_LOG if no_log(member.name) else "")
        if reason:
            self.left_out.add(path, reason)
            return
        yield from self._any(path, member.size, member.written, member.stream, None, depth + 1)

    def _whole(self, ahead: PeekStream) -> BinaryIO:
        """A zip from an archive or a pipe, in memory: a zip is read from its end."""
        parts = []
        left = self._limits.held
        while data := ahead.read(CHUNK):
            parts.append(data)
            left -= len(data)
            if left < 0:
                raise DamagedInput(f"a zip of more than {words(self._limits.held)} in an archive or a pipe")
        return io.BytesIO(b"".join(parts))


def _size(path: str, most: int) -> int:
    """The size of a file, or of the files in a folder that may be logs by their names."""
    if not os.path.isdir(path):
        return _file_size(path)
    files = (
        os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if not no_log(name)
    )
    return sum(map(_file_size, islice(files, most)))


def _file_size(path: str) -> int:
    try:
        status = os.lstat(path)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "it may not be read by this user"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
