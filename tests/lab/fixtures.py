"""The lab as pytest fixtures; `conftest.py` makes them known to every test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from .lab import Lab
from .needs import missing


@pytest.fixture(scope="session")
def lab4() -> Iterator[Lab]:
    """Four hosts for the whole session. Use `lab`, which also mends them after each test."""
    if reason := missing():
        pytest.skip(reason)
    with Lab(4) as lab:
        yield lab


@pytest.fixture
def lab(lab4: Lab) -> Iterator[Lab]:
    """Four healthy hosts, node1 to node4; what a test breaks is mended after it."""
    yield lab4
    lab4.reset()


@pytest.fixture
def make_lab() -> Iterator[Callable[..., Lab]]:
    """`make_lab(32)` boots a lab of its own for one test; the arguments are those of `Lab`."""
    if reason := missing():
        pytest.skip(reason)
    with ExitStack() as labs:
        yield lambda *args, **options: labs.enter_context(Lab(*args, **options))
