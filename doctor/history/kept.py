"""The runs that --report-dir and `doctor run` left in folders: found, checked, and read one at a time.

Whatever is not a whole report of a run is named and passed over. No link below a folder is followed.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import msgspec

from doctor.model import HostStatus, Status
from doctor.text.nodeset import is_host
from doctor.text.outfile import user_name, why_not_ours
from doctor.text.printable import clean_line

EXAMINES = ("check", "smoke", "preflight")
ENDED = ("logs", "explain")
"""The commands whose reports say why a job ended."""
BESIDE = (".run.json", ".evidence.json")
"""What lies beside a report of the same run."""
HEAD = 4096
"""The bytes in which a report says when it began."""
MOST_BYTES = 64_000_000
TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"
_STARTED = re.compile(rf'"started"\s*:\s*"({TIME})"'.encode())
_is_host = lru_cache(maxsize=200_000)(is_host)
CheckId = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9]+(-[a-z0-9]+)*\Z", max_length=64)]


class KeptRun(msgspec.Struct, frozen=True):
    command: str
    started: Annotated[str, msgspec.Meta(pattern=rf"\A{TIME}\Z")]
    strict: bool = False
    exam: str | None = None


class KeptHost(msgspec.Struct, frozen=True):
    name: str
    status: HostStatus
    serial: str | None = None


class KeptFinding(msgspec.Struct, frozen=True):
    id: str
    status: Status
    hosts: tuple[str, ...]
    check: CheckId | None = None
    cause: str | None = None
    because: str | None = None


class KeptResult(msgspec.Struct, frozen=True):
    hosts: tuple[str, ...]
    status: Status
    check: str | None = None


class KeptReport(msgspec.Struct, frozen=True):
    """What is used of a report."""

    schema: Literal[2]
    run: KeptRun
    hosts: tuple[KeptHost, ...]
    findings: tuple[KeptFinding, ...]
    results: tuple[KeptResult, ...] = ()


@dataclass(slots=True)
class Kept:
    """The runs of some folders: when each began, and where it is."""

    files: list[tuple[str, str]] = field(default_factory=list)
    shadows: set[str] = field(default_factory=set)
    """The files of --shadow."""
    passed_over: dict[str, str] = field(default_factory=dict)
    """File -> why."""
    open_to_others: list[str] = field(default_factory=list)
    """Sentences about folders into which others could have put runs."""

    def runs(self, *, newest: bool = False) -> Iterator[KeptReport]:
        """Each run, in the order in which they began, or the newest first; copies count once."""
        seen: set[int] = set()
        for _, path in sorted(self.files, reverse=newest):
            try:
                report = msgspec.json.decode(_beginning(path, MOST_BYTES), type=KeptReport)
                datetime.strptime(report.run.started, "%Y-%m-%dT%H:%M:%SZ")
            except (OSError, ValueError, RecursionError) as error:  # a DecodeError is a ValueError
                self.passed_over[shown(path)] = words(error)
                continue
            names = [host.name for host in report.hosts]
            named = {*names, *(host for each in report.findings for host in each.hosts)}
            if len({*names}) < len(names) or not all(map(_is_host, named)):
                self.passed_over[shown(path)] = "is damaged: its hosts do not add up"
            elif (key := hash((report.run, report.hosts, report.findings))) not in seen:
                seen.add(key)
                yield report


def shown(path: str) -> str:
    """The path as text, whatever bytes it has."""
    return os.fsencode(path).decode(errors="backslashreplace")


def find_runs(folders: Iterable[Path]) -> Kept:
    """The runs below the folders; nothing but their beginnings is read yet."""
    kept = Kept()
    for folder in folders:
        owners: set[str] = set()
        opened = ""
        failed: list[OSError] = []
        for top, _, names in os.walk(folder, onerror=failed.append):  # it follows no links to folders
            if not opened and (why := why_not_ours(Path(top))):
                opened = f"{top}: {why}"
            for name in sorted(names):
                path = os.path.join(top, name)
                if name.startswith(".") or name.endswith(BESIDE) or not name.endswith((".json", ".jsonl")):
                    continue
                try:
                    owners.add(user_name(os.lstat(path).st_uid))
                    beginning = _beginning(path, HEAD)
                    if name.endswith(".jsonl") and (b'"shadow"' in beginning or not beginning):
                        kept.shadows.add(path)
                    elif name.endswith(".json") and (found := _STARTED.search(beginning)):
                        kept.files.append((found[1].decode(), path))
                    else:
                        raise ValueError("is not a report of doctor")
                except (OSError, ValueError) as error:
                    kept.passed_over[shown(path)] = words(error)
        kept.passed_over |= {shown(error.filename): words(error) for error in failed}
        if opened:
            kept.open_to_others.append(f"{opened}; its runs are those of {', '.join(sorted(owners))}")
    return kept


def opened(path: str) -> BinaryIO:
    """A regular file, never what a link leads to. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        file.close()
        raise OSError(0, "it is not a regular file")
    return file


def _beginning(path: str, most: int) -> bytes:
    with opened(path) as file:
        return file.read(most)


def words(error: Exception) -> str:
    if isinstance(error, OSError):
        return "is a link" if error.errno == errno.ELOOP else f"cannot be read: {error.strerror}"
    damaged = isinstance(error, msgspec.DecodeError | RecursionError | UnicodeDecodeError)
    about = clean_line(str(error))[:200]
    return f"is damaged, or of another version of doctor: {about}" if damaged else about
