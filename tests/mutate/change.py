"""One change of a source, and how it is made in a copy of the tree."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Change:
    """Bytes of a source that are replaced. `before` and `after` are the lines around them."""

    path: str
    scope: str
    """The classes and functions around it."""
    function: str
    """The innermost; empty outside of functions."""
    nth: int
    """Which of those that read the same in this scope."""
    line: int
    start: int
    end: int
    text: str
    before: str
    after: str

    @property
    def key(self) -> str:
        """Stays the same if the file changes elsewhere."""
        return f"{self.path} {self.scope} {self.before} -> {self.after} {self.nth}"

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


@contextmanager
def made(change: Change, tree: Path, stamp: int) -> Generator[None]:
    """The tree with the change. Each has a time of its own, or compiled code of another might be taken."""
    path = tree / change.path
    sound, when = path.read_bytes(), path.stat()
    path.write_bytes(change.applied(sound))
    os.utime(path, (stamp, stamp))
    try:
        yield
    finally:
        path.write_bytes(sound)
        os.utime(path, ns=(when.st_atime_ns, when.st_mtime_ns))
