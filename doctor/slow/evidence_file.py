"""Samples in a file: --save writes it and --replay judges it again. It was redacted when it was taken."""

from collections.abc import Iterator

import msgspec

from doctor.live.evidence_file import nonsense, with_our_commands
from doctor.savedrun import SavedRun
from doctor.slow.evidence import SlowEvidence
from doctor.targets.inputkind import InputKind


def _nonsense(evidence: SlowEvidence) -> Iterator[str]:
    """Reasons why no real run can have saved this evidence."""
    yield from nonsense(evidence)
    members = {host.host: {member.pid for member in host.members} for host in evidence.hosts}
    names = [each.host for each in evidence.samples]
    if len({*names}) < len(names) or not {*names} <= members.keys():
        yield "it contains samples of hosts that were not seen, or of one host twice"
    for host in evidence.samples:
        numbers = [each.number for each in host.rounds]
        if len({*numbers}) < len(numbers):
            yield f"a round of {host.host} occurs twice"
        for each in host.rounds:
            pids = [rank.pid for rank in each.ranks]
            if len({*pids}) < len(pids) or not {*pids} <= members.get(host.host, set()):
                yield f"the samples of {host.host} do not belong to its processes"


FILE = SavedRun(
    "recording of doctor slow",
    InputKind.SLOW,
    "Such files are written by doctor slow --save.",
    lambda head: msgspec.json.decode(msgspec.json.encode(head), type=SlowEvidence),
    _nonsense,
    with_our_commands,
    key="samples",
)
encoded, load = FILE.encoded, FILE.load
