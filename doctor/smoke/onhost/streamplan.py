"""What the libraries' own random streams must give, if plain Python can tell. Without torch and numpy.

Python, numpy's older interface and torch on the CPU all draw from the Mersenne Twister of 2002; they seed it
and turn its words into floats in their own ways.
http://www.math.sci.hiroshima-u.ac.jp/m-mat/MT/MT2002/emt19937ar.html
"""

from __future__ import annotations

import random
import struct

from doctor.smoke.onhost.random_bytes import hashed, words
from doctor.smoke.onhost.shape import CellShape

FINGERPRINT_SEED = 20_260_817
DRAWS = 64
"""The number of draws from each stream: once for the fingerprint, then at each step."""


def stream_seed(shape: CellShape, dp: int) -> int:
    """The seed with which the ranks of a replica seed the libraries before they train."""
    return words(f"{shape.seed} libraries {dp}", 1)[0]


def reference_fingerprint() -> dict[str, str]:
    """Stream -> hash of what the fixed seed gives, for the streams that are known here."""
    return {name: hashed(draws) for name, draws in _draws(FINGERPRINT_SEED, 0).items()}


def reference_streams(shape: CellShape, step: int, place: int) -> dict[str, str]:
    """Stream -> hash of what a rank draws at a step, for the streams that are known here."""
    seed = stream_seed(shape, shape.dp_of(place))
    return {name: hashed(draws) for name, draws in _draws(seed, step).items()}


def _draws(seed: int, skipped: int) -> dict[str, bytes]:
    """The numbers of a step, after those of the steps before it."""
    python, numpy, torch = random.Random(seed), _twister(seed), _twister(seed)
    for _ in range(skipped * DRAWS):
        python.random()
        numpy.random()
        torch.getrandbits(32)
    return {
        "python": doubles([python.random() for _ in range(DRAWS)]),
        "numpy": doubles([numpy.random() for _ in range(DRAWS)]),
        "torch": struct.pack(
            f"<{DRAWS}f", *((torch.getrandbits(32) & 0xFFFFFF) * 2.0**-24 for _ in range(DRAWS))
        ),
    }


def _twister(seed: int) -> random.Random:
    """Python's generator, seeded like the authors' `init_genrand`, which Python itself does not use."""
    state = [seed & 0xFFFFFFFF]
    for number in range(1, 624):
        state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + number) & 0xFFFFFFFF)
    generator = random.Random()
    generator.setstate((3, (*state, 624), None))
    return generator


def doubles(values: list[float]) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)
