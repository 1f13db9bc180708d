"""A model cut in the stages of a pipeline: the schedule, and who is named if a stage has a fault."""

from dataclasses import replace
from itertools import pairwise

import pytest

from doctor.smoke.judge import judge
from doctor.smoke.judge.deviation import entries_of
from doctor.smoke.judge.speed import judge_speed
from doctor.smoke.judge.stopped_cell import position_of
from doctor.smoke.onhost.shape import CellShape, ScheduledCall
from doctor.smoke.onhost.trainplan import BACKWARD, FORWARD, beside, micro_batches, moves
from doctor.smoke.result import SmokePlan
from tests.support.smoke.frozen import Fault, altered, frozen, play, skipped, stuck
from tests.support.smoke.results import changed, healthy, plan_of, with_rank, with_steps
from tests.support.smoke.spoilt import alone_wrong, audited, drifted, initial, masked, summed_wrong

LAYOUTS = [(2, 2, 2), (3, 1, 1), (4, 1, 2), pytest.param((8, 2, 1), marks=pytest.mark.slow)]
"""Stages, replicas and ranks that split a layer."""
STEP = 3


def plan(pp: int, dp: int, tp: int) -> SmokePlan:
    layout = {"pp": pp, "cp": 1, "ep": 1, "micro": micro_batches(pp)}
    return replace(plan_of(2, pp * dp * tp // 2, tp=tp) if pp != 3 else plan_of(3), layout=layout, steps=10)


SMALL = plan(2, 2, 2)


def calls(plan: SmokePlan, rank: int) -> list[ScheduledCall]:
    return [
        each for each in entries_of(plan.shape(0), rank) if (each.phase, each.call.step) == ("train", STEP)
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
class TestSchedule:
    def test_every_micro_batch_goes_forward_and_back_and_few_wait(self, layout: tuple[int, int, int]) -> None:
        shape = plan(*layout).shape(0)
        for place in range(shape.world):
            made = [move for move, _ in moves(shape, place)]
            assert made.count(FORWARD) == made.count(BACKWARD) == shape.micro >= 2 * shape.pp
            under_way = [
                made[:end].count(FORWARD) - made[:end].count(BACKWARD) for end in range(len(made) + 1)
            ]
            assert max(under_way) == shape.pp - shape.stage_of(place)

    def test_neighbours_meet_with_what_the_other_needs(self, layout: tuple[int, int, int]) -> None:
        """One sends exactly what the other receives, in one order, and so nobody waits for ever."""
        seen = plan(*layout)
        shape = seen.shape(0)
        for runner in play(shape, {}, lambda *_: False):
            assert len(runner.keys) == len(runner.entries)
        for place in range(shape.world - shape.world // shape.pp):
            other = place + shape.world // shape.pp
            here, there = (
                [each.call for each in calls(seen, rank) if each.call.members == (place, other)]
                for rank in (place, other)
            )
            back = {"send_forward": "recv_forward", "recv_backward": "send_backward"}
            back["send_forward_recv_backward"] = "send_backward_recv_forward"
            paired = [(back[one.op], two.op) for one, two in zip(here, there, strict=True)]
            # The last stage's last meeting of this kind has nothing more to receive.
            assert all(want == got or got in want for want, got in paired), paired

    def test_the_first_and_the_last_stage_share_the_embedding(self, layout: tuple[int, int, int]) -> None:
        shape = plan(*layout).shape(0)
        apart = shape.world // shape.pp
        for place in range(shape.world):
            ends = [place % apart, place % apart + shape.world - apart]
            assert shape.members("embedding", place) == (ends if place in ends else [place])


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_rank_that_gets_stuck_anywhere_in_a_step_is_named_alone(layout: tuple[int, int, int]) -> None:
    seen = plan(*layout)
    for rank in range(seen.shape(0).world):
        mine = calls(seen, rank)
        for entry in mine[rank % 2 :: max(1, len(mine) // 3)]:
            (charge,) = judge(frozen(seen, {rank: stuck(entry.position)}))
            assert (charge.check, charge.kind, charge.ranks) == ("smoke-hang", "outside", (rank,))


def left_out(entry: ScheduledCall) -> Fault:
    return skipped(entry.position)


def shorter(entry: ScheduledCall) -> Fault:
    return altered(entry.position, bytes=entry.call.bytes - 4)


@pytest.mark.parametrize("fault", [left_out, shorter])
@pytest.mark.parametrize("rank", [1, 6])
def test_a_rank_that_leaves_out_or_changes_a_call_is_named_alone(fault: object, rank: int) -> None:
    for entry in calls(SMALL, rank)[::4]:
        wrong = left_out(entry) if fault is left_out else shorter(entry)
        (charge,) = judge(frozen(SMALL, {rank: wrong}, kind="mismatch"))
        assert (charge.check, charge.ranks) == ("smoke-mismatch", (rank,)), entry


@pytest.mark.parametrize(
    ("changed", "kind", "words"),
    [({"end": 3}, "peer", "with rank 3 instead of 5"), ({"tag": 6}, "tag", "with tag 6 instead of 0")],
)
def test_a_rank_that_calls_another_rank_or_with_another_tag_is_named_alone(
    changed: dict[str, int], kind: str, words: str
) -> None:
    entry = next(each for each in calls(SMALL, 1) if each.call.group == "pair")
    (charge,) = judge(frozen(SMALL, {1: altered(entry.position, **changed)}, kind="mismatch"))
    assert (charge.check, charge.kind, charge.ranks) == ("smoke-mismatch", kind, (1,))
    assert charge.summary.endswith(words)


@pytest.mark.parametrize(("off", "kinds"), [(6, ["sent"]), (256, ["sent"]), (0, ["outside"])])
def test_a_rank_that_sent_with_another_tag_and_went_on_is_named_alone(off: int, kinds: list[str]) -> None:
    entry = next(each for each in calls(SMALL, 1) if each.call.group == "tp")
    run = frozen(SMALL, {1: stuck(entry.position)})
    pages = tuple(replace(page, about=page.about + off) for page in run.ranks[1].samples)
    charges = judge(with_rank(run, 1, samples=pages))
    assert [(charge.kind, charge.ranks) for charge in charges] == [(kind, (1,)) for kind in kinds]


def test_healthy_stages_are_silent_and_so_is_one_with_more_to_do() -> None:
    run = healthy(replace(SMALL, steps=30))
    assert judge(run) == ()
    for rank in range(4):
        run = with_steps(run, rank, lambda s: changed(s, cpu=2 * s.cpu, compute=2 * s.compute), 0)
    assert judge(run) == ()


def test_a_slow_rank_of_a_stage_is_named() -> None:
    run = healthy(replace(SMALL, steps=30))
    run = with_steps(run, 6, lambda s: changed(s, cpu=1.6 * s.cpu, compute=1.6 * s.compute), 0)
    assert [charge.ranks for charge in judge_speed(run)] == [(6,)]


@pytest.mark.parametrize(
    ("spoil", "check"),
    [
        (initial(5), "smoke-desync"),
        (masked(5), "smoke-mask-divergence"),
        (summed_wrong(5, 4), "smoke-collective-wrong"),
        (audited(5, used=True), "smoke-corruption"),
        (alone_wrong(5), "smoke-corruption"),
    ],
)
def test_wrong_numbers_of_a_rank_of_a_stage_are_its_own(spoil: object, check: str) -> None:
    assert callable(spoil)
    (charge,) = judge(spoil(healthy(SMALL)))
    assert (charge.check, charge.ranks) == (check, (5,))


def test_parameters_that_drift_in_a_stage_of_two_replicas_have_two_suspects() -> None:
    (charge,) = judge(drifted(5, 4)(healthy(SMALL)))
    assert (charge.check, charge.ranks, charge.undecided) == ("smoke-desync", (5, 7), True)


def test_ranks_of_one_stage_count_as_replicas_only_if_the_model_is_cut() -> None:
    cut = CellShape(2, 2, (4, 4), 30, 1, pp=2, micro=4)
    whole = CellShape(4, 2, (4, 4), 30, 1, pp=2)
    assert (cut.world, whole.world) == (8, 8)
    assert [cut.members("dp", 5), whole.members("dp", 5)] == [[5, 7], [1, 3, 5, 7]]
    assert [cut.replica(0), whole.replica(0)] == [[0, 1, 4, 5], [0, 1]]
    assert [cut.members("pp", 1), whole.members("pp", 1)] == [[1, 5], [1, 5]]
    parts = [cut.part_of(place) for place in range(8)]
    assert all(one <= two + 1 for one, two in pairwise(parts))
    assert parts == [0, 1, 0, 1, 2, 3, 2, 3]


HELD = [(2, 2, 4), (2, 3, 2), (4, 2, 4), (4, 2, 8), (8, 2, 8), (2, 8, 16)]
"""Stages, those that each rank holds of them, and micro-batches."""


@pytest.mark.parametrize(("pp", "vpp", "micro"), HELD)
class TestInterleaved:
    def test_each_micro_batch_goes_once_through_all_stages_and_back(
        self, pp: int, vpp: int, micro: int
    ) -> None:
        """What a rank needs was sent to it in this order, by a rank that does not wait for it."""
        shape = CellShape(1, 1, (pp,), 30, 1, pp=pp, micro=micro, vpp=vpp)
        left = {place: list(moves(shape, place)) for place in range(pp)}
        sent: dict[tuple[int, int, str], list[int]] = {}
        through = {(way, stage): 0 for way in (FORWARD, BACKWARD) for stage in range(pp * vpp)}
        while any(left.values()):
            before = sum(map(len, left.values()))
            for place, todo in left.items():
                while todo:
                    move, chunk = todo[0]
                    kind, _, way = move.rpartition("_")
                    stage = place + pp * chunk
                    step = 1 if way == FORWARD else -1
                    if kind == "recv" and not sent.get((beside(shape, place, move), place, way)):
                        break
                    if kind == "recv":
                        assert sent[beside(shape, place, move), place, way].pop(0) == stage - step
                    elif kind == "send":
                        sent.setdefault((place, beside(shape, place, move), way), []).append(stage)
                    else:
                        through[way, stage] += 1
                        assert through[BACKWARD, stage] <= through[FORWARD, stage]
                    todo.pop(0)
            assert sum(map(len, left.values())) < before, "nobody can go on"
        assert {*through.values()} == {micro}
        assert not any(sent.values())

    def test_who_waits_for_a_message_waits_for_its_sender(self, pp: int, vpp: int, micro: int) -> None:
        shape = CellShape(1, 1, (pp,), 30, 1, pp=pp, micro=micro, vpp=vpp)
        last = entries_of(shape, pp - 1)
        first = next(each for each in entries_of(shape, 0) if each.call.op == "recv_forward")
        sender = last[position_of(shape, 0, first, pp - 1) - 1]
        assert (sender.call.op, sender.call.members) == ("send_forward", (0, pp - 1))
        assert (
            sum(each.call.op == "send_forward" for each in last[: sender.position] if 0 in each.call.members)
            == 1
        )
