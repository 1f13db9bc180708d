"""A thousand healthy trainings of eleven kinds: none of them is accused."""

import random
from collections import Counter

import pytest

from doctor.logs.loss.judge import judge_curves
from doctor.model import Confidence
from tests.unit.logs.loss.curves import KINDS, NOISES, curve

ROUNDS = 96


@pytest.mark.slow
def test_healthy_curves_are_charged_with_nothing() -> None:
    rng = random.Random(17)
    sure: Counter[tuple[str, str | None]] = Counter()
    suspect: Counter[tuple[str, str | None]] = Counter()
    made = 0
    for number in range(ROUNDS):
        for kind, make in KINDS.items():
            losses = make(rng, rng.choice((30, 60, 120, 300)), NOISES[number % len(NOISES)])
            every = rng.choice((1, 10, 50))
            counted = rng.random() < 0.3
            made += 1
            for charge in judge_curves([curve(losses, every=every, counted=counted)]):
                which = suspect if charge.confidence is Confidence.SUSPECT else sure
                which[kind, charge.symptom] += 1
    assert made >= 1000
    assert not sure
    assert not suspect


@pytest.mark.slow
def test_healthy_ranks_are_charged_with_nothing() -> None:
    """Replicas with local losses, and ranks that print the same loss."""
    rng = random.Random(23)
    for number in range(60):
        make = list(KINDS.values())[number % len(KINDS)]
        many, noise = rng.choice((30, 120)), NOISES[number % len(NOISES)]
        if number % 2:
            losses = make(rng, many, noise)
            curves = [curve(losses, rank) for rank in range(4)]
        else:
            seed = rng.random()
            same = [make(random.Random(seed), many, 0.0) for _ in range(4)]
            curves = [
                curve([each * (1 + 0.02 * rng.gauss(0, 1)) for each in losses], rank)
                for rank, losses in enumerate(same)
            ]
        sure = [each for each in judge_curves(curves) if each.confidence is not Confidence.SUSPECT]
        assert not sure, (number, sure)
