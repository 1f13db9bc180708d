"""The usual loop: every rank trains in one function, and one line of it costs one rank the time.

Recorded on one host, over gloo: three ranks, of which rank 1 is late at one line.
"""

from collections.abc import Callable
from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from doctor.live.evidence import Look
from doctor.live.reach import Reach
from doctor.slow.advice import BY_REASON, advice, next_look
from doctor.slow.evidence import HostSamples, Profile, SampleRound, SlowEvidence, StackCount
from doctor.slow.evidence_file import load
from doctor.slow.judge import judge
from doctor.slow.judge.judgement import Lag, LateReason, SlowCulprit, SlowState
from tests.exam.jobs import FOLDER
from tests.support.cases import from_cases
from tests.support.slow.recorded import SAMPLES, recorded, with_rounds

STRANGERS = from_cases(__file__, "STRANGERS", dict[str, tuple[int, LateReason, str]])
"""Jobs of the exam: who is late, and why."""
LINES = from_cases(__file__, "LINES", dict[str, tuple[int, LateReason, str]])


@pytest.mark.parametrize("kind", LINES)
def test_the_line_that_costs_the_time_is_named_and_no_host(kind: str) -> None:
    number, reason, words = LINES[kind]
    made = judge(load(SAMPLES / f"loop-{kind}.json.gz"))
    (late,) = made.late
    assert (late.ranks, late.reason, late.why[0]) == ((1,), reason, words)
    assert late.where is not None
    assert late.where.frame.line == number
    assert late.where.others < 0.01
    assert "host" not in late.why[0]
    (do,) = advice(late, made.hang.reach)
    assert do.startswith("# ")


@pytest.mark.parametrize("name", STRANGERS)
def test_what_it_waits_for_is_named_by_the_kernel_and_by_the_lines_that_call(name: str) -> None:
    """A thread of its own is no child, and a lock is the reason also if the others take it at this line."""
    rank, reason, words = STRANGERS[name]
    late, *_ = judge(load(FOLDER / f"{name}.json.gz")).late
    assert (late.ranks, late.reason, late.why[0]) == ((rank,), reason, words)


def changed_look(name: str, change: Callable[[Look], Look]) -> tuple[str, ...]:
    """Why the late rank of this job is late, with all its looks changed."""
    seen = load(FOLDER / f"{name}.json.gz")
    members = (
        replace(each, a=change(each.a), b=change(each.b))
        for each in seen.hosts[0].members
        if each.a and each.b
    )
    (late,) = judge(replace(seen, hosts=(replace(seen.hosts[0], members=tuple(members)),))).late
    return late.why


def test_what_is_not_awaited_or_locked_at_the_line_is_no_reason() -> None:
    """Others do not read either what a thread sends, and a file of anybody may be locked."""

    def by_a_thread(look: Look) -> Look:
        return replace(look, connections=tuple(replace(each, awaited=False) for each in look.connections))

    def unlocked(look: Look) -> Look:
        return replace(look, locks=())

    (why,) = changed_look("late-send_log-0", by_a_thread)
    assert why == "it waits for an answer there, or for what another process writes"
    assert changed_look("late-sqlite-2", unlocked) == ("it sleeps there",)
    ranks = load(FOLDER / "late-sqlite-2.json.gz").hosts[0].members
    (lock,) = (lock for rank in ranks if rank.a for lock in rank.a.locks)
    assert changed_look("late-native-2", lambda look: replace(look, locks=(lock,))) == ("it sleeps there",)


def test_a_few_pauses_of_ranks_of_random_lengths_accuse_nobody() -> None:
    assert judge(load(FOLDER / "healthy-lengths.json.gz")).state is SlowState.EVEN


@pytest.mark.parametrize(("rounds", "named"), [(3, 1), (1, 0)])
def test_one_for_whom_the_others_nearly_always_wait_is_named_after_few_steps(rounds: int, named: int) -> None:
    """A step of 0.7 s: 30 take 20 s, and the short waits in between are seen by chance."""
    seen = load(FOLDER / "late-native-2.json.gz")
    short = tuple(replace(each, rounds=each.rounds[:rounds]) for each in seen.samples)
    made = judge(replace(seen, samples=short))
    assert (len(made.late), made.few) == (named, not named)


def test_what_a_line_of_its_own_calls_is_not_compared_with_the_same_function_of_the_others() -> None:
    """Rank 0 samples with the model that all train."""
    (late,) = judge(load(FOLDER / "slow-probe-0-slow.json.gz")).late
    assert late.where is not None
    assert (late.where.frame.line, late.where.others) == (13, 0.0)


def with_shares(
    late: tuple[int, int], others: tuple[int, int], rest: tuple[int, ...] = (3, 2)
) -> SlowEvidence:
    """Of 59 samples a rank is so often at line 25 and at line 27; else inside its backward, or in `rest`."""
    seen = load(SAMPLES / "loop-sleep.json.gz")
    pid = judge(seen).late[0].pid

    def change(_: HostSamples, one: SampleRound) -> SampleRound:
        def there(profile: Profile) -> Profile:
            first, second = late if profile.pid == pid else others
            frame = profile.frames[0]
            frames = tuple(replace(frame, name="main", file="job.py", line=line) for line in (25, 27, 45))
            graph = "/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py"
            engine = replace(frame, name="_engine_run_backward", file=graph)
            counts = (first,), (second,), (59 - first - second,)
            places = (0,), (1,), rest
            stacks = tuple(
                StackCount(main=True, frames=at, counts=of) for at, of in zip(places, counts, strict=True)
            )
            return replace(profile, frames=(*frames, engine), main=(59,), stacks=stacks)

        return replace(one, profiles=tuple(there(each) for each in one.profiles if not each.gil))

    return with_rounds(seen, change)


def test_everything_takes_longer_only_if_each_line_does_in_proportion() -> None:
    (alike,) = judge(with_shares((32, 18), (13, 7))).late
    assert (alike.where, alike.reason) == (None, LateReason.EVERYTHING)
    assert alike.why == (
        "everything takes longer there, in proportion: it has more to do, or its host is slower",
    )
    assert next(advice(alike, Reach())).startswith("# Compare the size of its batch")
    (one,) = judge(with_shares((43, 7), (13, 7))).late
    assert one.where is not None
    assert (one.where.frame.line, one.reason) == (25, LateReason.UNEVEN)


def test_if_no_line_stands_out_no_host_is_blamed() -> None:
    (late,) = judge(with_shares((14, 8), (13, 7), rest=(3,))).late
    assert (late.where, late.reason) == (None, None)
    assert late.why == ("no line of it stands out",)


@pytest.mark.parametrize("reason", [*LateReason, None])
def test_every_reason_has_something_to_do(reason: LateReason | None) -> None:
    late = SlowCulprit(Lag.LATE, "node1", ("node1",), (1,), reason=reason)
    said = [*advice(late, Reach(nodes=("node1", "node2")))]
    assert said
    assert all(line.startswith(("# ", "doctor ")) for line in said)
    assert (reason in BY_REASON) is (reason not in (LateReason.EVERYTHING, None))


def test_a_link_is_looked_at_from_each_end() -> None:
    late = SlowCulprit(Lag.SLOW_LINK, "node1", ("node1", "node3"), peers=("node3",))
    assert [*advice(late, Reach())][1:] == ["ssh node1 ip -s link", "ssh node3 ip -s link"]


def test_a_look_that_could_see_more_says_how() -> None:
    made = judge(recorded("nobody"))
    assert next_look(made) == ""
    assert next_look(changed(made, state=SlowState.UNKNOWN, more=True)).endswith(" --for 60")
