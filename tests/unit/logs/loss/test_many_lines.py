"""Losses that are read many at once equal those that are read line by line."""

import random
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice

import pytest

from doctor.logs.loss.collect import LossCollector
from doctor.logs.model import Curve
from doctor.logs.read import read
from doctor.logs.reading import losses
from doctor.logs.symptoms.match import Matcher

LINES = 9000


def plain(chance: random.Random) -> Iterator[str]:
    """The lines, with something that interrupts a run of similar lines: no number, a whole number, another
    line, a start from 1.
    """
    step = 0
    while True:
        step += 1
        loss = chance.choice(["nan", "inf", "2.0000"]) if not chance.randrange(500) else f"{2 / step + 1:.4f}"
        yield f"step {step} of 100000 loss {loss} tokens/s {chance.randint(900, 9999)}"
        if not chance.randrange(300):
            yield f"step {step} val loss {chance.random():.4f}"
        if not chance.randrange(2000):
            step = 0


def ranks(chance: random.Random) -> Iterator[str]:
    step = 0
    while True:
        step += 1
        for rank in range(12):
            yield f"[rank{rank}]: step {step} loss {2 + chance.random():.3f}"
            if not chance.randrange(100):
                yield f"[rank{rank}]: iter {step} | loss: {2 + chance.random():.3f} | time {step}.5 s"


def dated(chance: random.Random) -> Iterator[str]:
    step, epoch = 0, 1
    while True:
        step = step % 1500 + 1
        epoch += step == 1
        clock = f"2026-11-20 {step // 3600:02}:{step // 60 % 60:02}:{step % 60:02},123"
        told = f"Epoch:[{epoch:3}/  90], step:[{step:5}/ 1500], loss: {2 + chance.random():.3f}"
        yield f"{clock} - mindformers[callback.py:316] - INFO - {{ {told}, per_step_time: {777 + epoch}ms }}"


def stamped(chance: random.Random) -> Iterator[str]:
    """Lines with the prefixes of `kubectl logs --timestamps`, and of pods with their names and times."""
    step = 0
    while True:
        step += 1
        clock = f"2026-11-20T21:{step // 60 % 60:02}:{step % 60:02}.{chance.randrange(10**9):09}Z"
        yield f"{clock} step {step} loss {2 + chance.random():.3f}"
        for rank in range(4):
            yield f"{clock} [rank{rank}]: step {step} loss {2 + chance.random():.3f}"
        for pod in "ab":
            yield f"[pod/job-{pod}/main] {clock} iter {step} loss: {2 + chance.random():.3f}"


def without_steps(chance: random.Random) -> Iterator[str]:
    for place in range(LINES):
        yield f"{{'loss': {chance.random():.4f}, 'grad_norm': 1.25{place}, 'epoch': {place / 1000:.2f}}}"


def json_lines(chance: random.Random) -> Iterator[str]:
    for step in range(LINES):
        yield f'{{"step": {step}, "loss": {chance.random() + 1:.5f}, "lr": 0.0001}}'


def table(chance: random.Random) -> Iterator[str]:
    yield "step,loss,lr"
    for step in range(LINES // 2):
        yield f"{step},{chance.random() + 1:.5f},0.0001"
    yield "step,lr,loss"
    for step in range(LINES // 2, LINES):
        yield f"{step},0.0001,{chance.random() + 1:.5f}" if chance.randrange(50) else f"{step},0.0001,"


def slow_steps(chance: random.Random) -> Iterator[str]:
    """MindSpore prints the time of a step in the line after it."""
    step = 0
    while True:
        step += 1
        yield f"epoch: 1 step: {step}, loss is {2 + chance.random():.4f}"
        yield f"per step time: {chance.randint(400, 600)}.25 ms"


def curves_of(text: str) -> tuple[Curve, ...]:
    return read([BytesIO(text.encode())], Matcher(()), loss=LossCollector, now=1.8e9).curves


@pytest.mark.slow
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "write",
    [plain, ranks, dated, stamped, without_steps, json_lines, table, slow_steps],
    ids=lambda each: each.__name__,
)
def test_many_lines_at_once_say_what_each_says(
    write: Callable[[random.Random], Iterator[str]], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = end.join(islice(write(random.Random(3)), LINES)) + end
    quick = curves_of(text)
    monkeypatch.setattr(losses, "FEW", LINES + 1)
    assert repr(quick) == repr(curves_of(text))  # as text, because NaN equals nothing
    assert quick


def test_the_second_state_of_a_line_says_nothing_of_other_lines() -> None:
    """The text before the line is not before its second state."""
    lines = [f"[rank1]: one\r[rank0]: step: {step} | loss: 2.{step}" for step in (11, 12, 13)]
    lines += [f"[rank0]: step: {step} | loss: 1.{step}" for step in range(21, 60)]
    found = {curve.who.rank: curve.total for curve in curves_of("\n".join(lines))}
    assert found == {1: 3, 0: 39}


def test_ranks_without_a_prefix_print_one_step_many_times() -> None:
    lines = [f"step {step} loss {2 + rank / 100:.4f}" for step in range(1, 900) for rank in range(1, 6)]
    (curve,) = curves_of("\n".join(lines))
    assert curve.steps == tuple(range(1, 900))
    assert set(curve.losses) == {2.01}
