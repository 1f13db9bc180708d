"""Why a rank is late that is at a line of its own, beside others that sleep or spin while they wait."""

import pytest
from msgspec.structs import replace

from doctor.slow.evidence import HostSamples, Profile, RankSamples, SampleRound, SlowEvidence, Used
from doctor.slow.evidence_file import load
from doctor.slow.judge import judge
from doctor.slow.judge.judgement import Lag, LateReason, SlowCulprit, SlowState
from doctor.slow.judge.reasons import _rate
from tests.exam.jobs import FOLDER
from tests.support.cases import cases
from tests.support.slow.recorded import recorded, with_ranks, with_rounds

LATE = "node3", 57
"""It is at the line for 40 % of the time, and waits for 12 %."""


def using(late: tuple[float, float], others: tuple[float, float]) -> SlowEvidence:
    """The main threads run, and wait for a processor, for these shares of the time."""

    def own(profile: Profile) -> Profile:
        frames = (
            replace(each, file=each.file.replace("torch/utils/data", "mine")) for each in profile.frames
        )
        return replace(profile, frames=tuple(frames))

    def change(host: HostSamples, one: SampleRound) -> SampleRound:
        def used(rank: RankSamples) -> RankSamples:
            ran, starved = late if (host.host, rank.pid) == LATE else others
            return replace(
                rank, used=Used(ran=ran * one.seconds, starved=starved * one.seconds, cpu=ran * one.seconds)
            )

        profiles = tuple(map(own, one.profiles))
        return replace(one, ranks=tuple(map(used, one.ranks)), profiles=profiles)

    return with_rounds(recorded("loader"), change)


@cases
def test_what_it_does_at_a_line_of_its_own(
    late: tuple[float, float], others: tuple[float, float], reason: LateReason, words: str
) -> None:
    found: SlowCulprit
    (found,) = judge(using(late, others)).late
    assert (found.ranks, found.reason) == ((5,), reason)
    assert words in found.why[0]


@pytest.mark.parametrize(
    ("source", "asleep", "reason"),
    [
        ("time.sleep(0.04)", 0.1, LateReason.ELSEWHERE),
        ("time.sleep(0.04)", 0.0, LateReason.COMPUTES),
        ("x = model(x)", 0.1, LateReason.COMPUTES),
    ],
)
def test_at_a_line_that_sleeps_it_does_not_compute(source: str, asleep: float, reason: LateReason) -> None:
    """Though all seem to spin, since they wait for a processor whenever they are not asleep."""

    def change(host: HostSamples, one: SampleRound) -> SampleRound:
        profiles = (
            replace(each, frames=tuple(replace(frame, source=source) for frame in each.frames))
            for each in one.profiles
        )
        ranks = (
            replace(each, outside={"hrtimer_nanosleep": int(asleep * sum(each.samples))})
            if (host.host, each.pid) == LATE
            else each
            for each in one.ranks
        )
        return replace(one, ranks=tuple(ranks), profiles=tuple(profiles))

    (found,) = judge(with_rounds(using((0.3, 0.65), (0.3, 0.65)), change)).late
    assert (found.reason, "sleeps there" in found.why[0]) == (reason, reason is LateReason.ELSEWHERE)


def test_on_crowded_hosts_the_cost_is_said_from_the_least_to_the_most() -> None:
    """It runs as long as the others, and waits for a processor 9 % of the time longer."""
    (free,) = judge(using((0.02, 0.01), (0.02, 0.01))).late
    assert free.least == free.share
    assert " to " not in free.sentence
    (crowded,) = judge(using((0.02, 0.15), (0.02, 0.06))).late
    assert 0.08 < crowded.share - crowded.least < 0.11
    assert crowded.saves == crowded.least
    assert "for it 31 to 40 % of the time, 59 to 76 ms a step" in crowded.sentence
    (busy,) = judge(using((0.06, 0.15), (0.02, 0.06))).late
    assert busy.least == busy.share, "it has more to do, and waits for more"


@cases
def test_rates(bytes_a_second: float, said: str) -> None:
    assert _rate(bytes_a_second) == said


def of_job(name: str) -> SlowEvidence:
    return load(FOLDER / f"{name}.json.gz")


def test_a_lock_is_told_from_the_waits_of_those_that_receive() -> None:
    (found,) = judge(of_job("lock_ring-2-slow")).late
    assert (found.lag, found.ranks) == (Lag.LATE, (2,))
    assert found.why[0].startswith("it waits for another thread of its own there; one is in exporter")

    def alike(_: str, rank: RankSamples) -> RankSamples:
        outside = {name.replace("limited ", ""): number for name, number in rank.outside.items()}
        return replace(rank, outside=outside)

    (blurred,) = judge(with_ranks(of_job("lock_ring-2-slow"), alike)).late
    assert "another thread" not in blurred.why[0]


def test_a_stage_that_waits_itself_far_longer_than_it_costs_is_not_late() -> None:
    made = judge(of_job("healthy-gpipe-slow"))
    assert (made.state, made.exit_code, made.late) == (SlowState.EVEN, 0, ())
    assert "rank 1" in made.maybe
    assert made.smallest
    assert made.smallest > 0.17
    (found,) = judge(of_job("late-stage-1-slow")).late
    assert (found.lag, found.ranks) == (Lag.STAGE, (1,))
