"""Samples of real jobs on hosts of the lab, as `doctor slow --save` wrote them, and changes of them."""

from collections.abc import Callable
from functools import cache

from msgspec.structs import replace

from doctor.exam.demo import evidence_of
from doctor.slow.evidence import HostSamples, RankLink, RankSamples, SampleRound, SlowEvidence
from doctor.slow.evidence_file import load
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "slow"


@cache
def recorded(name: str) -> SlowEvidence:
    return load(evidence_of("slow") if name == "loader" else SAMPLES / f"{name}-on-4-hosts.json.gz")


def with_rounds(
    evidence: SlowEvidence, change: Callable[[HostSamples, SampleRound], SampleRound]
) -> SlowEvidence:
    samples = tuple(
        replace(host, rounds=tuple(change(host, each) for each in host.rounds)) for host in evidence.samples
    )
    return replace(evidence, samples=samples)


def with_links(evidence: SlowEvidence, change: Callable[[str, RankLink], RankLink]) -> SlowEvidence:
    return with_rounds(
        evidence,
        lambda host, one: replace(one, links=tuple(change(host.host, link) for link in one.links)),
    )


def with_ranks(evidence: SlowEvidence, change: Callable[[str, RankSamples], RankSamples]) -> SlowEvidence:
    return with_rounds(
        evidence,
        lambda host, one: replace(one, ranks=tuple(change(host.host, rank) for rank in one.ranks)),
    )


def stretches(*of: tuple[float, float], waits: bool) -> tuple[tuple[float, float, bool], ...]:
    """A rank is in collectives (or outside, where it pauses) from each of these moments to another."""
    return tuple((start, end, waits) for start, end in of)
