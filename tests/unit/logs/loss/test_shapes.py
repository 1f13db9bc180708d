"""A line that is read by the shape of one before says what it says by itself."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from doctor.logs.loss import shapes
from doctor.logs.loss.lines import read_line
from doctor.logs.loss.shapes import Shapes

FORMS: dict[str, Callable[[int, str], str]] = {
    "megatron": lambda step, loss: (
        f" [2026-11-20 21:00:{step % 60:02}] iteration {step:8d}/ 1000000 | consumed: {step * 512:12d} |"
        f" elapsed time per iteration (ms): {400 + step % 50}.3 | learning rate: 1.500000E-04 |"
        f" lm loss: {loss} | loss scale: 1.0 | number of skipped iterations:   0 |"
    ),
    "step": lambda step, loss: (
        f"2026-11-20 21:00:01,123 - INFO - {{ Epoch:[  1/  2], step:[{step:5}/1000000], loss: {loss},"
        f" per_step_time: {400 + step % 50}ms, lr: 1e-05 }}"
    ),
    "epochs": lambda step, loss: f"epoch: {1 + step // 1000} step: {1 + step % 1000}, loss is {loss}",
    "global": lambda step, loss: f"global_step: {step}, loss: {loss}",
    "trainer": lambda step, loss: f"{{'loss': {loss}, 'grad_norm': 1.2, 'epoch': {step / 10000:.4f}}}",
    "plain": lambda step, loss: f"[rank{step % 8}]: step {step // 8} of 1000000 loss {loss} mem 61.2 GiB",
    "json": lambda step, loss: f'{{"step": {step}, "loss": {loss}, "rank": {step % 4}}}',
    "bare": lambda _, loss: f"loss = {loss}",
}
LOSSES = ["2.5", "1.234567", "2.0", "3", "0", "nan", "inf", "-1.5", "1.25E+00", "1e999", "7", "400.3"]


@pytest.mark.parametrize("form", FORMS)
def test_it_says_the_same(form: str) -> None:
    chance = random.Random(5)
    many = Shapes()
    for _ in range(3000):
        loss = chance.choice(LOSSES) if chance.random() < 0.5 else f"{chance.uniform(1, 3):.4f}"
        line = FORMS[form](int(10 ** chance.uniform(0, 6)), loss)
        assert repr(many.read(line)) == repr(read_line(line)), line


def test_lines_of_one_shape_are_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(text: str) -> object:
        calls.append(text)
        return read_line(text)

    monkeypatch.setattr(shapes, "read_line", counted)
    many = Shapes()
    for step in range(100, 5000):
        many.read(FORMS["megatron"](step, f"{1 + 1 / step:.6f}"))
    assert len(calls) < 20
