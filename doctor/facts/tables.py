"""The rank table: as given on the command line, and as stored on the hosts."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from doctor.api import Ask, Capture, Fact, Read, Run, RunValue
from doctor.job.ranktable import Flaw, RankTable
from doctor.text.hostprogram import host_program

MOST = 1 << 20
"""How many bytes of a table are read; larger ones are compared by checksum."""


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file on a host. `text` is empty if it is too large; `trouble` says why it cannot be read."""

    checksum: str
    text: str = ""
    link: bool = False
    trouble: str = ""


_LOOK = host_program(__file__, "tables.sh", most=MOST)


def _ask_tables(ask: Ask) -> str:
    """Read by a process that nobody waits for: a dead network file system must not hold up other answers."""
    if not ask.tables:
        return ""
    looks = "\n".join(f"l {shlex.quote(path)}".replace("'~/", "~/'", 1) for path in ask.tables)
    looks = looks.replace("l ~/'.cache/", '[ "$HF_HOME$XDG_CACHE_HOME" ] || l ~/\'.cache/')
    return f"{_LOOK}( {{\n{looks}\n}} 2>/dev/null 5>&- & ) | cat"


def _tables(capture: Capture) -> Mapping[str, HostFile]:
    """Files by path. Paths with a line break are not recognised, because such files are never asked for."""
    head = r"^@ (\d{1,12}) \d{1,15} (.{1,4096}) (link|file|missing|unreadable)$"
    parts = re.split(head, capture.stdout, flags=re.MULTILINE)
    return {
        path: HostFile(checksum, text.strip(), kind == "link")
        if kind in ("link", "file")
        else HostFile("", trouble="there is no such file" if kind == "missing" else "it cannot be read")
        for checksum, path, kind, text in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True)
    }


TABLE_FILES: Fact[Mapping[str, HostFile]] = Fact(
    "tables", Run(_ask_tables), _tables, timeout=4, slow=True, cap=4 * MOST
)


def _architecture(capture: Capture) -> str:
    """The architecture, by its own name of the dynamic loader; "" if the host has several loaders."""
    names = {
        "x86_64": r"/lib64/ld-linux-x86-64|/lib/ld-musl-x86_64",
        "aarch64": r"/lib/ld-linux-aarch64|/lib/ld-musl-aarch64",
    }
    found = [
        name for name, loader in names.items() if re.search(rf"^(?:{loader})", capture.stdout, re.MULTILINE)
    ]
    return found[0] if len(found) == 1 else ""


ARCHITECTURE: Fact[str] = Fact(
    "architecture",
    Read((), there=("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-*.so.1")),
    _architecture,
)


@dataclass(frozen=True, slots=True)
class JobTable:
    """`given`: on the command line; `product` is the one whose rules apply, if the user named one."""

    path: str
    text: str
    table: RankTable | None
    flaws: tuple[Flaw, ...]
    given: bool
    checksum: str = ""
    product: str | None = None


RANK_TABLE: RunValue[JobTable] = RunValue("rank-table")
"""Missing if the job has none."""
