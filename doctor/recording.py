"""A run, saved: what was asked, what every host said, what the mesh found.

It is support bundle, replay and test fixture in one format. Everything in it was redacted when it was
captured, so that a replay sees exactly what the first run saw.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from doctor import __version__
from doctor.errors import UsageError
from doctor.inventory import JobWishes
from doctor.mesh import MeshResult
from doctor.model import Host, Unreached
from doctor.probe import Heard

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything a report is made from; judging one twice gives the same report."""

    schema: int
    tool: str
    command: str
    exam: str
    transport: str
    started: str
    seconds: float
    hosts: tuple[Host, ...]
    wishes: JobWishes
    expect: Mapping[str, str]
    heard: Mapping[str, Heard] = field(default_factory=dict)
    unreached: Mapping[str, Unreached] = field(default_factory=dict)
    mesh: MeshResult | None = None
    mesh_mode: str = "auto"
    unfinished: tuple[str, ...] = ()
    """Hosts still outstanding when the run was interrupted or its deadline came."""
    notes: tuple[str, ...] = ()
    """What the transport had to say, such as a known_hosts file that could not be written."""


def save(recording: Recording, path: Path) -> None:
    """Readable by its owner only, from the first byte on."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        if os.fstat(file.fileno()).st_uid == os.geteuid() and path.is_file():
            os.fchmod(file.fileno(), 0o600)
        file.write(msgspec.json.encode(recording))


def load(path: Path) -> Recording:
    """Read a recording back; a file that is none is a UsageError with its place."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from None
    try:
        head = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        schema = msgspec.json.decode(head["schema"], type=int)
    except (msgspec.DecodeError, KeyError, RecursionError) as error:
        raise UsageError(f"{path}: is no recording: {error}.", "Recordings are written by --save.") from None
    if schema != SCHEMA:
        raise UsageError(
            f"{path}: is a recording of form {schema}; this version ({__version__}) reads form {SCHEMA}."
        )
    try:
        return msgspec.json.decode(raw, type=Recording)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"{path}: is a damaged recording: {error}.") from None
