"""The data of the training, a function of seed, step and replica: the controller knows all hashes."""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

from doctor.smoke.onhost.parameters import VOCABULARY, initial_parameters
from doctor.smoke.onhost.random_bytes import below, chance, hashed, words
from doctor.smoke.onhost.shape import CellShape

SEQUENCES = 16
LENGTH = 32
HIDDEN = 0
"""The token that replaces a hidden one; it is never drawn."""
NOISE = 0.1
MASKED = 0.15

OTHER = NOISE / (VOCABULARY - 1)
THEME = 1 - NOISE + OTHER
"""The probabilities that a token is one particular other token, and that it is its sequence's theme."""
FLOOR = -THEME * math.log(THEME) - (VOCABULARY - 2) * OTHER * math.log(OTHER)
"""The entropy in nats of a token whose sequence's theme is known: no loss can stay below it."""


class TokenBatch(NamedTuple):
    """The bytes of three matrices, one sequence per row: 64-bit tokens, a mask of bytes, 64-bit labels."""

    tokens: bytes
    mask: bytes
    labels: bytes


def batch_of(shape: CellShape, step: int, dp: int) -> TokenBatch:
    """The batch of a replica at a step."""
    return masked(tokens_of(shape, step, dp), mask_of(shape, step, dp))


def tokens_of(shape: CellShape, step: int, dp: int) -> list[int]:
    """The sequences, one after another."""
    tokens: list[int] = []
    drawn = words(f"{shape.seed} tokens {step} {dp}", SEQUENCES * (1 + 2 * LENGTH))
    for first in range(0, len(drawn), 1 + 2 * LENGTH):
        theme = 1 + below(VOCABULARY - 1, drawn[first])
        coins = drawn[first + 1 : first + 1 + LENGTH]
        others = drawn[first + 1 + LENGTH : first + 1 + 2 * LENGTH]
        tokens += [
            1 + below(VOCABULARY - 1, other) if chance(NOISE, coin) else theme
            for coin, other in zip(coins, others)  # noqa: B905 (Python 3.8)
        ]
    return tokens


def mask_of(shape: CellShape, step: int, dp: int, salt: str = "") -> list[int]:
    """1 for each hidden token, with at least one in each sequence. A salt gives a different mask."""
    drawn = words(f"{shape.seed} mask {step} {dp}{salt}", SEQUENCES * LENGTH)
    return one_each([int(chance(MASKED, word)) for word in drawn])


def one_each(mask: list[int]) -> list[int]:
    """The mask, with the first token hidden in each sequence that has no hidden token."""
    for first in range(0, len(mask), LENGTH):
        if not any(mask[first : first + LENGTH]):
            mask[first] = 1
    return mask


def masked(tokens: list[int], mask: list[int]) -> TokenBatch:
    """Tokens and mask as a batch; a label is the hidden token, or 0 if the token is not hidden."""
    labels = [token if hidden else 0 for token, hidden in zip(tokens, mask)]  # noqa: B905
    return TokenBatch(array("q", tokens).tobytes(), bytes(mask), array("q", labels).tobytes())


def reference_batch(shape: CellShape, step: int, place: int) -> tuple[str, str, str]:
    """Hashes of the tokens, the mask and the labels of a rank at a step."""
    batch = batch_of(shape, step, shape.dp_of(place))
    return hashed(batch.tokens), hashed(batch.mask), hashed(batch.labels)


def reference_init(shape: CellShape, place: int) -> str:
    """Hash of the parameters of a rank before the first step."""
    return hashed(initial_parameters(shape, place))
