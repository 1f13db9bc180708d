"""Samples of real jobs, and what a change of them must change in the judgement."""

import math
import shlex
from dataclasses import replace as replace_fields

import pytest
from msgspec.structs import replace

from doctor.live.evidence import JobMember
from doctor.live.reach import Reach
from doctor.live.wires import key
from doctor.slow.advice import advice, next_look
from doctor.slow.evidence import HostSamples, Profile, RankLink, RankSamples, SampleRound, SlowEvidence, Used
from doctor.slow.evidence_file import load
from doctor.slow.judge import AT_DEVICE, TOO_FEW, judge
from doctor.slow.judge.culprits import _pausing, may_wait_for_device
from doctor.slow.judge.judgement import Lag, LateReason, SlowCulprit, SlowState
from doctor.slow.judge.pauses import StepPauses, pauses
from doctor.slow.judge.reasons import NO_STACKS
from doctor.slow.judge.series import sampled
from doctor.slow.options import SlowWishes
from doctor.slow.plan import FIRST, following
from doctor.slow.report import page_of
from tests.support.cases import cases
from tests.support.slow.recorded import SAMPLES, recorded, stretches, with_links, with_ranks, with_rounds

WISHES = SlowWishes()


def test_the_rank_whose_loader_is_slow() -> None:
    made = judge(recorded("loader"))
    (late,) = made.late
    assert (made.state, made.exit_code, late.ranks, late.host) == (SlowState.LATE, 1, (5,), "node3")
    assert (late.lag, late.reason) == (Lag.LATE, LateReason.LOADER)
    assert late.where
    assert late.where.frame.name.endswith("__getitem__")
    assert 0.35 < late.share < 0.45, "70 of 188 ms"


def test_nobody_is_late_and_that_is_said_only_if_all_were_seen() -> None:
    seen = recorded("nobody")
    made = judge(seen)
    assert (made.state, made.exit_code, made.late) == (SlowState.EVEN, 0, ())
    assert made.smallest
    assert made.smallest >= 0.08
    away = replace(seen, unreached={"node9": "timed out"}, asked=(*seen.asked, "node9"))
    partly = judge(away)
    assert (partly.state, partly.exit_code, partly.smallest) == (SlowState.UNKNOWN, 3, None)


def test_a_host_that_waits_for_its_device_is_not_called_late() -> None:
    """Rank 1 computes on a GPU; rank 0 copies to it and so waits, in a line that seems to compute."""
    seen = load(SAMPLES / "gpu-device-waits.json.gz")
    made = judge(seen)
    assert (made.state, made.late, made.exit_code) == (SlowState.UNKNOWN, (), 3)
    assert AT_DEVICE in made.notes


@pytest.mark.parametrize(("sleeps_in", "late"), [("hrtimer_nanosleep", [(0,)]), ("futex_do_wait", [])])
def test_what_sleeps_otherwise_than_for_a_device_is_late(sleeps_in: str, late: list[tuple[int, ...]]) -> None:
    seen = load(SAMPLES / "gpu-device-waits.json.gz")
    first = min(rank.pid for rank in seen.samples[0].rounds[0].ranks)

    def asleep(_: str, rank: RankSamples) -> RankSamples:
        return replace(rank, outside={sleeps_in: sum(rank.samples)} if rank.pid == first else {})

    assert [each.ranks for each in judge(with_ranks(seen, asleep)).late] == late


def test_only_what_lines_show_may_be_a_wait_for_a_device() -> None:
    seen = load(SAMPLES / "gpu-device-waits.json.gz")
    job = judge(seen).job
    assert job is not None
    late = SlowCulprit(Lag.LATE, "vm", ("vm",), (0,), reason=LateReason.UNEVEN)
    found = {
        each: may_wait_for_device(sampled(seen, job), replace_fields(late, lag=each))
        for each in (Lag.LATE, Lag.STAGE, Lag.PAUSES, Lag.SLOW_LINK)
    }
    assert found == {Lag.LATE: True, Lag.STAGE: True, Lag.PAUSES: False, Lag.SLOW_LINK: False}
    assert not may_wait_for_device(sampled(seen, job), replace_fields(late, reason=LateReason.LOADER))


@cases
def test_a_host_that_calls_collectives_late_is_named_by_the_threads_of_nccl(
    whole: list[int], first: list[int], second: list[int], late: list[list[int]]
) -> None:
    """What was counted of two ranks on a GPU. One that seems to compute may wait for its device."""
    seen = load(SAMPLES / "gpu-device-waits.json.gz")
    pids = sorted(rank.pid for rank in seen.samples[0].rounds[0].ranks)

    def counted(_: str, rank: RankSamples) -> RankSamples:
        inside = (first, second)[pids.index(rank.pid)]
        return replace(rank, samples=tuple(whole), inside=tuple(inside), proxies=1)

    of_gpu = with_ranks(seen, counted)
    blind = with_rounds(of_gpu, lambda _, one: replace(one, profiles=()))
    made = judge(blind)
    assert [[*each.ranks] for each in made.late] == late, made.sentence
    assert (made.state, made.exit_code) == ((SlowState.LATE, 1) if late else (SlowState.EVEN, 0))
    assert (AT_DEVICE in made.notes) is bool(late)
    assert made.steps is None
    assert not any(each.certain for each in made.late)
    assert late or any("one that is slow at the same clock would not be seen" in note for note in made.notes)
    elsewhere = judge(of_gpu)
    assert (elsewhere.late, elsewhere.exit_code) == ((), 3 if late else 0), "no line of it stands out"
    for share in (0, 0.05):
        alone = with_ranks(
            blind,
            lambda _, rank, share=share: (  # type: ignore[misc]
                rank if rank.pid == pids[0] else replace(rank, inside=tuple(share * n for n in rank.samples))
            ),
        )
        assert not judge(alone).late, "its GPU may reach all others without the network"
    half = judge(with_ranks(blind, lambda _, rank: rank if rank.pid == pids[0] else replace(rank, proxies=0)))
    assert not half.late, "a rank whose threads are not seen cannot be compared"


def test_stacks_that_cannot_be_seen_are_not_asked_for_again() -> None:
    """py-spy is not there: nothing will show who is late, and another round shows no more."""

    def without(_: HostSamples, one: SampleRound) -> SampleRound:
        failed = tuple(Profile(pid=rank.pid, problem="py-spy is not there") for rank in one.ranks)
        return replace(one, profiles=failed)

    seen = with_rounds(load(SAMPLES / "gpu-device-waits.json.gz"), without)
    made = judge(seen)
    assert (made.state, made.more) == (SlowState.UNKNOWN, False)
    assert following(seen, WISHES) is None


def test_ranks_that_wait_differently_are_not_called_alike() -> None:
    """Most of them wait little, and one waits much: nobody is named, and nobody is called well."""

    def change(host: str, rank: RankSamples) -> RankSamples:
        share = 0.7 if (host, rank.pid) == who else 0.2
        return replace(rank, inside=tuple(round(share * n) for n in rank.samples), long=())

    seen = recorded("nobody")
    who = seen.samples[0].host, seen.samples[0].rounds[0].ranks[0].pid
    made = judge(with_ranks(seen, change))
    assert (made.state, made.late, made.exit_code) == (SlowState.UNKNOWN, (), 3)


def test_noise_that_would_hide_a_fault_is_not_called_well() -> None:
    """Two ranks, one of which may be late: the difference stands out of its noise, and not enough."""

    def change(host: str, rank: RankSamples) -> RankSamples:
        late = (host, rank.pid) == who
        share = [(0.2 if at < 12 else 0.4) if late else 0.45 for at in range(len(rank.samples))]
        return replace(rank, inside=tuple(round(s * 40) for s in share), samples=(40,) * len(share), long=())

    seen = recorded("nobody")
    who = seen.samples[0].host, seen.samples[0].rounds[0].ranks[0].pid
    made = judge(with_ranks(seen, change))
    assert (made.state, made.late, made.more) == (SlowState.UNKNOWN, (), True), made.sentence
    plan = following(with_ranks(seen, change), WISHES)
    assert plan is None or made.seconds < 30
    brief = following(with_ranks(seen, change), replace_fields(WISHES, seconds=made.seconds / 2))
    assert brief
    assert made.seconds / 2 < brief.seconds < made.seconds / 2 + 2, "three times as long at most"


def test_a_number_of_steps_on_which_the_ranks_do_not_agree_is_not_said() -> None:
    """As if it was read while it changed, in most of the ranks of which it is known."""
    seen = recorded("loader")
    first, *rest = seen.hosts
    others = tuple(replace(host, members=tuple(map(_without_steps, host.members))) for host in rest)
    wrong = next(number for number, m in enumerate(first.members) if m.rank is not None)
    members = tuple(
        _few((member,), 5_000)[0] if number == wrong else member
        for number, member in enumerate(first.members)
    )
    two = judge(replace(seen, hosts=(replace(first, members=members), *others)))
    assert (two.steps, two.step_seconds) == (None, None)
    assert [each.ranks for each in two.late] == [(5,)]
    most = judge(replace(seen, hosts=(replace(first, members=members), *rest)))
    assert most.steps
    assert abs(most.steps - 96) < 5


def test_few_steps_name_nobody_and_it_looks_on() -> None:
    seen = recorded("loader")
    short = replace(seen, hosts=tuple(replace(h, members=_few(h.members)) for h in seen.hosts))
    made = judge(short)
    assert (made.late, made.exit_code, made.more) == ((), 3, True)
    assert next_look(made).endswith(f" --for {max(60, math.ceil(3 * made.seconds))}"), "10 of 30 were seen"
    plan = following(short, WISHES)
    assert plan
    assert plan.seconds > WISHES.seconds


def test_a_counter_that_begins_again_in_each_epoch_counts_no_steps() -> None:
    """From step 2 of an epoch to step 5 of another one: there were far more collectives."""
    seen = recorded("nobody")
    again = replace(seen, hosts=tuple(replace(h, members=_few(h.members, 3)) for h in seen.hosts))
    made = judge(again)
    assert (made.state, made.steps, made.few) == (SlowState.EVEN, None, False)
    few = judge(replace(seen, hosts=tuple(replace(h, members=_few(h.members, 8)) for h in seen.hosts)))
    assert (few.state, few.steps, few.few) == (SlowState.UNKNOWN, 8, True)


@pytest.mark.parametrize(("parts", "state"), [(1, SlowState.EVEN), (64, SlowState.UNKNOWN)])
def test_few_collectives_are_enough_if_nobody_waits_in_any_part_of_the_time(
    parts: int, state: SlowState
) -> None:
    """Samples miss most collectives in which nobody waits. Those of one part may be of one step."""

    def change(_: str, rank: RankSamples) -> RankSamples:
        inside = tuple(int(at % parts == 0) for at in range(len(rank.samples)))
        return replace(rank, inside=inside, samples=(40,) * len(inside), entries=5, long=())

    seen = with_ranks(recorded("nobody"), change)
    hosts = (replace(host, members=tuple(map(_without_steps, host.members))) for host in seen.hosts)
    made = judge(replace(seen, hosts=tuple(hosts)))
    assert (made.state, made.few, made.late) == (state, state is SlowState.UNKNOWN, ())


def test_too_few_samples_are_not_called_unseen_and_it_looks_on() -> None:
    """As on a very busy host, where a round holds only some."""

    def change(_: str, rank: RankSamples) -> RankSamples:
        few = tuple(int(at % 8 == 0) for at in range(len(rank.samples)))
        return replace(rank, samples=few, inside=few)

    seen = with_ranks(recorded("nobody"), change)
    made = judge(with_rounds(seen, lambda _, one: replace(one, profiles=())))
    assert (made.state, made.more, made.sentence) == (SlowState.UNKNOWN, True, TOO_FEW)


def _without_steps(member: JobMember) -> JobMember:
    look = member.b and replace(member.b, python=tuple(replace(t, step=None) for t in member.b.python))
    return replace(member, b=look)


def _few(members: tuple[JobMember, ...], steps: int = 10) -> tuple[JobMember, ...]:
    """The same ranks, which made only ten steps."""
    changed = []
    for member in members:
        look = member.b
        if look is not None and member.a is not None:
            made = {t.tid: t.step for t in member.a.python}
            python = tuple(
                replace(t, step=(made.get(t.tid) or 0) + steps if t.step is not None else None)
                for t in look.python
            )
            member = replace(member, b=replace(look, python=python))
        changed.append(member)
    return tuple(changed)


def test_a_link_whose_other_end_reads_late_is_not_slow() -> None:
    """It has data to send for long, and carries hardly any of it, at whatever rate."""

    def change(host: str, link: RankLink) -> RankLink:
        slow = host == "node4"
        return replace(link, sent=2 * 10**6, rate=10**7 if slow else 10**9, busy=3.0 if slow else 0.1)

    assert judge(with_links(recorded("nobody"), change)).state is SlowState.EVEN


def test_a_slow_link_that_lets_a_burst_pass_in_one_round_is_slow() -> None:
    def change(host: HostSamples, one: SampleRound) -> SampleRound:
        rate = 2 * 10**6 if one.number == 0 else 17 * 10**6
        slow = [
            replace(link, sent=int(10**6 * one.seconds), rate=rate, busy=0.7 * one.seconds)
            for link in one.links
        ]
        fast = [replace(link, sent=10**7, rate=10**9, busy=0.1) for link in one.links]
        return replace(one, links=tuple(slow if host.host == "node4" else fast))

    (late,) = judge(with_rounds(recorded("nobody"), change)).late
    assert (late.lag, late.host) == (Lag.SLOW_LINK, "node4")


def test_equal_links_are_not_slow() -> None:
    made = judge(with_links(recorded("nobody"), lambda _, link: replace(link, rate=10**6, busy=8.0)))
    assert made.state is SlowState.EVEN


@pytest.mark.parametrize(("busy", "said"), [(0.8, True), (0.3, False)])
def test_a_network_that_may_be_the_limit_of_all_is_told(busy: float, said: bool) -> None:
    """If all connections are equally slow, nobody is late, and that alone would be a false comfort."""

    def change(host: HostSamples, one: SampleRound) -> SampleRound:
        del host
        slow = {"sent": int(0.7 * busy * 10**6 * one.seconds), "rate": 10**6, "busy": busy * one.seconds}
        return replace(one, links=tuple(replace(link, **slow) for link in one.links))

    made = judge(with_rounds(recorded("nobody"), change))
    assert made.state is SlowState.EVEN
    told = f"the network may be the limit: all connections are busy {100 * busy:.0f} % of the time, "
    assert any(note == f"{told}and carry 8 to 8 Mbit/s" for note in made.notes) == said


@pytest.mark.parametrize(("slow", "found"), [({"node2"}, ["node2"]), ({"node1", "node2"}, []), (set(), [])])
def test_of_two_hosts_one_direction_is_compared_with_the_other(slow: set[str], found: list[str]) -> None:
    seen, two = recorded("nobody"), {"node1", "node2"}
    homes = _homes(seen)

    def change(host: HostSamples, one: SampleRound) -> SampleRound:
        rate, busy = (10**6, 0.8) if host.host in slow else (10**9, 0.4)
        sent = int(0.7 * 0.8 * 10**6 * one.seconds)
        links = [link for link in one.links if {host.host, homes.get(link.peer.rpartition(":")[0])} == two]
        links = [replace(link, sent=sent, rate=rate, busy=busy * one.seconds) for link in links]
        return replace(one, links=tuple(links))

    made = judge(with_rounds(seen, change))
    assert [late.host for late in made.late] == found
    assert all({late.host, *late.peers} == {"node1", "node2"} for late in made.late)


@cases
def test_in_a_ring_the_end_that_receives_may_be_at_fault_too(
    more: dict[str, str], hosts: tuple[str, ...]
) -> None:
    """Each host sends to one other. Who receives well from a third, or is slow to two, decides it."""
    seen = recorded("nobody")
    homes, ring = (
        _homes(seen),
        {("node1", "node2"), ("node2", "node3"), ("node3", "node4"), ("node4", "node1")},
    )

    def change(host: HostSamples, one: SampleRound) -> SampleRound:
        links = []
        for link in one.links:
            ends = host.host, homes.get(link.peer.rpartition(":")[0], "")
            if ends in ring | {*more.items()}:
                rate, busy = (10**6, 0.8) if host.host == "node1" else (10**9, 0.4)
                sent = int(0.7 * 0.8 * 10**6 * one.seconds)
                links.append(replace(link, sent=sent, rate=rate, busy=busy * one.seconds))
        return replace(one, links=tuple(links))

    (late,) = judge(with_rounds(seen, change)).late
    assert (late.lag, late.hosts) == (Lag.SLOW_LINK, hosts)
    assert ("either end may be at fault" in late.sentence) is (len(hosts) > 1)


def _homes(seen: SlowEvidence) -> dict[str, str]:
    """Host by address."""
    return {
        link.local.rpartition(":")[0]: host.host
        for host in seen.samples
        for each in host.rounds
        for link in each.links
    }


def test_a_lossy_link_is_that_between_two_hosts() -> None:
    seen = recorded("nobody")
    addresses = _homes(seen)

    def change(host: str, link: RankLink) -> RankLink:
        lossy = {host, addresses.get(link.peer.rpartition(":")[0])} == {"node1", "node3"}
        return replace(link, again=500 if lossy else 2)

    made = judge(with_links(seen, change))
    (late,) = made.late
    assert late.lag is Lag.LOSSY_LINK
    assert {late.host, *late.peers} == {"node1", "node3"}
    fast = judge(with_links(seen, lambda host, link: replace(change(host, link), sent=1_500_000_000)))
    assert fast.state is SlowState.EVEN, "crowded hosts send 0.05 % of their segments once more"


def test_a_whole_host_is_late() -> None:
    def change(host: str, rank: RankSamples) -> RankSamples:
        share = 0.2 if host == "node2" else 0.6
        return replace(rank, inside=tuple(round(share * n) for n in rank.samples), long=())

    made = judge(with_ranks(recorded("nobody"), change))
    (late,) = made.late
    assert (late.ranks, late.hosts, late.whole_host) == ((2, 3), ("node2",), True)


def test_one_that_waits_for_all_others_is_told_and_nobody_is_late() -> None:
    def change(host: str, rank: RankSamples) -> RankSamples:
        share = 0.6 if (host, rank.pid) == who else 0.1
        return replace(rank, inside=tuple(round(share * n) for n in rank.samples), long=())

    seen = recorded("nobody")
    who = seen.samples[2].host, seen.samples[2].rounds[0].ranks[1].pid
    made = judge(with_ranks(seen, change))
    assert (made.exit_code, made.late) == (3, ())
    assert made.sentence.startswith("Rank 5 on node3 waits 60 % of the time, far more than the others:")


def test_one_rank_that_waits_for_a_processor_is_a_suspect() -> None:
    def change(host: str, rank: RankSamples) -> RankSamples:
        starved = 3.0 if host == "node1" and rank.pid == pid else 0.01
        return replace(rank, used=Used(starved=starved, cpu=0.5))

    seen = recorded("nobody")
    pid = seen.samples[0].rounds[0].ranks[0].pid
    made = judge(with_ranks(seen, change))
    (late,) = made.late
    assert (late.lag, late.pid, late.certain, late.reason) == (Lag.STARVED, pid, False, LateReason.HOGS)
    assert not made.more


def test_a_rank_that_mostly_sleeps_is_short_of_a_processor_by_chance() -> None:
    """A healthy job beside three hogs: for ten seconds one rank waited for a processor 28 % of the time."""
    soon = judge(load(SAMPLES / "crowded-starved.json.gz"))
    assert (soon.state, soon.late) == (SlowState.UNKNOWN, ())
    assert soon.maybe
    assert soon.more, "its share of the waits tells if it looks on"


@pytest.mark.parametrize(
    ("nice", "others", "reason"),
    [(19, 0, LateReason.NICE), (19, 19, None), (0, 5, None)],
)
def test_one_rank_that_is_nicer_than_the_others(nice: int, others: int, reason: LateReason | None) -> None:
    """It waits twice as long for a processor as the others do, which alone says nothing."""

    def change(host: str, rank: RankSamples) -> RankSamples:
        own = host == "node1" and rank.pid == pid
        return replace(rank, used=Used(starved=3.0 if own else 1.5, cpu=0.5, nice=nice if own else others))

    seen = recorded("nobody")
    pid = seen.samples[0].rounds[0].ranks[0].pid
    late = judge(with_ranks(seen, change)).late
    assert [each.reason for each in late] == ([reason] if reason else [])
    for each in late:
        assert f"; its nice is {nice}, that of the others at most {others}" in each.why[0]
        typed = shlex.split(list(advice(each, Reach()))[1])
        assert shlex.split(typed[-1])[-1] == f"renice -n 0 $(ls /proc/{pid}/task)"


def test_a_cpu_quota_that_is_used_up_is_the_reason() -> None:
    """Its main thread waits for a processor then, too: the quota goes first."""

    def change(host: str, rank: RankSamples) -> RankSamples:
        late = (host, rank.pid) == who
        share = 0.2 if late else 0.6
        used = Used(starved=2.0, periods=60, throttled=50) if late else Used(starved=0.01, periods=60)
        return replace(rank, inside=tuple(round(share * n) for n in rank.samples), long=(), used=used)

    seen = recorded("nobody")
    who = seen.samples[0].host, seen.samples[0].rounds[0].ranks[0].pid
    (late,) = judge(with_ranks(seen, change)).late
    assert (late.lag, late.pid, late.reason) == (Lag.LATE, who[1], LateReason.QUOTA)
    rounds = len(seen.samples[0].rounds)
    assert f"throttled in {50 * rounds} of {60 * rounds} periods" in late.why[0]


def test_a_rank_that_writes_far_more_than_the_others_is_said_to_write() -> None:
    """Also to a file that no disk holds, where a full machine makes it wait for a processor besides."""

    def change(host: str, rank: RankSamples) -> RankSamples:
        late = host == "node3" and rank.pid == 57
        used = replace(rank.used, written=10**9 if late else 10**6, starved=2.0 if late else 0.01)
        return replace(rank, used=used)

    (late,) = judge(with_ranks(recorded("loader"), change)).late
    assert late.reason is LateReason.WRITES


def test_without_py_spy_the_rank_is_named_without_a_line() -> None:
    def blind(member: JobMember) -> JobMember:
        looks = [look and replace(look, python=()) for look in (member.a, member.b)]
        return replace(member, a=looks[0], b=looks[1], between=())

    seen = recorded("loader")
    hosts = tuple(replace(each, members=tuple(map(blind, each.members))) for each in seen.hosts)
    without = with_rounds(replace(seen, hosts=hosts), lambda _, one: replace(one, profiles=()))
    made = judge(without)
    (late,) = made.late
    assert (late.ranks, late.host, late.where, made.steps) == ((5,), "node3", None, None)
    assert (late.reason, late.why) == (None, (NO_STACKS,)), "what was not seen is not excluded"


def test_a_job_that_stands_still_is_told_after_two_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = recorded("nobody")
    still = replace_fields(judge(seen), state=SlowState.STANDS, seconds=6.0)
    monkeypatch.setattr("doctor.slow.plan.judge", lambda _: still)
    first = replace(seen, samples=tuple(replace(each, rounds=each.rounds[:1]) for each in seen.samples))
    plan = following(first, WISHES)
    assert plan
    assert (plan.seconds, plan.record) == (0.6 * WISHES.seconds, {})
    assert following(seen, WISHES) is None
    after = [step.label for step in page_of(still).after]
    assert after[0].startswith("It stands still: doctor hang ")
    assert after[1].startswith("Or a step takes longer: doctor slow ")


def test_pauses_of_one_rank_are_not_called_slow() -> None:
    def change(host: str, rank: RankSamples) -> RankSamples:
        return replace(
            rank, long=stretches((0.0, 0.5), (2.0, 3.0), (4.0, 4.9), waits=(host, rank.pid) != who)
        )

    seen = recorded("nobody")
    who = seen.samples[0].host, seen.samples[0].rounds[0].ranks[0].pid
    moved = with_rounds(with_ranks(seen, change), lambda _, one: replace(one, began=100.0 * one.number))
    moved = replace(moved, samples=tuple(replace(host, ahead=0.0) for host in moved.samples))
    made = judge(moved)
    (late,) = made.late
    assert (late.lag, late.pid, late.host) == (Lag.PAUSES, who[1], who[0])


@pytest.mark.parametrize(("entries", "found"), [(60, True), (3, False)])
def test_pauses_are_told_from_lateness_if_steps_are_not_known(entries: int, found: bool) -> None:
    """Who is late in every step makes the others wait as often as there are collectives."""

    def change(host: str, rank: RankSamples) -> RankSamples:
        long = stretches((0.0, 0.5), (2.0, 3.0), waits=(host, rank.pid) != who)
        return replace(rank, long=long, entries=entries)

    seen = recorded("nobody")
    who = seen.samples[0].host, seen.samples[0].rounds[0].ranks[0].pid
    moved = with_rounds(with_ranks(seen, change), lambda _, one: replace(one, began=100.0 * one.number))
    moved = replace(moved, samples=tuple(replace(host, ahead=0.0) for host in moved.samples))
    job = judge(moved).job
    assert job is not None
    made = pauses(sampled(moved, job), None)
    assert (made is not None) == found


def test_two_pauses_may_be_chance_if_no_line_says_why() -> None:
    seen = recorded("nobody")
    who = seen.samples[0].host, seen.samples[0].rounds[0].ranks[0].pid

    def pausing(*ends: tuple[float, float]) -> SlowEvidence:
        def change(host: str, rank: RankSamples) -> RankSamples:
            return replace(rank, long=stretches(*ends, waits=(host, rank.pid) != who))

        moved = with_rounds(with_ranks(seen, change), lambda _, one: replace(one, began=100.0 * one.number))
        return replace(moved, samples=tuple(replace(host, ahead=0.0) for host in moved.samples))

    once_a_round = pausing((1.0, 2.0))
    job = judge(once_a_round).job
    assert job is not None
    stops = pauses(sampled(once_a_round, job), 0.1)
    assert stops is not None
    assert (stops.number, stops.seconds) == (2, 1.0)
    assert judge(once_a_round).late == ()
    (late,) = judge(pausing((1.0, 2.0), (3.0, 3.5))).late
    assert late.lag is Lag.PAUSES
    assert "4 times for " in late.sentence


@pytest.mark.parametrize("job", ["fsdp", "ddp", "loader"])
def test_healthy_jobs_on_crowded_hosts_accuse_nobody(job: str) -> None:
    """Beside others that compute. One was 9 % later; two stopped the job, by samples and by a loader's worker
    without a processor; on two links 20 and 100 segments a second were sent once more.
    """
    made = judge(load(SAMPLES / f"crowded-{job}.json.gz"))
    assert (made.state, made.exit_code, made.late, made.more) == (SlowState.UNKNOWN, 3, (), True)


def test_one_that_is_inside_meanwhile_for_short_times_does_not_pause() -> None:
    """On a crowded host samples miss when the others are outside; a healthy FSDP2 looks like that."""

    def change(host: str, rank: RankSamples) -> RankSamples:
        inside = stretches((0.0, 0.5), (2.0, 3.0), (4.0, 4.9), waits=True)
        return replace(rank, long=() if (host, rank.pid) == who else inside)

    seen = recorded("nobody")
    who = seen.samples[0].host, seen.samples[0].rounds[0].ranks[0].pid
    moved = with_rounds(with_ranks(seen, change), lambda _, one: replace(one, began=100.0 * one.number))
    made = judge(replace(moved, samples=tuple(replace(host, ahead=0.0) for host in moved.samples)))
    assert (made.state, made.late) == (SlowState.EVEN, ())


def test_without_steps_a_pause_may_be_several_of_them() -> None:
    seen = recorded("nobody")
    job = judge(seen).job
    assert job is not None
    stops = StepPauses(key(job.ranks[0]), 7, 0.448, 0.5)
    said = {step: _pausing(sampled(seen, job), stops, step).sentence for step in (None, 0.05)}
    assert said[None].startswith("stops the job again and again, for 448 ms or so at once, 50 %")
    assert said[0.05].startswith("stops the job 7 times for 448 ms each, 50 %")


def test_hosts_that_looked_at_different_times_show_no_pauses() -> None:
    """One of them answered late: the others wait where it did not look yet."""

    def change(_: str, rank: RankSamples) -> RankSamples:
        return replace(rank, long=((0.0, 0.5, True), (2.0, 3.0, True), (4.0, 4.9, True)))

    def later(host: HostSamples, one: SampleRound) -> SampleRound:
        return replace(one, began=100.0 * one.number + 50.0 * (host.host == who))

    seen = recorded("nobody")
    who = seen.samples[0].host
    one_each = with_rounds(with_ranks(seen, change), lambda _, one: replace(one, ranks=one.ranks[:1]))
    moved = with_rounds(one_each, later)
    moved = replace(moved, samples=tuple(replace(host, ahead=0.0) for host in moved.samples))
    pids = {(host.host, rank.pid) for host in moved.samples for rank in host.rounds[0].ranks}
    hosts = tuple(
        replace(host, members=tuple(m for m in host.members if (host.host, m.pid) in pids))
        for host in moved.hosts
    )
    moved = replace(moved, hosts=hosts)
    job = judge(moved).job
    assert job
    assert pauses(sampled(moved, job), 0.1) is None


def test_without_samples_nothing_is_said_to_be_well() -> None:
    seen = recorded("nobody")
    made = judge(replace(seen, samples=()))
    assert (made.state, made.exit_code) == (SlowState.UNKNOWN, 3)


def test_a_host_that_gave_no_samples_leaves_it_open() -> None:
    seen = recorded("nobody")
    made = judge(replace(seen, samples=seen.samples[:-1]))
    assert (made.state, made.exit_code) == (SlowState.UNKNOWN, 3)


def test_a_round_that_one_host_answers_late_is_lost_and_it_looks_on() -> None:
    """With the others, and not for ever."""
    seen = recorded("loader")
    rounds = len(seen.samples[0].rounds)
    assert rounds == 2

    def lacking(lost: int, more: int = 0) -> SlowEvidence:
        """As if one host had answered the first rounds late, and more that nobody answered."""
        host, *rest = seen.samples
        late = (*range(lost), *range(rounds, rounds + more))
        return replace(seen, samples=(replace(host, rounds=host.rounds[lost:], late=late), *rest))

    made = judge(lacking(1))
    assert (made.state, [each.ranks for each in made.late]) == (SlowState.LATE, [(5,)])
    assert made.notes[-1] == "1 of 2 rounds of samples were lost: node1 answered too late"
    none = lacking(2)
    assert (judge(none).exit_code, judge(none).sentence) == (3, "node1 answered too late.")
    again = following(none, WISHES)
    assert again
    assert again.seconds == FIRST * WISHES.seconds
    assert following(lacking(2, more=1), WISHES) is None


def test_the_first_round_is_planned_only_if_there_are_ranks() -> None:
    seen = replace(recorded("nobody"), samples=())
    assert following(seen, WISHES)
    empty: SlowEvidence = replace(seen, hosts=())
    assert following(empty, WISHES) is None
