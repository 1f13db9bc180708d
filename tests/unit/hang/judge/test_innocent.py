"""Ranks that the rules protect: they wait for less than the limit, they work, or they were not seen."""

from functools import partial

import pytest
from msgspec.structs import replace

from doctor.hang.advice import advice_of
from doctor.hang.judge import judge
from doctor.hang.judge.judgement import Cause, HangConfidence, HangState, Judgement
from doctor.live.evidence import Connection, Frame, JobMember, LiveEvidence, Look, Thread
from doctor.live.evidence_file import load
from tests.exam.jobs import FOLDER
from tests.support.cases import cases
from tests.support.hang.trials import of, without_stacks
from tests.support.hang.written import (
    COLLECTIVE,
    EVALUATE,
    MAIN,
    at_last,
    changed,
    evidence,
    look,
    looked,
    with_main,
)

ONE_SLEEPS = ["waits"] * 5 + ["sleeps"] + ["waits"] * 2


def named(found: Judgement) -> list[int | None]:
    return [each.rank for each in found.named]


def test_who_sleeps_for_longer_than_the_limit_is_accused() -> None:
    found = judge(evidence(ONE_SLEEPS))
    assert (found.verdict, found.exit_code, found.confidence) == (
        HangState.HANG,
        1,
        HangConfidence.STRONG,
    )
    assert [(each.rank, each.host, each.pid) for each in found.culprits] == [(5, "node2", 4050)]
    assert found.stands.still == 200.0
    assert found.sentence == "The job waits for rank 5 on node2."


@pytest.mark.parametrize("silent", [1.5, 40.0, 59.9])
def test_below_the_limit_it_may_be_normal(silent: float) -> None:
    found = judge(evidence(ONE_SLEEPS, silent=silent))
    assert (found.verdict, found.exit_code) == (HangState.WAITS, 0)
    assert not found.culprits
    assert found.sentence == f"The job waits for rank 5 on node2 for {int(silent)} s; this may be normal."


def test_a_job_that_exchanged_something_just_now_moves() -> None:
    found = judge(evidence(ONE_SLEEPS, silent=0.5))
    assert (found.verdict, found.exit_code, found.named) == (HangState.MOVES, 0, ())


def test_the_rendezvous_says_nothing_of_collectives() -> None:
    """Heartbeats and counters of launchers use its connections while the ranks stand still."""
    ends = ("10.0.0.1:29500", "10.0.0.2:51000")
    seen = evidence(ONE_SLEEPS)
    for rank, (local, peer) in ((0, ends), (7, ends[::-1])):
        wire = Connection(state="ESTAB", local=local, peer=peer, received=9_000, last_received=10)
        seen = changed(seen, partial(_wired, wire), rank)
    assert judge(seen).stands.still == 200.0


def _wired(wire: Connection, member: JobMember) -> JobMember:
    return looked(member, lambda each: replace(each, connections=(*each.connections, wire)))


def test_a_job_cannot_have_stood_still_for_longer_than_it_runs() -> None:
    assert judge(evidence(ONE_SLEEPS, age=30.0)).verdict is HangState.WAITS


@pytest.mark.parametrize("fault", ["stopped", "ended", "stuck", "frozen"])
def test_who_cannot_go_on_is_accused_at_once(fault: str) -> None:
    found = judge(evidence(["waits", fault, "waits", "waits"], silent=3.0))
    assert (found.exit_code, named(found), found.confidence) == (1, [1], HangConfidence.CERTAIN)


@pytest.mark.parametrize("fault", ["stopped", "ended", "stuck", "frozen"])
def test_but_not_where_nobody_waits_for_it(fault: str) -> None:
    found = judge(evidence(["sleeps", fault, "sleeps", "sleeps"]))
    assert (found.verdict, found.exit_code, found.culprits) == (HangState.UNKNOWN, 3, ())


def test_nor_where_the_job_moves() -> None:
    assert judge(evidence(["waits", "stopped"], silent=0.1)).verdict is HangState.MOVES


def test_a_process_that_did_not_answer_in_time_has_not_ended() -> None:
    def silent(member: JobMember) -> JobMember:
        look = Look(pid=member.pid, state="", unread=("/proc: no answer in time",))
        return replace(member, a=look, b=look)

    found = judge(changed(evidence(["waits"] * 4), silent, 1))
    assert not found.culprits
    assert found.exit_code == 3


def test_who_ended_between_the_looks_is_given_time() -> None:
    def ends(member: JobMember) -> JobMember:
        return replace(member, b=Look(pid=member.pid, state=""))

    assert not judge(changed(evidence(["waits"] * 4, silent=5.0), ends, 1)).culprits


def test_who_was_woken_in_state_d_is_not_stuck() -> None:
    """A slow disk, seen twice."""

    def woken(member: JobMember) -> JobMember:
        return at_last(member, lambda each: with_main(each, switches=90))

    found = judge(changed(evidence(["waits", "stuck", "waits"], silent=5.0), woken, 1))
    assert not found.culprits


@cases
def test_each_kernel_shows_in_its_own_way_that_a_rank_is_frozen(state: str, waits: str) -> None:
    def freezes(member: JobMember) -> JobMember:
        return with_wait(member, waits, state)

    (culprit,) = judge(changed(evidence(["waits"] * 3, silent=5.0), freezes, 1)).culprits
    assert (culprit.rank, culprit.cause) == (1, Cause.FROZEN)


@pytest.mark.parametrize("does", ["stopped", "frozen"])
def test_a_suspended_job_is_not_over(does: str) -> None:
    found = judge(evidence([does] * 3))
    assert (found.exit_code, found.culprits) == (3, ())
    assert "suspended" in found.sentence
    assert "is over" in judge(evidence([does, "ended", "ended"])).sentence


def quiet(seen: LiveEvidence, rank: int, seconds: float) -> LiveEvidence:
    """This rank exchanged something for the last time so many seconds ago."""
    ends = {f"10.0.0.{host}:{base + rank}" for host in (1, 2) for base in (20_000, 40_000)}

    def older(each: Connection) -> Connection:
        if not {each.local, each.peer} & ends:
            return each
        return replace(each, last_sent=int(seconds * 1000), last_received=int(seconds * 1000))

    def change(look: Look) -> Look:
        return replace(look, connections=tuple(map(older, look.connections)))

    return changed(seen, lambda member: at_last(member, change))


@pytest.mark.parametrize(("ago", "code"), [(90.0, 1), (140.0, 1), (500.0, 3)])
def test_a_rank_without_which_the_others_went_on_is_not_accused(ago: float, code: int) -> None:
    found = judge(quiet(evidence(["waits", "waits", "waits", "sleeps"], silent=90.0), 3, ago))
    assert (found.exit_code, named(found)) == (code, [3])


def test_the_age_of_a_job_does_not_show_that_a_rank_was_not_missed() -> None:
    """A busy host lists its processes long before it looks at their connections."""
    found = judge(evidence(["waits", "waits", "waits", "sleeps"], silent=140.0, age=70.0))
    assert (found.exit_code, found.stands.still, named(found)) == (1, 70.0, [3])


def test_of_two_outside_the_one_that_is_missed_is_accused() -> None:
    seen = evidence(["waits", "sleeps", "waits", "sleeps"], silent=90.0)
    assert named(judge(seen)) == [1, 3]
    found = judge(quiet(seen, 3, 500.0))
    assert (found.exit_code, named(found)) == (1, [1])
    assert any("rank 3 on node2 is outside as well" in each for each in found.notes)
    busy = judge(quiet(evidence(["waits", "spins", "waits", "sleeps"], silent=90.0), 3, 500.0))
    assert (busy.exit_code, named(busy)) == (3, [1])


def with_wait(member: JobMember, waits: str, state: str = "S", slept: float | None = None) -> JobMember:
    return looked(member, lambda each: replace(with_main(each, waits=waits, slept=slept), state=state))


@pytest.mark.parametrize("state", ["S", "D"])
def test_storage_that_has_answered_while_the_others_waited_may_be_slow(state: str) -> None:
    def waits(slept: float | None) -> Judgement:
        def change(member: JobMember) -> JobMember:
            return with_wait(member, "request_wait_answer", state, slept)

        return judge(changed(evidence(["waits", "storage", "waits"], silent=90.0), change, 1))

    assert [waits(slept).exit_code for slept in (None, 88.0, 20.0)] == [1, 1, 3]
    (named,) = waits(20.0).named
    assert named.sentence.startswith("waits for storage: /data/shard-17.bin, which may be slow")


def test_who_waits_for_storage_in_state_d_has_the_limit_too() -> None:
    def flushes(member: JobMember) -> JobMember:
        return looked(member, lambda each: with_main(each, waits="folio_wait_writeback"))

    stuck = changed(evidence(["waits", "stuck", "waits"], silent=5.0), flushes, 1)
    assert judge(stuck).exit_code == 0
    assert judge(changed(evidence(["waits", "stuck", "waits"]), flushes, 1)).named[0].cause is Cause.STORAGE


def test_who_is_outside_in_one_look_only_is_not_accused() -> None:
    inside, outside = evidence(["waits"] * 4), evidence(["waits", "sleeps", "waits", "waits"])
    other = next(m for host in inside.hosts for m in host.members if m.rank == 1)
    assert other.b is not None
    wires = next(m.b.connections for h in outside.hosts for m in h.members if m.rank == 1 and m.b)
    bare = Look(pid=4010, state="S")
    arrives = replace(other.b, connections=wires)
    for change in (
        lambda member: replace(member, a=other.a),
        lambda member: replace(member, b=arrives),
        lambda member: replace(member, a=bare),
        lambda member: replace(member, b=bare),
    ):
        assert not judge(changed(outside, change, 1)).culprits


@pytest.mark.parametrize("work", ["saves", "compiles", "imports"])
def test_work_is_no_hang_however_long(work: str) -> None:
    found = judge(evidence(["waits", work, "waits", "waits"]))
    assert (found.verdict, found.exit_code, named(found)) == (HangState.WAITS, 0, [1])
    assert not found.culprits


def test_a_step_is_work() -> None:
    assert judge(evidence(ONE_SLEEPS, steps=(7, 8))).verdict is HangState.WAITS


def test_a_counter_of_an_endless_loop_is_no_step() -> None:
    found = judge(evidence(["waits", "spins", "waits"], steps=(10, 90_000_000)))
    assert (found.exit_code, named(found)) == (3, [1])


@pytest.mark.parametrize("does", ["spins", "evaluates"])
def test_an_endless_loop_and_long_work_look_alike(does: str) -> None:
    """However many looks show the same line: a matrix product is one line, too."""
    found = judge(looked_between(evidence(["waits", does, "waits"]), 1, *[does] * 5, device=False))
    assert (found.verdict, found.exit_code, named(found), found.culprits) == (HangState.UNKNOWN, 3, [1], ())
    assert found.sentence == (
        "Rank 1 on node1 has computed for 200 s; if its steps are shorter than that, it is an endless loop."
    )
    assert not any("the network between the ranks is not the cause" in each for each in advice_of(found).do)


def test_who_works_hides_nobody_who_does_not() -> None:
    found = judge(evidence(["saves", "waits", "sleeps", "waits"]))
    assert (found.exit_code, named(found)) == (1, [2])
    assert found.notes == ("rank 0 on node1 is outside as well: it writes a checkpoint: 30 MB in 2 s",)


def polls(member: JobMember) -> JobMember:
    """The rank sleeps again and again."""
    return at_last(member, lambda each: with_main(each, switches=60))


@pytest.mark.parametrize(("works", "code"), [("saves", 0), ("spins", 3), ("evaluates", 3)])
def test_who_polls_may_wait_for_one_that_works(works: str, code: int) -> None:
    """As for the lock on a cache, which the first rank of each host fills."""
    found = judge(changed(evidence([works, "waits", "sleeps", "waits"]), polls, 2))
    assert (found.exit_code, named(found), found.culprits) == (code, [0], ())
    assert found.notes == ("rank 2 on node2 is outside as well: it sleeps again and again",)
    alone = judge(changed(evidence(["waits", "waits", "sleeps", "waits"]), polls, 2))
    assert (alone.exit_code, named(alone)) == (1, [2])


def test_two_that_wait_for_a_lock_of_ranks_do_not_excuse_each_other() -> None:
    """Nobody who works is seen: it is not said that the job waits for somebody who does."""
    seen = evidence(["waits", "sleeps", "sleeps"])
    started = Frame(name="BaseProcess.run", file="/usr/lib/python3.11/multiprocessing/process.py", line=108)

    def locked(look: Look) -> Look:
        main = replace(look.threads[0], waits="futex_do_wait", syscall=("futex", "0x7f1a", "0x109"))
        stack = replace(look.python[0], frames=(*look.python[0].frames, started))
        return replace(look, threads=(main, *look.threads[1:]), python=(stack, *look.python[1:]))

    for rank in (1, 2):
        seen = changed(seen, lambda m: replace(m, a=locked(m.a), b=locked(m.b)) if m.a and m.b else m, rank)
    found = judge(seen)
    assert (found.exit_code, named(found), found.culprits) == (3, [1, 2], ())


def test_data_that_came_between_the_looks_is_a_move() -> None:
    """A step takes longer than a second."""
    seen = evidence(["waits"] * 3, silent=1.8)

    def received(look: Look) -> Look:
        wires = tuple(replace(each, received=each.received + 400) for each in look.connections)
        return replace(look, connections=wires)

    assert judge(seen).verdict is not HangState.MOVES
    assert judge(changed(seen, lambda member: at_last(member, received), 1)).verdict is HangState.MOVES


def test_two_culprits_are_both_named() -> None:
    found = judge(evidence(["sleeps", "waits", "locked", "waits"]))
    assert [(each.rank, each.cause) for each in found.culprits] == [(0, Cause.SLEEPS), (2, Cause.LOCK)]


def test_nobody_inside_is_nobody_accused() -> None:
    found = judge(evidence(["imports", "sleeps", "spins", "sleeps"]))
    assert (found.verdict, found.exit_code, found.named) == (HangState.UNKNOWN, 3, ())
    assert found.sentence == "No rank was seen in a collective."


def test_ranks_that_wait_alike_for_their_loaders_are_not_told_apart_by_connections() -> None:
    """The workers of both ranks fill their shuffle buffers."""
    found = judge(load(FOLDER / "healthy-shuffle_fill.json.gz"), limit=15)
    assert (found.verdict, found.exit_code, found.named) == (HangState.UNKNOWN, 3, ())
    assert found.sentence == "No rank was seen in a collective: each waits for its data loader."


def test_a_job_that_has_just_begun_may_still_be_starting() -> None:
    """It has not stood still for the limit, which is longer than its life."""
    for age, verdict, code, said in (
        (30.0, HangState.WAITS, 0, ": it may still be starting."),
        (90.0, HangState.UNKNOWN, 3, "."),
    ):
        found = judge(evidence(["imports", "sleeps", "spins", "sleeps"], age=age))
        assert (found.verdict, found.exit_code, found.named) == (verdict, code, ())
        assert found.sentence == f"No rank was seen in a collective{said}"


@pytest.mark.parametrize(("thread", "code"), [("python", 0), ("gloo_tcp_loop", 3)])
def test_the_training_is_over_if_the_last_rank_has_left_its_group(thread: str, code: int) -> None:
    """It writes the final model for longer than the limit. If others crashed, its group is still there."""
    seen = load(FOLDER / "healthy-final_model.json.gz")

    def named_so(each: JobMember) -> JobMember:
        a, b = (
            replace(of, threads=(*of.threads, Thread(tid=9, name=thread, state="S"))) if of else None
            for of in (each.a, each.b)
        )
        return replace(each, a=a, b=b, age=90.0)

    found = judge(changed(seen, named_so))
    assert (found.exit_code, found.named) == (code, ())
    assert ("the training is over" in found.sentence) == (code == 0)


def test_ranks_that_compute_for_less_than_the_limit_only_wait() -> None:
    """As while gradients are accumulated."""
    found = judge(evidence(["sleeps", "sleeps"], silent=15.0))
    assert (found.verdict, found.exit_code, found.named) == (HangState.WAITS, 0, ())
    assert "may be normal" in found.sentence


def test_ranks_that_were_listed_and_not_looked_at() -> None:
    found = judge(changed(evidence(["waits", "sleeps"]), lambda each: replace(each, a=None, b=None)))
    assert (found.verdict, found.exit_code, found.named) == (HangState.UNKNOWN, 3, ())
    assert found.sentence == "The ranks were listed, but the look at them was not answered."
    assert found.rights is not None
    assert found.rights.raises == ("a longer --timeout",)


def test_a_second_look_that_came_too_late() -> None:
    """The results of the first look are reported, but they accuse no rank and give no duration."""
    seen = changed(evidence(["waits", "sleeps", "waits"], ["node1"]), lambda each: replace(each, b=None))
    seen = replace(seen, hosts=tuple(replace(host, apart=0.0) for host in seen.hosts))
    found = judge(seen)
    assert (found.verdict, found.exit_code, found.culprits, found.stands.still) == (
        HangState.UNKNOWN,
        3,
        (),
        None,
    )
    assert [each.inside for each in found.stands.ranks] == [True, None, True]
    assert "ranks 0-2 on node1: only the first of two looks was answered in time" in found.notes


def test_two_ranks_in_different_collectives_are_both_named_and_nothing_below_is_suspected() -> None:
    other = Frame(name="barrier", file=COLLECTIVE.file, line=1)

    def moved(look: Look) -> Look:
        return replace(look, python=(replace(look.python[0], frames=(other, EVALUATE, MAIN)),))

    found = judge(changed(evidence(["waits", "waits"]), lambda member: looked(member, moved), 1))
    assert (found.exit_code, [each.rank for each in found.named]) == (3, [0, 1])
    assert not any("below Python" in each for each in advice_of(found).do)


def test_everybody_in_the_same_operation_accuses_nobody() -> None:
    found = judge(evidence(["waits"] * 4))
    assert (found.verdict, found.exit_code, found.named) == (HangState.HANG, 3, ())
    assert "the fault is below Python" in found.sentence
    assert advice_of(found).commands[0].startswith("doctor check 'node[1-2]' --only ")


def test_backward_alone_decides_nothing() -> None:
    """A rank that waits and a rank that computes may show the same frame; only gloo's threads tell them
    apart.
    """
    waiting = evidence(["backward", "backward", "sleeps"])
    assert named(judge(waiting)) == [2]

    def blind(member: JobMember) -> JobMember:
        assert member.a is not None
        assert member.b is not None
        a, b = (
            replace(look, cpu=look.cpu + more, threads=(replace(look.threads[0], waits="", syscall=()),))
            for look, more in ((member.a, 0), (member.b, 100))
        )
        return replace(member, a=a, b=b)

    unseen = changed(evidence(["backward"] * 3, silent=200.0), blind, 0)
    assert not judge(unseen).culprits


def test_a_rank_alone_is_accused_of_nothing() -> None:
    found = judge(evidence(["sleeps"], hosts=["node1"]))
    assert (found.verdict, found.exit_code, found.named) == (HangState.UNKNOWN, 3, ())
    assert (
        found.sentence == "The job is a single rank: it sleeps in forward, train.py:57. Nobody waits for it."
    )


def test_a_rank_alone_that_makes_steps_moves() -> None:
    found = judge(evidence(["item"], hosts=["node1"], device=True, steps=(135, 136)))
    assert (found.verdict, found.exit_code) == (HangState.MOVES, 0), found.sentence
    stays = judge(evidence(["item"], hosts=["node1"], device=True, steps=(136, 136)))
    assert (stays.verdict, stays.exit_code) == (HangState.UNKNOWN, 3)


def test_a_rank_alone_that_polls_goes_from_line_to_line_and_does_not_move() -> None:
    def polls(member: JobMember) -> JobMember:
        assert member.b is not None
        (main, *others) = member.b.python
        frames = (replace(main.frames[0], line=main.frames[0].line + 1), *main.frames[1:])
        return replace(member, b=replace(member.b, python=(replace(main, frames=frames), *others)))

    found = judge(changed(evidence(["sleeps"], hosts=["node1"], device=True), polls))
    assert (found.verdict, found.exit_code) == (HangState.UNKNOWN, 3), found.sentence


class TestDevices:
    """With NCCL the host runs ahead: it waits at a later line than the collective, and silence on TCP means
    nothing.
    """

    def test_all_at_a_synchronisation_may_be_healthy(self) -> None:
        found = judge(evidence(["item"] * 8, device=True))
        assert (found.verdict, found.exit_code, found.named) == (HangState.UNKNOWN, 3, ())
        assert found.stands.groups[0].noticed
        assert advice_of(found).do == (
            "look again with --for 60: if nothing moves in that time either, it hangs",
        )

    def test_a_rank_elsewhere_is_waited_for_but_two_seconds_prove_no_hang(self) -> None:
        found = judge(evidence(["item"] * 5 + ["sleeps"] + ["synchronises"] * 2, device=True))
        assert (found.verdict, found.exit_code, named(found)) == (HangState.UNKNOWN, 3, [5])
        assert not found.culprits
        assert found.sentence == "The job waits for rank 5 on node2, and nothing shows for how long."

    def test_two_looks_that_are_far_apart_do(self) -> None:
        found = judge(evidence(["item"] * 5 + ["sleeps"] + ["synchronises"] * 2, device=True, apart=70.0))
        assert (found.exit_code, named(found)) == (1, [5])

    def test_a_computation_has_lasted_for_at_least_the_time_between_the_looks(self) -> None:
        found = judge(evidence(["item", "spins", "item"], device=True, apart=70.0))
        assert (found.exit_code, named(found)) == (3, [1])
        assert found.sentence.startswith("Rank 1 on node1 has computed for at least 70 s; ")

    def test_steps_prove_that_it_moves(self) -> None:
        found = judge(evidence(["item"] * 8, device=True, apart=70.0, steps=(3, 40)))
        assert found.verdict is HangState.MOVES

    def test_nobody_inside_and_other_lines_is_a_job_that_runs_ahead(self) -> None:
        found = judge(evidence(["evaluates"] * 4, device=True))
        assert (found.verdict, found.exit_code) == (HangState.MOVES, 0)

    def test_a_group_of_gloo_that_serves_another_thread_times_nothing(self) -> None:
        """As while a checkpoint is written in the background: gloo is silent, but the job trains."""

        def with_nccl(look: Look) -> Look:
            return replace(look, threads=(*look.threads, Thread(tid=9, name="pt_nccl_watchdg", state="S")))

        seen = evidence(["waits", "waits", "sleeps", "waits"], silent=900.0)
        found = judge(changed(seen, lambda member: looked(member, with_nccl)))
        assert (found.verdict, found.exit_code, found.culprits) == (HangState.UNKNOWN, 3, ())

    def test_backward_on_a_device_is_not_outside(self) -> None:
        found = judge(evidence(["item", "item", "backward", "item"], device=True, apart=70.0))
        assert not found.culprits


def test_without_stacks_and_connections_nothing_is_decided() -> None:
    def bare(look: Look) -> Look:
        return replace(look, connections=(), python=(), threads=())

    found = judge(changed(evidence(ONE_SLEEPS), lambda member: looked(member, bare)))
    assert (found.verdict, found.exit_code, found.named) == (HangState.UNKNOWN, 3, ())


@pytest.mark.parametrize("seconds", [61, 600, 86_400])
def test_recorded_trials_grow_old(seconds: int) -> None:
    """Ages are changed by hand: then the limit that users have decides as the short one of the tests does."""
    for trial in (*of("sleep"), *of("ckpt"), *of("skip", "tp")):
        seen = changed(trial.evidence, lambda member: _older(member, seconds * 1000))
        found, before = judge(seen), judge(trial.evidence, limit=1.0)
        assert (found.verdict, found.exit_code, named(found)) == (
            before.verdict,
            before.exit_code,
            named(before),
        )
        assert (
            judge(without_stacks(seen)).exit_code
            == judge(without_stacks(trial.evidence), limit=1.0).exit_code
        )


def _older(member: JobMember, by: int) -> JobMember:
    def older(look: Look) -> Look:
        return replace(
            look,
            connections=tuple(
                replace(each, last_sent=each.last_sent + by, last_received=each.last_received + by)
                for each in look.connections
            ),
        )

    return replace(looked(member, older), age=member.age + by / 1000)


def looked_between(seen: LiveEvidence, rank: int, *does: str, device: bool = True) -> LiveEvidence:
    def add(member: JobMember) -> JobMember:
        return replace(member, between=tuple(look(member.pid, word, False, device=device) for word in does))

    return changed(seen, add, rank)


def test_a_look_in_between_shows_that_the_job_moves() -> None:
    """Both ends of a long look may show the same line of a step."""
    seen = evidence(["item", "sleeps"], device=True, apart=70.0)
    assert judge(seen).exit_code == 1
    still = looked_between(looked_between(seen, 0, "item", "item"), 1, "sleeps", "sleeps")
    assert judge(still).exit_code == 1
    for rank, does in ((0, ("item", "sleeps")), (1, ("item", "sleeps"))):
        found = judge(looked_between(seen, rank, *does))
        assert (found.verdict, found.culprits) == (HangState.MOVES, ())


def test_nor_is_who_ran_in_between_stopped() -> None:
    seen = evidence(["waits", "stopped"])
    assert [each.cause for each in judge(seen).culprits] == [Cause.STOPPED]
    ran = judge(looked_between(seen, 1, "stopped", "sleeps", device=False))
    assert Cause.STOPPED not in {each.cause for each in ran.named}


def test_another_line_in_between_is_told() -> None:
    seen = evidence(["waits", "spins"])
    same = judge(looked_between(seen, 1, "spins", device=False))
    assert same.named[0].sentence == "computes, at the same line in 3 looks in forward, train.py:57"
    other = judge(looked_between(seen, 1, "saves", device=False))
    assert other.named[0].sentence == "computes, and goes from line to line in forward, train.py:57"


def test_who_waits_in_recv_is_not_accused_where_no_stack_shows_it() -> None:
    """gloo's worker threads are idle then, and the main thread waits with a limit."""

    def receives(look: Look) -> Look:
        return replace(with_main(look, syscall=("202", "0x1", "0x189", "0x0", "0x7ffd")), python=())

    seen = evidence(["waits", "storage", "locked", "locked"])
    for rank in (2, 3):
        seen = changed(seen, lambda each: looked(each, receives), rank)
    found = judge(seen)
    assert named(found) == [1]
    assert found.notes == ("ranks 2-3 may be outside as well: no stack shows what they wait for",)


@pytest.mark.parametrize("lost", ["stopped", "stuck"])
def test_who_is_outside_beside_one_that_cannot_go_on_is_told(lost: str) -> None:
    found = judge(evidence(["waits", lost, "sleeps", "waits"]))
    assert [each.rank for each in found.culprits] == [1]
    assert found.notes == ("rank 2 on node2 is outside as well: it sleeps",)
