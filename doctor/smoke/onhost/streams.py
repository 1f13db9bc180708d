"""The random streams of the libraries on this host: their numbers must not differ from host to host.

People draw masks from them. The training itself never does.
"""

from __future__ import annotations

import importlib
import random
from contextlib import suppress
from typing import Any

import torch

from doctor.smoke.onhost.model import bytes_of
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


def fingerprint(device: Any) -> dict[str, str]:
    """Stream -> hash of what the fixed seed gives."""
    streams = Streams(device)
    streams.seed(FINGERPRINT_SEED)
    found = streams.draw()
    large = device.rand(LARGE)
    if large is not None:
        found["device"] = hashed(bytes_of(large))
    return found


class Streams:
    """The global streams, seeded the way people do it, and one of numpy's newer generators."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.generator: Any = None

    def seed(self, seed: int) -> None:
        random.seed(seed)
        torch.manual_seed(seed)
        self.device.seed(seed)
        if numpy is not None:
            numpy.random.seed(seed)
            self.generator = numpy.random.Generator(numpy.random.PCG64(seed))

    def draw(self) -> dict[str, str]:
        """Draw as many numbers as a small mask has from each stream; returns their hashes."""
        found = {
            "python": hashed(doubles([random.random() for _ in range(DRAWS)])),
            "torch": hashed(bytes_of(torch.rand(DRAWS, dtype=torch.float32, device="cpu"))),
        }
        on_device = self.device.rand(DRAWS)
        if on_device is not None:
            found["device"] = hashed(bytes_of(on_device))
        if numpy is not None:
            found["numpy"] = hashed(numpy.random.random_sample(DRAWS).tobytes())
            found["numpy-pcg64"] = hashed(self.generator.random(DRAWS).tobytes())
        return found
