"""Lines of a file become curves: epochs, restarts, several ranks, columns, in bounded memory."""

import tracemalloc
from collections.abc import Iterable
from math import isfinite, isnan, nan

import pytest

from doctor.logs.loss.collect import MOST_PARTIES, LossCollector, party_of
from doctor.logs.loss.pattern import LossRun
from doctor.logs.loss.points import Points
from doctor.logs.model import Curve, Party
from tests.support.cases import cases, from_cases


def offer(collector: LossCollector, line: str, number: int, who: Party = Party()) -> None:  # noqa: B008
    if collector.wants(line.encode()):
        for said in collector.read(line):
            collector.add(party_of(said, who), [LossRun(said, lambda _: 1000.0 + number, [number])])


def collected(lines: Iterable[str]) -> tuple[Curve, ...]:
    collector = LossCollector("train.log")
    for number, line in enumerate(lines, 1):
        offer(collector, line, number)
    return collector.curves()


def one(lines: Iterable[str]) -> Curve:
    (curve,) = collected(lines)
    return curve


def test_a_curve_has_steps_losses_lines_and_times() -> None:
    curve = one(["hello", "step 1 loss 3.5", "noise", "step 2 loss 2.5", "step 2 loss 2.5"])
    assert (curve.file, curve.steps, curve.losses) == ("train.log", (1, 2), (3.5, 2.5))
    assert (curve.lines, curve.seconds) == ((2, 4), (1002.0, 1004.0))
    assert (curve.total, curve.counted) == (2, False)


@cases
def test_steps_of_later_epochs_go_on(line: str) -> None:
    lines = [
        line.format(epoch=epoch, step=step, loss=3.5 - epoch)
        for epoch in (1, 2, 3)
        for step in (100, 200, 300)
    ]
    assert one(lines).steps == (100, 200, 300, 400, 500, 600, 700, 800, 900)


def test_epochs_alone_are_steps() -> None:
    assert one(f"Epoch {n}/3 - loss: 0.{9 - n}" for n in (1, 2, 3)).steps == (1, 2, 3)


def test_keras_prints_the_end_of_each_epoch() -> None:
    lines = [f"390/390 [======] - 26s 68ms/step - loss: 1.{n} - val_loss: 1.5" for n in (3, 2, 1)]
    assert one(lines).steps == (390, 780, 1170)


def test_the_trainer_has_no_steps_so_losses_are_counted() -> None:
    curve = one(f"{{'loss': 0.{9 - n}, 'learning_rate': 1e-05, 'epoch': {n / 10}}}" for n in range(4))
    assert (curve.counted, curve.steps) == (True, (1, 2, 3, 4))


def test_a_progress_bar_overwrites_itself() -> None:
    bar = "\r".join(
        f"Epoch 0:  1%|▏ | {n}/100 [00:01<00:09, 9.0it/s, v_num=0, train_loss=0.{n}]" for n in range(1, 9)
    )
    assert one([bar]).steps == tuple(range(1, 9))


def test_a_job_that_began_again_is_two_curves() -> None:
    steps = [*range(10, 70, 10), *range(30, 90, 10)]
    curves = collected(f"step: {step} loss: {100 / step:.4f}" for step in steps)
    assert [curve.steps for curve in curves] == [(10, 20, 30, 40, 50, 60), (30, 40, 50, 60, 70, 80)]


def test_ranks_without_a_prefix_are_no_restart() -> None:
    steps = [1, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 4]
    assert [curve.steps for curve in collected(f"step: {step} loss: 1.5" for step in steps)] == [(1, 2, 3, 4)]


def test_nan_of_any_rank_without_a_prefix_is_kept() -> None:
    curve = one(["step 1 loss 2.0", "step 1 loss nan", "step 1 loss 2.0"])
    assert isnan(curve.losses[0])
    assert curve.lines == (2,)


def test_nan_without_a_step_is_kept() -> None:
    curve = one(["step 1 loss 2.0", "step 2 loss 2.0", "Loss is nan, stopping training"])
    assert curve.steps == (1, 2, 3)
    assert isnan(curve.losses[-1])


def test_ranks_of_one_file_have_curves_of_their_own() -> None:
    collector = LossCollector("job.out")
    for step in range(5):
        for rank in range(3):
            offer(collector, f"step {step} loss {rank}.5", step * 3 + rank, Party(rank=rank, pid=step))
    curves = collector.curves()
    assert [curve.who for curve in curves] == [Party(rank=rank) for rank in range(3)]
    assert [curve.losses for curve in curves] == [(rank + 0.5,) * 5 for rank in range(3)]


def test_the_loss_that_is_printed_most_often_is_the_curve() -> None:
    """nanoGPT prints both at each evaluation."""
    lines = []
    for step in range(0, 1000, 10):
        if step % 250 == 0:
            lines.append(f"step {step}: train loss 10.9210, val loss 10.9209")
        lines.append(f"iter {step}: loss 4.0, time 48.67ms, mfu 10.07%")
    curve = one(lines)
    assert len(curve.steps) == 100
    assert set(curve.losses) == {4.0}


def test_columns_with_a_header() -> None:
    curve = one(["epoch,step,loss,accuracy,val_loss", "1,100,0.542,0.73,9", "2,200,0.431,0.81,9"])
    assert (curve.steps, curve.losses) == ((100, 200), (0.542, 0.431))


def test_empty_cells_of_lightning() -> None:
    """lightning.pytorch.loggers.CSVLogger leaves a cell empty if it has no value."""
    lines = [
        "epoch,step,train_loss_epoch,train_loss_step,val_loss",
        "0,49,,2.1,",
        "0,49,1.9,,2.2",
        "1,99,,1.7,",
    ]
    assert one(lines).losses == (2.1, 1.7)


@cases
def test_columns_without_a_training_loss(lines: list[str]) -> None:
    assert collected(lines) == ()


def test_ranks_in_a_column() -> None:
    curves = collected(["rank,step,loss", "0,1,2.0", "1,1,2.5", "0,2,1.0", "1,2,nan"])
    assert [(curve.who.rank, len(curve.steps)) for curve in curves] == [(0, 2), (1, 2)]


def test_a_long_curve_is_thinned_and_keeps_what_matters() -> None:
    points = Points(200)
    for step in range(100_000):
        points.add(step, nan if step in (31_337, 77_777) else 1.0 + step, lambda: None, step)
    curve = points.curve()
    assert len(curve.steps) <= 200
    assert curve.total == 100_000
    assert (curve.steps[0], curve.steps[-1]) == (0, 99_999)
    assert [step for step, loss in zip(curve.steps, curve.losses, strict=True) if isnan(loss)] == [
        31_337,
        77_777,
    ]
    gaps = [there - here for here, there in zip(curve.steps, curve.steps[1:], strict=False)]
    assert max(gaps) <= 2048


def test_nan_at_every_second_step_does_not_break_the_bound() -> None:
    points = Points(200)
    for step in range(20_000):
        points.add(step, nan if step % 2 else 1.0, lambda: None, step)
    assert len(points.curve().steps) <= 201


def test_curves_of_equal_length_are_thinned_alike() -> None:
    steps = []
    for _ in range(2):
        points = Points(100)
        for step in range(5000):
            points.add(step, 1.0, lambda: None, step)
        steps.append(points.curve().steps)
    assert steps[0] == steps[1]


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    collector = LossCollector("big.log", 200)
    for number in range(3000):
        offer(collector, f"step {number} loss 2.5", number)
    tracemalloc.start()
    for number in range(3000, 9000):
        offer(collector, f"step {number} loss 2.5", number)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 50_000


def test_more_parties_than_allowed_are_left_out() -> None:
    collector = LossCollector("many.log")
    for rank in range(MOST_PARTIES + 100):
        offer(collector, "step 1 loss 2.5", rank, Party(rank=rank))
    assert len(collector.curves()) == MOST_PARTIES


def test_a_job_that_began_again_with_its_epochs() -> None:
    first = [(epoch, step) for epoch in range(5) for step in range(0, 100, 20)]
    lines = [f"Epoch: [{epoch}][{step}/100]\tLoss 2.5 (2.6)" for epoch, step in first + first[10:]]
    curves = collected(lines)
    assert [(curve.steps[0], curve.steps[-1], len(curve.steps)) for curve in curves] == [
        (0, 480, 25),
        (200, 480, 15),
    ]


def test_several_losses_an_epoch_without_steps_are_counted() -> None:
    curve = one(f"Epoch {n // 10} - Batch loss: {9 - n / 10:.2f}" for n in range(40))
    assert (curve.counted, len(curve.steps)) == (True, 40)


def test_the_mean_at_the_end_of_an_epoch_is_no_step() -> None:
    lines = [
        *(f"Epoch 0 | Step {n}/6501 | Loss: 8.9351" for n in range(0, 6501, 100)),
        "Epoch 1 done | Avg Loss: 0.5",
    ]
    assert one(lines).steps[-1] == 6500


MEGATRON = from_cases(__file__, "MEGATRON", str)
LOSS = " lm loss: {:.6E} | loss scale: 1.0 | grad norm: 0.7 | number of skipped iterations:   0 |"
LOST = " loss scale: 1.0 | number of skipped iterations:   {} |"
KNOWN = [MEGATRON.format(step, LOSS.format(0.7), 0) for step in range(5)]


def test_a_loss_that_megatron_leaves_out_is_nan() -> None:
    """It prints a loss only if it is above 0."""
    for line in (
        MEGATRON.format(5, LOST.format(0), 0),
        MEGATRON.format(5, LOST.format(1), 1),
        MEGATRON.format(5, LOST.format(0), 0)[:205],
    ):
        curve = one([*KNOWN, line, line.replace("5/", "6/")])
        assert (curve.steps[-1], curve.losses[-2], curve.lines[-1]) == (5, 0.7, 6)
        assert isnan(curve.losses[-1])


@cases
def test_a_loss_may_be_left_out_for_other_reasons(lines: list[str]) -> None:
    assert all(map(isfinite, one(lines).losses))
