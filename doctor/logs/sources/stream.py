"""Streams of bytes from a file, a pipe or a packed file, which are read forward only."""

import bz2
import errno
import lzma
import os
import zlib
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, Protocol

from doctor.logs.sources.kind import FileKind
from doctor.logs.sources.limits import CHUNK, DamagedInput, ReadLimits
from doctor.logs.sources.patience import Patience

_MEMORY = 256 << 20
"""The most bytes that xz may take for its dictionary."""


class Stream(Protocol):
    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end. Raises DamagedInput."""


class File:
    """A file up to the size that it has now; what a running job adds is not read."""

    def __init__(self, file: BinaryIO, patience: Patience) -> None:
        self._file = file
        self._patience = patience
        self.status = os.fstat(file.fileno())
        self.left = self.status.st_size

    def read(self, size: int) -> bytes:
        try:
            data = self._file.read(min(size, self.left))
        except OSError as error:
            raise DamagedInput(f"could not be read further: {error.strerror or error}") from error
        if size and self.left and not data:
            raise DamagedInput("became shorter while it was read")
        self.left -= len(data)
        self._patience.grant(len(data))
        return data

    def skip_hole(self) -> None:
        """Skip to the next written data: reading a large hole would take minutes."""
        try:
            at = self._file.tell()
            try:
                data = os.lseek(self._file.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                data = at + self.left if error.errno == errno.ENXIO else at
            self.left -= min(max(data - at, 0), self.left)
            self._file.seek(data)
        except OSError:
            return  # the file system does not know holes


class Pipe:
    """Standard input, or bytes in memory."""

    def __init__(self, file: BinaryIO, patience: Patience) -> None:
        self._file = file
        self._patience = patience

    def read(self, size: int) -> bytes:
        """The data that is there now: waiting for more could exceed the deadline."""
        self._patience.wait_for(self._file)
        try:
            data: bytes = self._file.read1(size)  # type: ignore[attr-defined]
        except (OSError, ValueError) as error:
            raise DamagedInput(f"could not be read further: {error}") from error
        self._patience.grant(len(data))
        return data


class PeekStream:
    """A stream with a time limit whose first bytes can be examined before they are read."""

    def __init__(self, stream: Stream, patience: Patience) -> None:
        self._stream = stream
        self.patience = patience
        self._held = b""
        self._failed: DamagedInput | None = None
        self.taken = 0

    def peek(self, size: int) -> bytes:
        while len(self._held) < size and self._failed is None:
            try:
                data = self._stream.read(size - len(self._held))
            except DamagedInput as error:
                self._failed = error
                break
            if not data:
                break
            self._held += data
        return self._held[:size]

    def skip_hole(self) -> None:
        if isinstance(self._stream, File) and not self._held:
            self._stream.skip_hole()

    def read(self, size: int) -> bytes:
        if self._held:
            data, self._held = self._held[:size], self._held[size:]
        elif self._failed:
            raise self._failed
        else:
            self.patience.check()
            data = self._stream.read(size)
        self.taken += len(data)
        return data


class _Gzip:
    """zlib with the interface of the other two."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self._tail = b""

    def decompress(self, data: bytes, size: int) -> bytes:
        out = self._zlib.decompress(self._tail + data, size)
        self._tail = self._zlib.unconsumed_tail
        return out

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._tail


_UNPACKERS: dict[FileKind, Callable[[], _Gzip | bz2.BZ2Decompressor | lzma.LZMADecompressor]] = {
    FileKind.GZIP: _Gzip,
    FileKind.BZIP2: bz2.BZ2Decompressor,
    FileKind.XZ: partial(lzma.LZMADecompressor, memlimit=_MEMORY),
}
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError)


class UnpackedStream:
    """The unpacked content of a packed stream, in pieces of bounded size."""

    def __init__(self, stream: Stream, kind: FileKind, limits: ReadLimits) -> None:
        self._stream = stream
        self._new = _UNPACKERS[kind]
        self._unpacker = self._new()
        self._limits = limits
        self._read = self._given = 0
        self._fresh = True
        self._ended = False

    def read(self, size: int) -> bytes:
        while not self._ended:
            data = self._more()
            if data is None:
                break
            try:
                out = self._unpacker.decompress(data, size)
            except MemoryError as error:
                raise DamagedInput("damaged archive") from error
            except _BROKEN as error:
                if self._fresh and self._given:
                    break  # padding after the last part
                raise DamagedInput("damaged archive") from error
            if out:
                self._fresh = False
                self._count(len(out))
                return out
        self._ended = True
        return b""

    def _more(self) -> bytes | None:
        """Bytes for the unpacker; empty if it still has some, None at the end."""
        rest = b""
        if self._unpacker.eof:
            rest = self._unpacker.unused_data.lstrip(b"\x00")
            self._unpacker, self._fresh = self._new(), True
        elif not self._unpacker.needs_input:
            return b""
        data = rest or self._stream.read(CHUNK // 4)
        self._read += 0 if rest else len(data)
        if data:
            return data
        if not self._fresh or not self._given:
            raise DamagedInput("the archive ends in the middle")
        return None

    def _count(self, size: int) -> None:
        self._given += size
        free, ratio = self._limits.free, self._limits.ratio
        if self._given > self._limits.unpacked:
            raise DamagedInput(f"unpacks to more than {words(self._limits.unpacked)}")
        if self._given > free and self._given > ratio * self._read:
            raise DamagedInput(f"unpacks to more than {ratio} times its size")


def words(size: int) -> str:
    for unit, step in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if size >= step:
            return f"{size / step:.3g} {unit}"
    return f"{size} bytes"
