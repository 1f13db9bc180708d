"""Evidence of small jobs that includes output of libraries."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from doctor.live.evidence import HostEvidence, JobMember, LibraryText, LiveEvidence
from doctor.live.libraries.opinions import Source

SAMPLES = Path(__file__).parent.parent / "samples" / "libraries"
NOW = 1_795_284_720.0


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


Ranks = tuple[JobMember, ...]


def job_of(count: int, hosts: int = 1) -> Ranks:
    """Rank r is process 100 + r on node1, node2, ..., with consecutive device numbers."""
    each = count // hosts
    return tuple(
        JobMember(
            host=f"node{rank // each + 1}",
            pid=100 + rank,
            parent=1,
            job="10.0.0.1:29500",
            rank=rank,
            world=count,
        )
        for rank in range(count)
    )


def text(source: Source, body: str, name: str = "x", **more: Any) -> LibraryText:
    return LibraryText(source=source.value, name=name, text=body, **{"at": NOW, **more})


def seen(ranks: Ranks, *said: LibraryText, of: Sequence[tuple[str, LibraryText]] = ()) -> LiveEvidence:
    """`said` for node1, `of` for hosts by name."""
    names = list(dict.fromkeys(member.host for member in ranks))
    texts = [("node1", each) for each in said] + list(of)
    return LiveEvidence(
        started="2026-11-20T09:00:00Z",
        asked=tuple(names),
        hosts=tuple(
            HostEvidence(
                host=name,
                members=tuple(member for member in ranks if member.host == name),
                at=NOW,
                apart=2.0,
                addresses=("127.0.0.1", f"10.0.0.{name[4:]}"),
                libraries=tuple(each for host, each in texts if host == name),
            )
            for name in names
        ),
    )
