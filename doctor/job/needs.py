"""Folders that the job needs on every host, as a person names them: PATH[:rw][:SIZE][:RATE]."""

import re
from dataclasses import dataclass

from doctor.errors import UsageError
from doctor.text.textfile import shown

MOST = 16
"""Each costs a process on the host."""
EXAMPLE = "For example: /data, /data:500MB/s, /ckpt:rw or /ckpt:rw:500G."
_UNITS = {"K": 1, "M": 10, "G": 20, "T": 30, "P": 40}
_SIZE = re.compile(r"([0-9]{1,7})([KMGTP])(?:i?B)?")
_RATE = re.compile(r"([0-9]{1,7})([MG])B/s")


@dataclass(frozen=True, slots=True)
class FolderNeed:
    """`free` is in kilobytes, `rate` in 10^6 bytes a second; `text` is what was typed."""

    path: str
    writable: bool = False
    free: int = 0
    text: str = ""
    rate: int = 0

    def __post_init__(self) -> None:
        parts = self.path.split("/")
        if not self.path.startswith("/") or not self.path.isprintable() or len(self.path) > 1000:
            raise UsageError(f"{shown(self.path)} is not an absolute path", EXAMPLE)
        if ".." in parts or set(self.path) & set("*?["):
            raise UsageError(f"{shown(self.path)} is not one folder: it has .. or a wildcard", EXAMPLE)


def read_need(text: str) -> FolderNeed:
    """Raises UsageError."""
    path, *words = text.strip().split(":")
    free, writable, reads = 0, False, 0
    for word in words:
        size, rate = _SIZE.fullmatch(word), _RATE.fullmatch(word)
        if word == "rw":
            writable = True
        elif size:
            free = int(size[1]) << _UNITS[size[2]]
        elif rate:
            reads = int(rate[1]) * (1000 if rate[2] == "G" else 1)
        else:
            raise UsageError(f"{shown(word)} in {shown(text)} is neither rw, nor a size, nor a rate", EXAMPLE)
    return FolderNeed(path.rstrip("/") or "/" if path else "", writable, free, text.strip(), reads)


def read_needs(texts: tuple[str, ...]) -> tuple[FolderNeed, ...]:
    """What was typed; a folder that is named again replaces what was said of it. Raises UsageError."""
    found = {need.path: need for need in map(read_need, texts)}
    if len(found) > MOST:
        raise UsageError(
            f"{len(found)} folders are named; {MOST} are the most", "Name the folders above them."
        )
    return tuple(found.values())
