"""Curves as trainings print them: pure functions of a seed."""

import random
from collections.abc import Callable, Sequence
from math import cos, exp, log, pi

from doctor.logs.model import Curve, Party


def curve(
    losses: Sequence[float],
    rank: int | None = 0,
    *,
    every: int = 10,
    first: int | None = None,
    counted: bool = False,
) -> Curve:
    begin = every if first is None else first
    steps = (
        tuple(range(1, len(losses) + 1)) if counted else tuple(begin + every * n for n in range(len(losses)))
    )
    file = f"rank{rank}.log" if rank is not None else "train.log"
    lines = tuple(range(100, 100 + len(losses)))
    return Curve(
        file,
        Party(rank=rank),
        steps,
        tuple(losses),
        lines=lines,
        total=len(losses),
        counted=counted,
    )


def falling(
    rng: random.Random, many: int, noise: float, top: float = 10.8, floor: float = 2.2
) -> list[float]:
    """A power law, like that of a language model; the noise is a share of the loss."""
    bend, power = rng.uniform(2, many / 4 + 3), rng.uniform(0.3, 1.2)
    base = [floor + (top - floor) * (1 + n / bend) ** -power for n in range(many)]
    return [max(1e-4, each * (1 + noise * rng.gauss(0, 1))) for each in base]


def warmed(rng: random.Random, many: int, noise: float) -> list[float]:
    """A warm-up in which the loss rises a little; then it falls, with restarts of the learning rate."""
    warm = rng.randint(1, max(1, many // 10))
    period = rng.randint(max(5, many // 6), max(6, many // 2))
    found = []
    for n in range(many):
        done = max(0, n - warm)
        bump = 0.15 * n / warm if n < warm else 0.15 * exp(-done / (many / 20))
        base = 1.8 + 2.5 * exp(-done / (many / 5)) + bump * rng.uniform(0.5, 1.5)
        base += 0.25 * (1 + cos(pi * (done % period) / period)) / 2
        found.append(base * (1 + noise * rng.gauss(0, 1)))
    return found


def tuned(rng: random.Random, many: int, _: float) -> list[float]:
    """Fine-tuning that has nothing left to learn: flat at about 0.01, with heavy tails."""
    level = rng.choice((0.003, 0.01, 0.05))
    return [level * rng.lognormvariate(0, rng.uniform(0.3, 1.0)) for _ in range(many)]


def instructed(rng: random.Random, many: int, noise: float) -> list[float]:
    """An adapter on a trained model: the loss hardly falls, with the noise of batches of many lengths."""
    level, gain = rng.uniform(0.8, 2.2), rng.uniform(0.0, 0.2)
    return [
        (level - gain * (1 - exp(-n / 30))) * (1 + max(noise, 0.05) * rng.gauss(0, 1)) for n in range(many)
    ]


def continued(rng: random.Random, many: int, noise: float) -> list[float]:
    """Continues from a checkpoint: flat, with the small noise of large batches."""
    level = rng.uniform(1.2, 3.0)
    return [level * (1 - 0.0001 * n) * (1 + min(noise, 0.02) * rng.gauss(0, 1)) for n in range(many)]


def policy(rng: random.Random, many: int, _: float) -> list[float]:
    """Reinforcement learning: around zero, with large swings."""
    scale = rng.choice((0.01, 0.3, 5.0))
    return [scale * rng.gauss(0, 1) * rng.lognormvariate(0, 0.7) for _ in range(many)]


def value(rng: random.Random, many: int, _: float) -> list[float]:
    """The loss of a critic: positive, follows the rewards, heavy tails."""
    level, found = rng.uniform(0.2, 3.0), []
    for _n in range(many):
        level = min(max(level * rng.lognormvariate(0, 0.03), 0.15), 4.0)
        found.append(level * rng.lognormvariate(0, 0.5))
    return found


def epochs(rng: random.Random, many: int, noise: float) -> list[float]:
    """Means of epochs: they fall, and then stay level."""
    many = min(many, 120)
    rate = rng.uniform(2, 12)
    return [0.3 + 2.0 * exp(-n / rate) + 0.02 * noise * rng.gauss(0, 1) for n in range(many)]


def few(rng: random.Random, _: int, noise: float) -> list[float]:
    return falling(rng, rng.randint(1, 19), max(noise, 0.1))


def converged(rng: random.Random, many: int, noise: float) -> list[float]:
    """Falls at once; then a plateau nine times as long."""
    floor = rng.choice((0.02, 0.4, 1.9, log(2) * 0.8))
    return [
        max(1e-4, floor + 4 * exp(-n / (many / 60 + 1)) + 0.3 * floor * min(noise, 0.15) * rng.gauss(0, 1))
        for n in range(many)
    ]


def steps_down(rng: random.Random, many: int, noise: float) -> list[float]:
    """A vision model: plateaus, with a fall whenever the learning rate falls."""
    return [
        (6.9 * exp(-n / (many / 8)) + (2.6 if n < many / 3 else 1.9 if n < 2 * many / 3 else 1.7))
        * (1 + min(noise, 0.2) * rng.gauss(0, 1))
        for n in range(many)
    ]


KINDS: dict[str, Callable[[random.Random, int, float], list[float]]] = {
    "falling": falling,
    "warmed": warmed,
    "tuned": tuned,
    "instructed": instructed,
    "continued": continued,
    "policy": policy,
    "value": value,
    "epochs": epochs,
    "few": few,
    "converged": converged,
    "steps-down": steps_down,
}
NOISES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3)
