"""Evidence in a file: what --save keeps, and --replay judges again. It was redacted when it was taken."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from doctor import __version__
from doctor.errors import UsageError
from doctor.hang.evidence import Evidence
from doctor.targets.inputkind import InputKind, refuse_other
from doctor.text.nodeset import is_host
from doctor.text.printable import clean_line, escaped
from doctor.text.textfile import read_bytes
from doctor.transport.way import read_back

SCHEMA = 1
MOST_BYTES = 1_000_000_000
WRITTEN = "Such files are written by doctor hang --save."


def encoded(evidence: Evidence) -> bytes:
    return escaped(msgspec.json.encode(evidence).decode()).encode()


def load(path: Path) -> Evidence:
    """Raises UsageError with the place in the file."""
    raw = read_bytes(path, MOST_BYTES)
    try:
        return decoded(raw, path)
    except UsageError:
        refuse_other(str(path), raw.decode(errors="replace"), InputKind.HANG)
        raise


def decoded(raw: bytes, path: Path) -> Evidence:
    try:
        head = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        schema = msgspec.json.decode(head["schema"], type=int)
    except (msgspec.DecodeError, KeyError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path}: is no evidence of doctor hang: {clean_line(str(error))}.", WRITTEN
        ) from None
    if "asked" not in head:
        raise UsageError(
            f"{path}: is no evidence of doctor hang: it names no hosts that were asked.", WRITTEN
        )
    if schema != SCHEMA:
        raise UsageError(
            f"{path}: is evidence of form {schema}; this version ({__version__}) reads form {SCHEMA}."
        )
    try:
        evidence = msgspec.json.decode(raw, type=Evidence)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: is damaged evidence: {clean_line(str(error))}.") from None
    if why := _nonsense(evidence):
        raise UsageError(f"{path}: is damaged evidence: {why}.")
    return replace(evidence, way=read_back(evidence.way)) if evidence.way else evidence


def _nonsense(evidence: Evidence) -> str:
    """What no run would have kept."""
    asked, seen = {*evidence.asked}, [host.host for host in evidence.hosts]
    if not asked or not all(map(is_host, asked)):
        return "it names no hosts, or one by a name that is none"
    if len({*seen}) < len(seen) or not asked >= {*seen, *evidence.unreached}:
        return "it speaks of hosts that were not asked, or of one twice"
    for host in evidence.hosts:
        pids = [member.pid for member in host.members]
        if len({*pids}) < len(pids) or any(member.host != host.host for member in host.members):
            return f"the processes of {host.host} do not add up"
        if any(look.pid != m.pid for m in host.members for look in m.looks):
            return f"a look at a process of {host.host} is of another one"
    return ""
