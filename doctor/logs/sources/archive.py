"""The files of tar and zip archives, one after the other, without unpacking them to the disk."""

import calendar
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import IO, BinaryIO, cast

from doctor.logs.sources.limits import CHUNK, NO_MEMBER, DamagedInput, ReadLimits
from doctor.logs.sources.stream import Stream, words

_MOST_HEADER = 1 << 20
"""The most bytes of the headers of one file in a tar archive; a hostile archive may claim gigabytes."""
_MOST_TABLE = 16 << 20
"""The most bytes of the table of a zip, which is held in memory; the names that are examined need less."""
_BROKEN = (OSError, EOFError, ValueError, MemoryError)
_BACK = 1024


@dataclass(slots=True)
class ArchiveMember:
    name: str
    size: int
    written: float
    stream: Stream
    other: str = ""
    """Why it is not read, such as: it is a link or a device."""


class _Forward(io.RawIOBase):
    """The file that tarfile needs, on top of a stream: it can seek forward, and back only a few bytes."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._at = self._end = 0
        self._last = b""
        self.headers = 0
        """Bytes of headers that tarfile has read for the next file and keeps in memory."""

    def tell(self) -> int:
        return self._at

    def seek(self, to: int, whence: int = 0) -> int:
        if whence or to < self._end - len(self._last):
            raise tarfile.ReadError("seek")
        self._at = min(to, self._end)
        while self._end < to and self._fetch(min(CHUNK, to - self._end)):
            self._at = self._end
        return self._at

    def read(self, size: int = -1) -> bytes:
        self.headers += size
        if size < 0 or self.headers > _MOST_HEADER:
            raise DamagedInput("damaged archive")
        return self.take(size)

    def take(self, size: int) -> bytes:
        parts = []
        if self._at < self._end:
            held = self._last[len(self._last) - (self._end - self._at) :][:size]
            parts.append(held)
            self._at += len(held)
            size -= len(held)
        while size > 0:
            data = self._fetch(size)
            if not data:
                break
            self._at = self._end
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def _fetch(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._end += len(data)
        self._last = (self._last + data)[-_BACK:] if len(data) < _BACK else data[-_BACK:]
        return data


class _TarPart:
    """The bytes of one file of a tar archive."""

    def __init__(self, forward: _Forward, start: int, size: int) -> None:
        self._forward = forward
        self._next = start
        self._end = start + size

    def read(self, size: int) -> bytes:
        size = min(size, CHUNK, self._end - self._next)
        if size <= 0:
            return b""
        self._forward.seek(self._next)
        data = self._forward.take(size)
        if not data:
            raise DamagedInput("the archive ends in the middle")
        self._next += len(data)
        return data


def tar_members(stream: Stream) -> Generator[ArchiveMember, None, None]:
    """The files of a tar archive. Raises DamagedInput if the archive is cut off."""
    forward = _Forward(stream)
    try:
        tar = tarfile.TarFile(fileobj=cast("IO[bytes]", forward), mode="r")
        while (info := tar.next()) is not None:
            forward.headers = 0
            tar.members, tar.pax_headers = [], {}  # type: ignore[attr-defined]  # tarfile would keep them all
            if info.isdir():
                continue
            other = "" if info.type in tarfile.REGULAR_TYPES else NO_MEMBER
            part = _TarPart(forward, info.offset_data, info.size)
            yield ArchiveMember(info.name, info.size, float(info.mtime), part, other)
    except (tarfile.TarError, OverflowError, RecursionError, *_BROKEN) as error:
        raise DamagedInput("damaged archive") from error


class _Zip:
    """The file that zipfile needs. It limits the size of a read, since zipfile reads the table at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > _MOST_TABLE:
            raise zipfile.BadZipFile("table")
        return self._file.read(size)


class _Unzipped:
    def __init__(self, file: IO[bytes], limits: ReadLimits, packed: int) -> None:
        self._file = file
        self._limits = limits
        self._packed = packed
        self._given = 0

    def read(self, size: int) -> bytes:
        try:
            data = self._file.read(min(size, CHUNK))
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, *_BROKEN) as error:
            raise DamagedInput("damaged archive") from error
        self._given += len(data)
        if self._given > self._limits.free and self._given > self._limits.ratio * self._packed:
            raise DamagedInput(f"unpacks to more than {self._limits.ratio} times its size")
        return data


def zip_members(file: BinaryIO, limits: ReadLimits) -> Generator[ArchiveMember, None, None]:
    """The files of a zip archive. Raises DamagedInput if the archive cannot be read."""
    total = 0
    try:
        with zipfile.ZipFile(cast("IO[bytes]", _Zip(file))) as archive:
            for info in archive.infolist()[: limits.looked_at + 1]:
                if info.is_dir():
                    continue
                try:
                    member = archive.open(info)
                except (NotImplementedError, RuntimeError, MemoryError, zipfile.BadZipFile):
                    why = "needs a password" if info.flag_bits & 1 else "packed in an unknown way"
                    yield ArchiveMember(info.filename, info.file_size, 0.0, io.BytesIO(), why)
                    continue
                with member:
                    stream = _Unzipped(member, limits, info.compress_size)
                    yield ArchiveMember(info.filename, info.file_size, _moment(info), stream)
                    total += stream._given
                if total > limits.unpacked:
                    raise DamagedInput(f"unpacks to more than {words(limits.unpacked)}")
    except (zipfile.BadZipFile, RecursionError, NotImplementedError, *_BROKEN) as error:
        raise DamagedInput("damaged archive") from error


def _moment(info: zipfile.ZipInfo) -> float:
    try:
        return float(calendar.timegm((*info.date_time, 0, 0, 0)))
    except (ValueError, OverflowError):
        return 0.0
