"""The results of a run in a file: one way to write it and to read it back."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from doctor import __version__
from doctor.errors import InputErrors, Mistake, UsageError
from doctor.targets.inputkind import InputKind, refuse_other
from doctor.text.printable import clean_line, escaped
from doctor.text.textfile import read_bytes

T = TypeVar("T")
SCHEMA = 1
MOST_BYTES = 1_000_000_000
"""The most bytes of a file. 10,000 hosts need less."""
GZIP = b"\x1f\x8b"
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class SavedRun(Generic[T]):
    noun: str
    """Such as "recording"."""
    kind: InputKind
    written_by: str
    """A sentence: the command that writes such files."""
    read: Callable[[Mapping[str, msgspec.Raw]], T]
    nonsense: Callable[[T], Iterable[str]]
    """Finds what no run would have saved, because a file may come from anywhere."""
    ours: Callable[[T], T]
    """The run with its commands rebuilt: no text of the file is printed as a command."""
    key: str = "schema"
    """A file without this key is something else."""

    def encoded(self, run: T) -> bytes:
        """The contents of its file."""
        return escaped(msgspec.json.encode(run).decode()).encode()

    def load(self, path: Path, raw: bytes | None = None) -> T:
        """Read it back; a file of another kind is a UsageError with its path. `raw` is its contents, if they
        were read.
        """
        raw = read_saved(path) if raw is None else raw
        try:
            return self.decoded(raw, path)
        except UsageError:
            refuse_other(str(path), raw.decode(errors="replace"), self.kind)
            raise

    def decoded(self, raw: bytes, path: Path) -> T:
        """The run that these bytes of a file contain."""
        try:
            head = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            schema = msgspec.json.decode(head["schema"], type=int)
        except KeyError:
            raise self._other(path, "it has no 'schema'") from None
        except _UNREADABLE:
            raise self._other(path, "it is not JSON of this kind") from None
        if self.key not in head:
            raise self._other(path, f"it has no {self.key!r}")
        if schema != SCHEMA:
            reads = f"this version ({__version__}) reads form {SCHEMA}"
            raise UsageError(f"{path}: is a {self.noun} of form {schema}; {reads}.")
        try:
            run = self.read(head)
        except _UNREADABLE as error:
            why = f"its JSON does not fit ({clean_line(str(error))})"
            raise UsageError(f"{path}: is a damaged {self.noun}: {why}.") from None
        for nonsense in self.nonsense(run):
            raise UsageError(f"{path}: is a damaged {self.noun}: {nonsense}.")
        return self.ours(run)

    def _other(self, path: Path, why: str) -> UsageError:
        return UsageError(f"{path}: is not a {self.noun}: {why}.", self.written_by)


def read_saved(path: Path) -> bytes:
    """The contents of a recording or a report, which may be packed by gzip. Raises InputErrors."""
    return _unpacked(read_bytes(path, MOST_BYTES, magic=GZIP), path)


def _unpacked(raw: bytes, path: Path) -> bytes:
    """The contents of a file that may be packed by gzip, as people do to send it."""
    if raw.startswith(GZIP):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                raw = packed.read(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error):
            raise InputErrors([Mistake(str(path), None, "is a damaged gzip file")]) from None
        if len(raw) > MOST_BYTES:
            message = f"holds more than {MOST_BYTES // 1_000_000} MB: is it the right file?"
            raise InputErrors([Mistake(str(path), None, message)])
    return raw
