"""The random streams of the libraries on this host, from which people draw masks: hosts must not differ."""

from __future__ import annotations

import importlib
import random
from contextlib import suppress
from typing import Any

from doctor.smoke.onhost.framework import Framework
from doctor.smoke.onhost.random_bytes import hashed
from doctor.smoke.onhost.streamplan import DRAWS, FINGERPRINT_SEED, doubles

numpy: Any = None
"""None if it is not installed: torch works without it."""

with suppress(ImportError):
    importlib.import_module("numpy.random")
    numpy = importlib.import_module("numpy")

LARGE = 1 << 21
"""With 2**20 numbers or more, what a GPU draws depends on how many multiprocessors it has.
https://github.com/pytorch/pytorch/issues/196613"""


def fingerprint(framework: Framework) -> dict[str, str]:
    """Stream -> hash of what the fixed seed gives."""
    streams = Streams(framework)
    streams.seed(FINGERPRINT_SEED)
    return {**streams.draw(), **_hashes(framework.draw_many(LARGE))}


class Streams:
    """The global streams, seeded the way people do it, and one of numpy's newer generators."""

    def __init__(self, framework: Framework) -> None:
        self.framework = framework
        self.generator: Any = None

    def seed(self, seed: int) -> None:
        random.seed(seed)
        self.framework.seed(seed)
        if numpy is not None:
            numpy.random.seed(seed)
            self.generator = numpy.random.Generator(numpy.random.PCG64(seed))

    def draw(self) -> dict[str, str]:
        """Draw as many numbers as a small mask has from each stream; returns their hashes."""
        found = {"python": doubles([random.random() for _ in range(DRAWS)]), **self.framework.draw(DRAWS)}
        if numpy is not None:
            found["numpy"] = numpy.random.random_sample(DRAWS).tobytes()
            found["numpy-pcg64"] = self.generator.random(DRAWS).tobytes()
        return _hashes(found)


def _hashes(found: dict[str, bytes]) -> dict[str, str]:
    return {name: hashed(data) for name, data in found.items()}
