"""What a hostile host can say in its rounds of samples: its own answer may be lost, and nothing else."""

import json
import time
from collections.abc import Collection, Iterable

import pytest
from msgspec.structs import replace

from doctor.live.agents import LookPatience
from doctor.slow.agents import RoundPlan, SlowAgents
from doctor.slow.evidence import HostSamples, RankSamples, SampleRound, SlowEvidence
from doctor.slow.evidence_file import FILE, encoded
from doctor.slow.judge import judge
from doctor.slow.report import page_of
from tests.support.paths import ROOT
from tests.support.slow.recorded import recorded, with_links, with_ranks, with_rounds
from tests.unit.live.test_bounds import FOUND, NAMES, Said, member

MOST = 2**62
ROUND = {"say": "round", "number": 0, "began": 5.0, "seconds": 6.0}
RANK = {"say": "rank", "number": 0, "rank": {"pid": 7, "samples": [9], "inside": [3], "workers": 2}}
PROFILE = {"say": "profile", "number": 0, "profile": {"pid": 7, "samples": 1}}


class Sampling(Said):
    """Hosts that answer the request for samples."""

    def send(self, host: str, line: bytes) -> None:
        super().send(host, line.replace(b'"do":"sample"', b'"do":"look"'))


def sampled(said: Iterable[object], pids: Collection[int] = (7,)) -> tuple[SlowAgents, HostSamples]:
    lines = [json.dumps(each).encode() for each in said]
    found = [*(member(pid) for pid in pids), FOUND]
    honest = [json.dumps(each).encode() for each in (RANK, ROUND)]
    session = Sampling({"node1": ((member(7), FOUND), honest), "node2": (found, lines)})
    agents = SlowAgents(session, NAMES, LookPatience(whole=60.0), time.monotonic() + 2)
    agents.find(lambda: None)
    agents.sample(0, RoundPlan(6.0), lambda: None)
    first, second = (host.samples() for host in agents.agents.values())
    assert [len(each.ranks) for each in first.rounds] == [1], "the honest host is heard"
    return agents, second


@pytest.mark.parametrize(
    "bad",
    [
        *({**ROUND, "seconds": seconds} for seconds in (0, -6, 1e-300, 1e9, "6", None)),
        {**ROUND, "began": -1},
        {**ROUND, "number": 1},
        {**ROUND, "links": [{"local": "a", "peer": "b", "sent": -1}]},
        {**ROUND, "links": [{"local": "a", "peer": "b"}] * 1_025},
    ],
    ids=lambda bad: str(bad)[:60],
)
def test_an_impossible_round_is_none(bad: object) -> None:
    assert not sampled([RANK, bad])[1].rounds


@pytest.mark.parametrize(
    "bad",
    [
        {**RANK, "rank": {**RANK["rank"], "pid": 8}},  # type: ignore[dict-item]
        {**RANK, "rank": {**RANK["rank"], "samples": [-1]}},  # type: ignore[dict-item]
        {**RANK, "rank": {**RANK["rank"], "samples": [1] * 65}},  # type: ignore[dict-item]
        {**RANK, "rank": {**RANK["rank"], "inside": [MOST + 1]}},  # type: ignore[dict-item]
        {**RANK, "number": 7},
        RANK,
    ],
    ids=["unknown", "negative", "too many", "too large", "another round", "twice"],
)
def test_a_rank_counts_once_and_only_if_the_host_has_it(bad: object) -> None:
    (one,) = sampled([RANK, bad, ROUND])[1].rounds
    assert [each.pid for each in one.ranks] == [7]


def test_what_is_saved_of_a_host_that_repeats_itself_can_be_read_again() -> None:
    pids = range(7, 2_200)
    _, said = sampled([*[PROFILE] * 4_300, ROUND], pids)
    evidence = recorded("nobody")
    text = encoded(replace(evidence, samples=(*evidence.samples[1:], replace(said, host="node1"))))
    assert FILE.decoded(text, ROOT)


def of_one(host: str) -> SlowEvidence:
    """As if the job had run on this host alone."""
    evidence = recorded("nobody")
    hosts = [
        replace(each, members=tuple(replace(m, world=1) for m in each.members))
        for each in evidence.hosts
        if each.host == host
    ]
    samples = [each for each in evidence.samples if each.host == host]
    return replace(evidence, hosts=tuple(hosts), samples=tuple(samples))


def huge(rank: RankSamples) -> RankSamples:
    return replace(rank, inside=(MOST,) * 64, waits=(MOST,) * 64, entries=MOST, workers=MOST)


@pytest.mark.parametrize("bad", ["node1", "node4"])
def test_what_one_host_claims_makes_no_honest_rank_late(bad: str) -> None:
    evidence = with_ranks(recorded("nobody"), lambda host, one: huge(one) if host == bad else one)
    made = judge(evidence)
    assert not [late for late in made.late if bad not in late.hosts], made.sentence
    assert all(each.waits is None or each.waits <= 1 for each in made.ranks)


def test_a_host_that_claims_lost_segments_is_itself_an_end_of_the_link() -> None:
    evidence = with_links(
        recorded("nobody"), lambda host, link: replace(link, again=MOST) if host == "node2" else link
    )
    made = judge(evidence)
    assert all("node2" in (*late.hosts, *late.peers) for late in made.late), made.late
    assert page_of(made)


def test_a_job_of_one_host_is_judged_whatever_that_says() -> None:
    def empty(_: HostSamples, one: SampleRound) -> SampleRound:
        return replace(one, seconds=0.1, ranks=tuple(map(huge, one.ranks)), links=())

    assert page_of(judge(with_rounds(of_one("node1"), empty)))
