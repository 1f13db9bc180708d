"""A few spoilt inputs of each kind; `python -m tests.trials.fuzz` tries them for as long as you like."""

import pytest

from tests.support.cases import cases_with
from tests.trials.fuzz.target import Find, Target, refuse_unsafe, tried
from tests.trials.fuzz.targets import TARGETS

pytestmark = pytest.mark.slow

FEW = ("few:0",)
MANY = tuple(f"many:{number}" for number in range(100))


@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_spoilt_inputs_break_nothing(target: Target, seeds: tuple[str, ...]) -> None:
    assert {seed: found for seed in seeds if (found := tried(target, target.case(seed)))} == {}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_honest_inputs_are_read(target: Target) -> None:
    """Otherwise, spoilt inputs would be refused for another reason."""
    honest = target.honest()
    assert honest
    if not target.name.endswith("agent") and target.name not in ("answer", "no-mesh"):
        target.read(min(honest, key=len))


def _recurse(_: bytes) -> None:
    _recurse(_)


def _fill(_: bytes) -> None:
    bytearray(600_000_000)[::4096] = b"x" * len(range(0, 600_000_000, 4096))


def _turn(_: bytes) -> None:
    while True:
        pass


def _say(_: bytes) -> None:
    refuse_unsafe("\x1b[2J")


@cases_with(_recurse, _fill, _say, _turn)
def test_what_counts_as_a_find(read: object, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.trials.fuzz.target.LONGEST", 0.3)
    found = tried(Target("made", lambda: [b"x"], read), b"x")  # type: ignore[arg-type]
    assert found is not None
    assert found.startswith(said)
    assert issubclass(Find, AssertionError)
