"""Several that are late at once: all are named, what costs most first, each with its own reason."""

from collections.abc import Mapping

from msgspec.structs import replace

from doctor.slow.evidence import HostSamples, RankLink, RankSamples, SampleRound, SlowEvidence, Used
from doctor.slow.judge import HIDDEN, SlowJudgement, judge
from doctor.slow.judge.judgement import Lag, LateReason, SlowState
from doctor.slow.options import SlowWishes
from doctor.slow.plan import following
from doctor.slow.report import page_of
from tests.support.slow.recorded import recorded, stretches, with_links, with_ranks, with_rounds

QUOTA = Used(starved=2.0, periods=60, throttled=50)
FREE = Used(starved=0.01, periods=60)


def waiting(shares: Mapping[tuple[str, int], float], used: Mapping[tuple[str, int], Used]) -> SlowEvidence:
    """Eight ranks that wait 80 % of the time, but for these."""

    def change(host: str, rank: RankSamples) -> RankSamples:
        share = shares.get((host, rank.pid), 0.8)
        inside = tuple(round(share * number) for number in rank.samples)
        return replace(rank, inside=inside, long=(), used=used.get((host, rank.pid), FREE))

    return with_ranks(recorded("nobody"), change)


def of(host: int, rank: int = 0) -> tuple[str, int]:
    one = recorded("nobody").samples[host]
    return one.host, one.rounds[0].ranks[rank].pid


def named(made: SlowJudgement) -> list[tuple[str, int | None]]:
    return [(each.host, each.pid) for each in made.late]


def test_who_is_late_behind_another_is_named_after_it() -> None:
    made = judge(waiting({of(0): 0.1, of(2): 0.5}, {of(2): QUOTA}))
    assert named(made) == [of(0), of(2)]
    first, behind = made.late
    assert (0.65 < first.share < 0.75, 0.25 < behind.share < 0.35) == (True, True)
    assert 0.35 < first.saves < 0.45, "then they wait for the other one"
    assert behind.saves == 0
    assert (first.reason, behind.reason) != (behind.reason, first.reason)
    assert behind.reason is LateReason.QUOTA
    assert "behind that" in behind.sentence
    assert any(HIDDEN in note for note in made.notes)


def test_two_that_are_nearly_as_late_are_told_one_by_one_if_their_costs_or_reasons_differ() -> None:
    assert named(judge(waiting({of(0): 0.2, of(2): 0.35}, {}))) == [of(0), of(2)]
    (both,) = judge(waiting({of(0): 0.2, of(2): 0.22}, {})).late
    assert len(both.ranks) == 2
    apart = judge(waiting({of(0): 0.2, of(2): 0.22}, {of(2): QUOTA}))
    assert {each.reason for each in apart.late} >= {LateReason.QUOTA}


def test_who_only_gets_a_processor_later_is_not_named() -> None:
    """On a crowded host: of ranks that have as much to do, or if it is little and no line stands out."""

    def late(share: float, ran: float) -> SlowJudgement:
        others = {of(host, rank): Used(ran=0.6, starved=0.9) for host in range(4) for rank in range(2)}
        return judge(waiting({of(0): share}, others | {of(0): Used(ran=ran, starved=2.7)}))

    small = judge(waiting({of(0): 0.68}, {}))
    assert (small.state, small.exit_code, small.more) == (SlowState.UNKNOWN, 3, True)
    assert "12 % less than the others" in small.maybe
    assert named(judge(waiting({of(0): 0.6}, {}))) == [of(0)]
    assert late(0.4, ran=0.6).exit_code == 3, (
        "it waits for a processor 30 % of the time longer, and costs 40 %"
    )
    assert named(late(0.4, ran=1.2)) == [of(0)], "it has more to do"
    assert named(late(0.2, ran=0.6)) == [of(0)]


def test_nobody_is_named_behind_a_late_one_for_a_small_difference() -> None:
    assert named(judge(waiting({of(0): 0.1, of(2): 0.75}, {}))) == [of(0)]


def slow(host: str, link: RankLink) -> RankLink:
    of_node4 = host == "node4"
    return replace(link, sent=10**8, rate=10**6 if of_node4 else 10**9, busy=8.0 if of_node4 else 0.1)


def test_a_slow_link_is_named_alone_if_all_ranks_wait_alike() -> None:
    made = judge(with_links(recorded("nobody"), slow))
    (late,) = made.late
    assert (made.state, late.lag, late.host) == (SlowState.LINK, Lag.SLOW_LINK, "node4")


def test_what_costs_more_goes_first_the_late_rank_or_the_link() -> None:
    """The link costs no more than what the late rank waits itself."""
    made = judge(with_links(recorded("loader"), slow))
    assert [each.lag for each in made.late] == [Lag.LATE, Lag.SLOW_LINK]
    assert (made.state, made.late[0].reason) == (SlowState.LATE, LateReason.LOADER)
    other = judge(with_links(waiting({of(0): 0.6}, {}), slow))
    assert [each.lag for each in other.late] == [Lag.SLOW_LINK, Lag.LATE]


def test_pauses_of_one_rank_do_not_hide_that_another_is_late() -> None:
    def change(host: str, rank: RankSamples) -> RankSamples:
        waits = (host, rank.pid) != of(0)
        return replace(rank, long=stretches((0.0, 0.5), (2.0, 3.0), (4.0, 4.9), waits=waits))

    moved = with_ranks(waiting({of(0): 0.5, of(2): 0.4}, {of(2): QUOTA}), change)

    def later(_: HostSamples, one: SampleRound) -> SampleRound:
        return replace(one, began=100.0 * one.number)

    moved = with_rounds(moved, later)
    moved = replace(moved, samples=tuple(replace(host, ahead=0.0) for host in moved.samples))
    made = judge(moved)
    assert {(each.lag, each.pid, each.host) for each in made.late} == {
        (Lag.PAUSES, of(0)[1], of(0)[0]),
        (Lag.LATE, of(2)[1], of(2)[0]),
    }


def test_who_lacks_a_processor_is_slow_inside_collectives_too() -> None:
    def shown(seen: SlowEvidence) -> list[str]:
        rows = (row for card in page_of(judge(seen)).cards for row in card.rows)
        return [words for row in rows if row.label == "without" for words in row.lines]

    (most,) = shown(waiting({of(0): 0.3}, {of(0): QUOTA}))
    (about,) = shown(waiting({of(0): 0.3}, {}))
    assert most.startswith("a step would take at most")
    assert about.startswith("a step would take about")


def test_the_stacks_of_both_are_recorded() -> None:
    seen = waiting({of(0): 0.1, of(2): 0.5}, {})
    plan = following(with_rounds(seen, lambda _, one: replace(one, profiles=())), SlowWishes())
    assert plan
    assert {(host, pid) for host, pids in plan.gil.items() for pid in pids} == {of(0), of(2)}
    assert sum(map(len, plan.record.values())) == 4
