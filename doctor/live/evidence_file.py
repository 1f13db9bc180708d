"""Evidence in a file: --save writes it and --replay judges it again. It was redacted when it was taken."""

from collections.abc import Iterator
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from doctor.live.evidence import LiveEvidence
from doctor.savedrun import SavedRun
from doctor.targets.inputkind import InputKind
from doctor.text.nodeset import is_host
from doctor.transport.way import read_back

E = TypeVar("E", bound=LiveEvidence)


def with_our_commands(evidence: E) -> E:
    return replace(evidence, way=read_back(evidence.way)) if evidence.way else evidence


def nonsense(evidence: LiveEvidence) -> Iterator[str]:
    """Reasons why no real run can have saved this evidence."""
    asked, seen = {*evidence.asked}, [host.host for host in evidence.hosts]
    if not asked or not all(map(is_host, asked)):
        yield "it names no hosts, or a host with an invalid name"
    if len({*seen}) < len(seen) or not asked >= {*seen, *evidence.unreached}:
        yield "it contains hosts that were not asked, or one host twice"
    for host in evidence.hosts:
        pids = [member.pid for member in host.members]
        if len({*pids}) < len(pids) or any(member.host != host.host for member in host.members):
            yield f"the processes of {host.host} do not add up"
        if any(look.pid != m.pid for m in host.members for look in m.looks):
            yield f"a look at a process of {host.host} belongs to another process"


FILE = SavedRun(
    "recording of doctor hang",
    InputKind.HANG,
    "Such files are written by doctor hang --save.",
    lambda head: msgspec.json.decode(msgspec.json.encode(head), type=LiveEvidence),
    nonsense,
    with_our_commands,
    key="asked",
)
encoded, decoded, load = FILE.encoded, FILE.decoded, FILE.load
