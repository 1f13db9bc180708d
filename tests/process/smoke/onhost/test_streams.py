"""The libraries' own random streams, and the numbers that plain Python predicts."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.smoke.onhost import streamplan, streams
from doctor.smoke.onhost.devices import framework_of
from doctor.smoke.onhost.random_bytes import hashed
from doctor.smoke.onhost.shape import CellShape
from doctor.smoke.onhost.torch_framework import Torch
from tests.support.cases import cases

SHAPE = CellShape(dp=2, tp=2, hosts=(4,), steps=30, seed=7)


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """Restore the streams of the tests."""
    python, on_cpu = random.getstate(), torch.get_rng_state()
    yield
    random.setstate(python)
    torch.set_rng_state(on_cpu)


def of_place(place: int, shape: CellShape = SHAPE) -> streams.Streams:
    seeded = streams.Streams(framework_of("gloo", 0, None))
    seeded.seed(streamplan.stream_seed(shape, shape.dp_of(place)))
    return seeded


@settings(max_examples=20)
@given(st.integers(0, 2**40), st.integers(0, 15))
def test_the_libraries_of_this_machine_give_the_reference(seed: int, place: int) -> None:
    shape = CellShape(dp=8, tp=2, hosts=(16,), steps=30, seed=seed)
    drawn = of_place(place, shape)
    for step in range(4):
        given_here = drawn.draw()
        assert {"python", "torch"} <= set(given_here)
        known = streamplan.reference_streams(shape, step, place)
        assert {name: given_here[name] for name in known if name in given_here}.items() <= known.items()


def test_peers_draw_the_same_and_replicas_do_not() -> None:
    first, peer, other = (streamplan.reference_streams(SHAPE, 5, place) for place in (0, 1, 2))
    assert first == peer
    assert not set(first.values()) & set(other.values())
    assert not set(first.values()) & set(streamplan.reference_streams(SHAPE, 6, 0).values())


def test_the_fingerprint_is_the_reference_s() -> None:
    found = streams.fingerprint(framework_of("gloo", 0, None))
    known = streamplan.reference_fingerprint()
    assert set(known) == {"python", "numpy", "torch"}
    assert {name: found[name] for name in ("python", "torch")}.items() <= known.items()


@cases
def test_numpy_s_older_interface_is_known(seed: int, first: float) -> None:
    """What `numpy.random.seed(seed); numpy.random.random_sample()` gives."""
    assert streamplan._twister(seed).random() == first


@pytest.mark.parametrize(
    ("name", "stray"), [("python", random.random), ("torch", lambda: torch.rand(1)), ("none", lambda: None)]
)
def test_a_stray_draw_changes_its_stream_from_then_on(name: str, stray: Callable[[], Any]) -> None:
    drawn = of_place(1)
    drawn.draw()
    stray()
    for step in (1, 2):
        known, found = streamplan.reference_streams(SHAPE, step, 1), drawn.draw()
        assert {stream for stream in ("python", "torch") if known[stream] != found[stream]} == {name} - {
            "none"
        }


class StandIn:
    """The part of numpy that the streams use; its older interface is exact, by the reference."""

    def __init__(self) -> None:
        self.random = self
        self.twister = random.Random()

    def seed(self, seed: int) -> None:
        self.twister = streamplan._twister(seed)

    def random_sample(self, count: int) -> SimpleNamespace:
        numbers = [self.twister.random() for _ in range(count)]
        return SimpleNamespace(tobytes=lambda: streamplan.doubles(numbers))

    def PCG64(self, seed: int) -> int:
        return seed

    def Generator(self, seed: int) -> SimpleNamespace:
        return SimpleNamespace(random=lambda count: SimpleNamespace(tobytes=lambda: b"%d" % (seed + count)))


def test_numpy_s_streams_are_drawn_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "numpy", StandIn())
    drawn, seed = of_place(2), streamplan.stream_seed(SHAPE, 1)
    drawn.draw()
    found = drawn.draw()
    assert found["numpy"] == streamplan.reference_streams(SHAPE, 1, 2)["numpy"]
    assert found["numpy-pcg64"] == hashed(b"%d" % (seed + streamplan.DRAWS))


def test_a_host_without_numpy_has_no_such_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "numpy", None)
    assert set(of_place(0).draw()) == {"python", "torch"}


def test_a_device_has_a_stream_of_its_own() -> None:
    """Many numbers for the fingerprint: only those depend on the kind of GPU."""
    asked: list[int] = []

    class Fake(Torch):
        def seed(self, seed: int) -> None:
            asked.append(-seed)

        def draw_many(self, count: int) -> dict[str, bytes]:
            asked.append(count)
            return {"device": struct.pack("f", 0.5) * count}

    found = streams.fingerprint(Fake())
    assert found["device"] == hashed(struct.pack("f", 0.5) * streams.LARGE)
    assert asked == [-streamplan.FINGERPRINT_SEED, streamplan.DRAWS, streams.LARGE]
