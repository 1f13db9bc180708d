"""Lines as frameworks print them, and lines that only look like them."""

from math import isnan, nan

import pytest

from doctor.logs.loss.lines import LossValues, read_line, wants
from doctor.logs.model import LossForm
from tests.support.cases import cases
from tests.support.limits import within


@cases
def test_a_loss_is_read(
    line: str,
    form: LossForm,
    loss: float,
    step: int | None,
    of: int | None,
    epoch: int | None,
) -> None:
    said = read_line(line)
    assert said is not None
    assert (said.form, said.loss, said.step, said.of, said.epoch) == (form, loss, step, of, epoch)
    assert wants(line.encode())


@cases
def test_nan_is_read(line: str) -> None:
    said = read_line(line)
    assert said is not None
    assert isnan(said.loss)


@cases
def test_what_is_no_training_loss_is_left_alone(line: str) -> None:
    assert read_line(line) is None


def test_the_trigger_lets_little_through() -> None:
    assert not wants(b"iteration 3 | elapsed 4")
    assert wants(b"epoch: 1 step: 1562, loss is 1.4536957")


HOSTILE = (
    "loss" * 2_000_000,
    "step " * 400_000 + "loss",
    "loss: " + "1" * 5_000_000,
    "loss:" + " " * 5_000_000 + "1.0",
    "step: " + "(" * 1_000_000 + "1 loss: 1.5",
    "{" * 1_000_000 + '"loss": 1',
    '{"a":' * 100_000 + '{"loss": 1}' + "}" * 100_000,
    '{"loss": ' + "9" * 7000 + "}",
    '{"loss": [1], "step": {}}',
    '{"loss": true}',
    "_" * 5_000_000 + "loss",
    "1/" * 2_000_000 + " [ loss: 1.5",
    "iter time " * 300_000 + "loss: 2.0 epoch",
    "\x00loss: \x1b[31m2.5\x00",
    ",".join(["loss"] * 1_000_000),
)


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_lines_take_no_time(line: str) -> None:
    with within(0.5):
        read_line(line)


def test_what_is_said_is_a_value() -> None:
    assert read_line("step 1 loss 2.5") == LossValues(LossForm.PLAIN, "loss", 2.5, 1)
    assert read_line("step 1 loss 2.5") != LossValues(LossForm.PLAIN, "loss", nan, 1)


def test_a_loss_in_capitals_is_read() -> None:
    assert read_line("step 3 LOSS: 2.5") == read_line("step 3 loss: 2.5") is not None
