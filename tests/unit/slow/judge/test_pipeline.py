"""Stages of a pipeline wait for one another by design."""

from collections.abc import Mapping

from msgspec.structs import replace

from doctor.slow.advice import advice
from doctor.slow.evidence import Profile, RankLink, RankSamples, SlowEvidence
from doctor.slow.evidence_file import load
from doctor.slow.judge import judge
from doctor.slow.judge.judgement import Lag, LateReason, SlowState
from tests.support.slow.recorded import SAMPLES, recorded, stretches, with_links, with_ranks, with_rounds


def pipeline(shares: Mapping[str, float]) -> SlowEvidence:
    """Ranks that wait in receives, for these shares of the time on each host."""

    def receives(profile: Profile) -> Profile:
        frames = tuple(
            replace(each, name="recv", file="/torch/distributed/distributed_c10d.py")
            if each.name == "Tensor.backward"
            else each
            for each in profile.frames
        )
        return replace(profile, frames=frames)

    seen = with_rounds(
        recorded("nobody"), lambda _, one: replace(one, profiles=tuple(map(receives, one.profiles)))
    )
    return with_ranks(
        seen,
        lambda host, rank: replace(
            rank, waits=tuple(round(shares[host] * number) for number in rank.samples), long=()
        ),
    )


def test_stages_that_wait_alike_or_by_design_are_not_said_to_wait_for_somebody() -> None:
    for shares in ((0.5, 0.5, 0.5, 0.5), (0.4, 0.6, 0.42, 0.41)):
        made = judge(pipeline({f"node{at}": share for at, share in enumerate(shares, 1)}))
        assert (made.state, made.exit_code, made.late) == (SlowState.EVEN, 0, ())
        assert "stages of the pipeline wait for one another" in made.sentence
        assert made.sentence.endswith("as they do by design.")
        assert "alike" not in made.sentence
        assert "another one" not in made.sentence


def test_the_slowest_stage_is_called_what_it_is() -> None:
    made = judge(pipeline({"node1": 0.7, "node2": 0.1, "node3": 0.7, "node4": 0.7}))
    (late,) = made.late
    assert (late.lag, late.hosts) == (Lag.STAGE, ("node2",))
    assert "slowest stage of the pipeline" in made.sentence


def test_pauses_of_one_stage_are_told_by_its_waits() -> None:
    """No worker of gloo waits in a receive."""

    def change(host: str, rank: RankSamples) -> RankSamples:
        paused = stretches((0.0, 0.5), (2.0, 3.0), (4.0, 4.9), waits=(host, rank.pid) != who)
        return replace(rank, long=(), long_waits=paused)

    who = ("node3", 57)
    seen = with_ranks(pipeline(dict.fromkeys(("node1", "node2", "node3", "node4"), 0.5)), change)
    moved = with_rounds(seen, lambda _, one: replace(one, began=100.0 * one.number))
    made = judge(replace(moved, samples=tuple(replace(host, ahead=0.0) for host in moved.samples)))
    assert [(each.lag, (each.host, each.pid)) for each in made.late] == [(Lag.PAUSES, who)]


def test_beside_a_slow_link_no_stage_is_called_slow() -> None:
    def change(host: str, link: RankLink) -> RankLink:
        slow = host == "node4"
        return replace(link, sent=10**8, rate=10**6 if slow else 10**9, busy=8.0 if slow else 0.1)

    made = judge(with_links(pipeline({"node1": 0.7, "node2": 0.1, "node3": 0.7, "node4": 0.7}), change))
    assert [each.lag for each in made.late] == [Lag.SLOW_LINK]


def test_stages_of_pipelining_wait_for_the_slowest() -> None:
    """Recorded: three stages over gloo, whose workers show no wait; the first one sleeps in its forward."""
    made = judge(load(SAMPLES / "pipelining.json.gz"))
    (late,) = made.late
    assert (late.ranks, late.lag, late.reason) == ((0,), Lag.STAGE, LateReason.UNEVEN)
    assert late.where is not None
    assert (late.where.frame.name, late.where.frame.line) == ("S.forward", 10)
    assert [*advice(late, made.hang.reach)] == [
        "# Give it fewer layers, or less work at this line, if it is not so by design."
    ]
