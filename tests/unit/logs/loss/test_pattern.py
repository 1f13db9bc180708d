"""Lines that are read by the pattern of an earlier line give the same values as if read alone."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import pytest

from doctor.logs.loss.lines import LossValues, read_line
from doctor.logs.loss.pattern import LossPattern, pattern_of
from doctor.logs.sentence import sentence

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
    "json with a rank": lambda step, loss: f'{{"step": {step}, "loss": {loss}, "rank": {step % 4}}}',
    "json with a step that is written as a float": lambda step, loss: (
        f'{{"step": {step}.0, "loss": {loss}, "gpus": 8}}'
    ),
    "bare": lambda _, loss: f"loss = {loss}",
}
LOSSES = ["2.5", "1.234567", "2.0", "3", "0", "nan", "inf", "-1.5", "1.25E+00", "1e999", "7", "400.3"]


def said_by(pattern: LossPattern, lines: Sequence[str]) -> Iterator[tuple[str, LossValues]]:
    found = pattern.read([line.encode() for line in lines])
    some = [(line, groups) for line, groups in zip(lines, found, strict=True) if groups]
    if not some:
        return
    run = pattern.run(lambda _: None, range(len(some)), [groups for _, groups in some])
    yield from ((line, run.said(number)) for number, (line, _) in enumerate(some))


@pytest.mark.parametrize("form", FORMS)
def test_it_says_the_same(form: str) -> None:
    chance = random.Random(5)
    lines: dict[bytes, list[str]] = defaultdict(list)
    for _ in range(3000):
        loss = chance.choice(LOSSES) if chance.random() < 0.5 else f"{chance.uniform(1, 3):.4f}"
        line = FORMS[form](int(10 ** chance.uniform(0, 6)), loss)
        lines[sentence(line.encode())].append(line)
    read = 0
    for same in lines.values():
        if pattern := next(filter(None, (pattern_of(line, read_line) for line in same)), None):
            for line, said in said_by(pattern, same):
                assert said == read_line(line)
                read += 1
    assert read > 1000 or "json" in form


def test_equal_numbers_of_a_line_are_told_apart() -> None:
    """The milliseconds of the clock equal the step, and both epochs are 1."""
    line = "21:00:01,{0} - INFO - {{ Epoch:[  1/  1], step:[    1/    1], loss: 2.5, per_step_time: {0}ms }}"
    pattern, other = pattern_of(line.format(445), read_line), line.format(446).replace("[    1/", "[  446/")
    assert pattern
    assert [*said_by(pattern, [other])] == [(other, read_line(other))]


def test_numbers_without_an_end_take_no_time() -> None:
    """They could be split in very many ways."""
    pattern = pattern_of(f"step 5 loss 2.5 of {'1.' * 30}x", read_line)
    assert pattern
    assert pattern.read([b"step 5 loss 2.5 of " + b"1." * 400 + b"y"]) == [None]
