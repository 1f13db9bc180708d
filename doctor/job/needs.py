"""Folders that the job needs on every host, as a person names them: PATH[:rw][:SIZE]."""

import re
from dataclasses import dataclass

from doctor.errors import UsageError
from doctor.text.textfile import shown

MOST = 16
"""Each costs a process on the host."""
EXAMPLE = "For example: /data, /ckpt:rw or /ckpt:rw:500G."
_UNITS = {"K": 1, "M": 10, "G": 20, "T": 30, "P": 40}
_SIZE = re.compile(r"([0-9]{1,7})([KMGTP])(?:i?B)?")


@dataclass(frozen=True, slots=True)
class FolderNeed:
    """`free` is in kilobytes; `text` is what was typed."""

    path: str
    writable: bool = False
    free: int = 0
    text: str = ""

    def __post_init__(self) -> None:
        parts = self.path.split("/")
        if not self.path.startswith("/") or not self.path.isprintable() or len(self.path) > 1000:
            raise UsageError(f"{shown(self.path)} is not an absolute path", EXAMPLE)
        if ".." in parts or set(self.path) & set("*?["):
            raise UsageError(f"{shown(self.path)} is not one folder: it has .. or a wildcard", EXAMPLE)


def read_need(text: str) -> FolderNeed:
    """Raises UsageError."""
    path, *words = text.strip().split(":")
    free, writable = 0, False
    for word in words:
        size = _SIZE.fullmatch(word)
        if word == "rw":
            writable = True
        elif size:
            free = int(size[1]) << _UNITS[size[2]]
        else:
            raise UsageError(f"{shown(word)} in {shown(text)} is neither rw nor a size", EXAMPLE)
    return FolderNeed(path.rstrip("/") or "/" if path else "", writable, free, text.strip())


def read_needs(texts: tuple[str, ...]) -> tuple[FolderNeed, ...]:
    """What was typed; a folder that is named again replaces what was said of it. Raises UsageError."""
    found = {need.path: need for need in map(read_need, texts)}
    if len(found) > MOST:
        raise UsageError(
            f"{len(found)} folders are named; {MOST} are the most", "Name the folders above them."
        )
    return tuple(found.values())
