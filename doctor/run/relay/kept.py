"""What a stream printed, in memory that doctor and the relay share: its beginning and its end.

The relay reads output right into it, so that nothing is copied twice. It is a file without a name.
"""

import mmap
import os
import struct
import tempfile

HEAD, RING = 2 << 20, 8 << 20
CHUNK = 256 << 10
"""The most bytes that are read at once."""
_PAGE = 4096
SIZE = _PAGE + HEAD + RING
_TOTAL = struct.Struct("q")


def nameless_file(size: int) -> int:
    """A file without a name, with room for so many bytes; in memory if the disk has no room."""
    try:
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return os.dup(file.fileno())
    except OSError:
        memory = os.memfd_create("doctor")
        os.ftruncate(memory, size)
        return memory


class Kept:
    """One stream; `place` is its number in the file."""

    def __init__(self, file: int, place: int) -> None:
        self._memory = mmap.mmap(file, SIZE, offset=place * SIZE)
        view = memoryview(self._memory)
        self._head, self._ring = view[_PAGE : _PAGE + HEAD], view[_PAGE + HEAD : SIZE]
        self._at = 0
        """The bytes that the writer has added."""

    @property
    def total(self) -> int:
        """How many bytes were printed so far."""
        return int(_TOTAL.unpack_from(self._memory)[0])

    def room(self) -> memoryview:
        """Where the next bytes belong."""
        if self._at < HEAD:
            return self._head[self._at : self._at + CHUNK]
        at = (self._at - HEAD) % RING
        return self._ring[at : at + CHUNK]

    def add(self, size: int) -> None:
        self._at += size
        _TOTAL.pack_into(self._memory, 0, self._at)

    def first(self) -> bytes:
        """The beginning."""
        return bytes(self._head[: min(self.total, HEAD)])

    def since(self, place: int, most: int = RING) -> tuple[int, bytes]:
        """What was printed after that byte, or the end of it; with the place where it begins.

        Not more than `most` bytes, and nothing that the writer may be overwriting meanwhile.
        """
        total = self.total
        begin = max(place, total - min(most, RING - 2 * CHUNK)) if total > HEAD else max(place, total - most)
        if begin < HEAD:
            return begin, bytes(self._head[begin : min(total, HEAD)]) + self._of_ring(HEAD, total)
        return begin, self._of_ring(begin, total)

    def _of_ring(self, begin: int, end: int) -> bytes:
        if end <= begin:
            return b""
        at, until = (begin - HEAD) % RING, (end - HEAD) % RING
        if at < until:
            return bytes(self._ring[at:until])
        return bytes(self._ring[at:]) + bytes(self._ring[:until])
