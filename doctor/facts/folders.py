"""The folders that the job needs, as a host has them. Nothing in them is read, and nothing is written."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from doctor.api import Ask, Capture, Fact, Run
from doctor.text.hostprogram import host_program

PATIENCE = 3
"""Seconds after which a folder does not answer."""
MOST_NAMES = 20_000
MANY = "many"
"""The names of a folder with more entries: such folders count as alike."""
_LOOK = host_program(__file__, "folders.sh")
"""The mount is looked up first, because touching a path may hang; a process of its own touches each. A folder
of a dead server may exist in the cache, but df asks the server, and names the mount to which a link leads.
"""
_ROW = re.compile(r"(.*?) +(\d{1,20}|-) +(\d{1,20}|-) +(-?\d{1,20}|-) +\S+ +/")
_SHARED = re.compile(
    r"nfs\d?|cifs|smb\w*|lustre|ceph|gpfs|9p|afs|beegfs\w*|glusterfs|pvfs2|wekafs|virtiofs|fuse(\..*)?|autofs"
)


@dataclass(frozen=True, slots=True)
class Folder:
    """`kind`: "folder", "file", "closed" to this user, "missing", or "" if it did not answer. `free` and
    `total` are in kilobytes. None is unknown.
    """

    kind: str
    writable: bool = False
    read_only: bool = False
    """Whether it is mounted so."""
    source: str = ""
    """The server and its folder, or the device."""
    type: str = ""
    mount: str = ""
    free: int | None = None
    total: int | None = None
    inodes: int | None = None
    entries: int | None = None
    names: str = ""
    """Tells folders with other entries apart; empty if they were not read."""

    @property
    def is_shared(self) -> bool:
        """Whether its file system is a server's, as far as the mount tells."""
        named = ":" in self.source or self.source.startswith("//")
        return named or _SHARED.fullmatch(self.type) is not None


def _ask(ask: Ask) -> str:
    return f"set -- {shlex.join(ask.folders)}\n{_LOOK}" if ask.folders else ""


def _folders(capture: Capture) -> Mapping[int, Folder]:
    rows: dict[int, dict[str, str]] = {}
    for what, number, rest in re.findall(r"^(\w+) (\d{1,3}) ?(.*)$", capture.stdout, re.MULTILINE):
        rows.setdefault(int(number), {})[what] = rest
    return {number: _folder(row) for number, row in rows.items() if "mount" in row}


def _folder(row: Mapping[str, str]) -> Folder:
    mode, source, kind, mount = (*row.get("real", row["mount"]).split(" ", 3), "", "", "", "")[:4]
    look = row.get("look", "").split(" ")
    space, inodes = (_ROW.match(row.get(word, "")) for word in ("space", "inodes"))
    found = re.fullmatch(r" *(\d{1,6}) (\d{1,10} (\d{1,10}))", row.get("names", ""))
    entries = None if found is None else int(found[1]) if found[3] != "0" else 0
    return Folder(
        kind=look[0],
        writable=look[1:2] == ["rw"],
        read_only=mode == "ro",
        source=space[1] if space else source,
        type=kind,
        mount=mount,
        free=_number(space[4]) if space else None,
        total=_number(space[2]) if space else None,
        inodes=_number(inodes[4]) if inodes and inodes[2] not in "0-" else None,
        entries=entries,
        names="" if found is None else MANY if int(found[1]) > MOST_NAMES else found[2],
    )


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


FOLDERS: Fact[Mapping[int, Folder]] = Fact("folders", Run(_ask), _folders, timeout=PATIENCE + 2, slow=True)
"""The folders by their place in the list of those that the job needs, from 1."""
