"""The model and the training of the smoke run in this process: a world of one, and a split over threads."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from mmap import mmap
from typing import Any

import pytest
import torch

from doctor.smoke.onhost import audit
from doctor.smoke.onhost.comm import Comm
from doctor.smoke.onhost.corpus import FLOOR
from doctor.smoke.onhost.devices import framework_of
from doctor.smoke.onhost.framework import TokenSample
from doctor.smoke.onhost.page import SIZE, RankPage
from doctor.smoke.onhost.parameters import HEADS, WIDTH, initial_parameters, parameters
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.torch_model import Model
from doctor.smoke.onhost.train import Trainer
from doctor.smoke.onhost.trainplan import GOLDEN
from tests.support.cases import cases


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Use one thread, as a rank does; torch's threads wait for each other if there are fewer cores than
    ranks.
    """
    torch.set_num_threads(1)


CPU = torch.device("cpu")


class Alone:
    """A trainer of a world of one, and its events."""

    def __init__(self, kind: type[Trainer] = Trainer, steps: int = 30) -> None:
        self.said: list[dict[str, Any]] = []
        shape, page = CellShape(1, 1, (1,), steps, 5), RankPage(mmap(-1, SIZE), 0)
        groups: dict[str, Any] = {"world": None, "tp": None, "dp": None}
        self.trainer = kind(Comm(shape, 0, page, framework_of("gloo", 0, None), groups, self.said.append))

    def steps(self) -> list[dict[str, Any]]:
        self.trainer.run()
        return [event for event in self.said if event["ev"] == "step"]


@pytest.fixture
def streams_untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doctor.smoke.onhost.streams.Streams.seed", lambda *_: None)
    monkeypatch.setattr("doctor.smoke.onhost.streams.Streams.draw", lambda _: {})


@pytest.mark.usefixtures("streams_untouched")
def test_the_training_draws_nothing_from_the_libraries() -> None:
    before = random.getstate(), torch.get_rng_state().tolist()
    alone = Alone(steps=3)
    alone.steps()
    audit.run(alone.trainer)
    assert (random.getstate(), torch.get_rng_state().tolist()) == before


def test_a_product_that_is_a_little_off_is_seen_and_spoils_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the collective would seem wrong, although the arithmetic of one host is."""
    framework, right = framework_of("gloo", 0, None), torch.Tensor.__matmul__
    x = torch.linspace(-1, 1, 1000)
    before = framework.projection(x)
    assert audit.golden(framework) == GOLDEN
    for parts in (2, 3):
        off = (1, 1.001)
        monkeypatch.setattr(
            torch.Tensor, "__matmul__", lambda a, b, d=parts, off=off: right(a, b) * off[a.dim() == d]
        )
        assert audit.golden(framework) != GOLDEN
    assert framework.projection(x) == before


@pytest.mark.usefixtures("streams_untouched")
@cases
def test_the_loss_falls_only_if_the_model_learns(rate: float | None, least: float, most: float) -> None:
    alone = Alone()
    if rate is not None:
        alone.trainer.rate = lambda step: rate  # type: ignore[method-assign] # noqa: ARG005
    losses = [event["loss"] for event in alone.steps()]
    first, last = sum(losses[:3]) / 3, sum(losses[-10:]) / 10
    assert least < (first - last) / (first - FLOOR) < most


@pytest.mark.usefixtures("streams_untouched")
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_reported_before_it_spreads(bad: float) -> None:
    class Sick(Trainer):
        def gradient(self, sample: TokenSample) -> float:
            loss = super().gradient(sample)
            self.model.grad[5] = bad
            return loss

    first, second = Alone(Sick, steps=2).steps()
    assert (first["finite"], first["own"], first["reduced"]) == (False, None, None)
    assert first["loss"] is not None
    assert (second["finite"], second["loss"]) == (False, None)


def test_only_hidden_tokens_are_predicted_and_they_cannot_be_seen() -> None:
    trainer = Alone().trainer
    trainer.model.load(trainer.initial())
    tokens, mask, labels = trainer.batch(0)
    loss = trainer.model.gradient(TokenSample(tokens, mask, labels))
    hidden = mask.bool()
    assert trainer.model.gradient(TokenSample(torch.where(hidden, 7, tokens), mask, labels)) == loss
    assert trainer.model.gradient(TokenSample(tokens, mask, torch.where(hidden, labels, 7))) == loss
    assert trainer.model.gradient(TokenSample(torch.where(hidden, tokens, 7), mask, labels)) != loss
    assert trainer.model.gradient(TokenSample(tokens, mask, torch.where(hidden, 7, labels))) != loss


@pytest.mark.usefixtures("streams_untouched")
def test_the_update_is_adam() -> None:
    trainer = Alone().trainer
    trainer.begin()
    expected, first, second = trainer.model.flat.double(), torch.zeros(()), torch.zeros(())
    for step in range(3):
        gradient = torch.linspace(-1 - step, 2, trainer.model.grad.numel())
        first, second = 0.9 * first + 0.1 * gradient.double(), 0.99 * second + 0.01 * gradient.double() ** 2
        mean, square = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.99 ** (step + 1))
        expected -= 3e-3 * (step + 1) / 5 * mean / (square.sqrt() + 1e-8)
        trainer.model.grad.copy_(gradient)
        trainer.update(step)
    assert torch.allclose(trainer.model.flat.double(), expected, atol=1e-6)


# The split over ranks, in threads.


class Threads(Comm):
    """All-reduce between the threads of one process."""

    def __init__(
        self, place: int, shape: CellShape, meeting: Callable[[], Any], shares: dict[int, Any]
    ) -> None:
        page = RankPage(mmap(-1, SIZE), 0)
        super().__init__(shape, place, page, framework_of("gloo", 0, None), {}, lambda _: None)
        self.meeting, self.shares = meeting, shares

    def all_reduce(self, x: torch.Tensor, group: str, *, maximum: bool = False) -> None:
        assert group == "tp"
        self.shares[self.place] = x.clone()
        self.meeting()
        both = torch.stack([self.shares[place] for place in range(self.shape.tp)])
        self.meeting()
        x.copy_(both.amax(0) if maximum else both.sum(0))


def cut(name: str, whole: torch.Tensor, tp: int, place: int) -> torch.Tensor:
    """The part of a parameter that a rank holds in Megatron-LM's split."""
    if name.endswith("qkv"):
        heads = whole.view(3, HEADS, -1, WIDTH)
        return heads[:, place * HEADS // tp : (place + 1) * HEADS // tp].reshape(-1, WIDTH)
    if name.endswith(("out", "down")):
        return whole.chunk(tp, 1)[place]
    if name.endswith(("embedding", "up")):
        return whole.chunk(tp, 0)[place]
    return whole


@pytest.mark.parametrize("tp", [2, 4])
def test_ranks_with_parts_compute_the_same_as_one_rank_with_the_whole(tp: int) -> None:
    alone = Alone().trainer
    assert isinstance(alone.model, Model)
    whole_model = alone.model
    sample = alone.batch(0)
    alone.model.load(initial_parameters(alone.shape, 0))
    loss = alone.model.gradient(sample)
    meeting, shares = threading.Barrier(tp, timeout=30), dict[int, Any]()
    models = [
        Model(Threads(place, CellShape(1, tp, (tp,), 30, 5), meeting.wait, shares), CPU)
        for place in range(tp)
    ]
    losses: dict[int, float] = {}

    def compute(place: int) -> None:
        for parameter in parameters(1):
            part = cut(parameter.name, whole_model.parts[parameter.name], tp, place)
            models[place].parts[parameter.name].data.copy_(part)
        losses[place] = models[place].gradient(sample)

    threads = [threading.Thread(target=compute, args=(place,)) for place in range(tp)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert losses == dict.fromkeys(range(tp), losses[0])
    assert losses[0] == pytest.approx(loss, rel=1e-5)
    for parameter in parameters(1):
        for place, model in enumerate(models):
            whole = whole_model.parts[parameter.name].grad
            part = model.parts[parameter.name].grad
            assert whole is not None
            assert part is not None
            expected = cut(parameter.name, whole, tp, place)
            assert torch.allclose(part, expected, rtol=1e-3, atol=1e-6), parameter.name
