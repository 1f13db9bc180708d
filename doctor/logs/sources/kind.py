"""Finds out by the first bytes and the name of a file whether it is an archive, a text, or neither."""

from enum import Enum

from doctor.text.hostprogram import host_program

HEAD = 4096
"""First bytes of a file that are examined."""


class FileKind(Enum):
    TEXT = "text"
    GZIP = "gzip"
    BZIP2 = "bzip2"
    XZ = "xz"
    ZIP = "zip"
    TAR = "tar"
    ZSTD = "zstd"
    BINARY = "binary"


_MAGIC = (
    (b"\x1f\x8b", FileKind.GZIP),
    (b"BZh", FileKind.BZIP2),
    (b"\xfd7zXZ\x00", FileKind.XZ),
    (b"PK\x03\x04", FileKind.ZIP),
    (b"PK\x05\x06", FileKind.ZIP),
    (b"\x28\xb5\x2f\xfd", FileKind.ZSTD),
)
_BINARY = (
    *(b"\x7fELF", b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"\x89HDF", b"SQLite format 3\x00"),
    *(b"7z\xbc\xaf", b"Rar!", b"\xca\xfe\xba\xbe", b"OggS", b"RIFF", b"\x93NUMPY", b"MZ\x90", b"GGUF"),
    *(b"!<arch>", b"PAR1", b"LMDB", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
)
_NO_LOGS = frozenset(host_program(__file__, "endings.txt").split())
_TEXT_CONTROLS = frozenset(b"\t\n\r\x0b\x0c\x08\x07\x1b\x00")
_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")


def no_log(name: str) -> bool:
    """Whether the name shows that it is not a log; not used for files that the user named."""
    last = name.rpartition("/")[2].lower()
    return ("." in last and last.rpartition(".")[2] in _NO_LOGS) or ".tfevents." in last


def kind_of(head: bytes) -> FileKind:
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head[257:262] == b"ustar" and b"\x00" in head[:257]:
        return FileKind.TAR
    if head.startswith(_BINARY) or head[8:10] == b'{"':
        return FileKind.BINARY
    if head.startswith(_BOMS) or wide(head):
        return FileKind.TEXT
    filled = head.replace(b"\x00", b"")
    odd = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in filled)
    return FileKind.BINARY if odd * 20 > len(filled) else FileKind.TEXT


def wide(head: bytes) -> str:
    """The codec of UTF-16 text, or an empty text if it is something else."""
    if head.startswith(_BOMS[:2]):
        return "utf-16-le" if head.startswith(b"\xff\xfe") else "utf-16-be"
    half = len(head) // 2
    if half < 8:
        return ""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd * 10 > half * 7 and even * 10 < half:
        return "utf-16-le"
    return "utf-16-be" if even * 10 > half * 7 and odd * 10 < half else ""
