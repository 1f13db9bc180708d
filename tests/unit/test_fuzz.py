"""A few spoilt inputs of each kind; `python -m tests.trials.fuzz` tries them for as long as you like."""

import pytest

from tests.trials.fuzz.target import Find, Target, refuse_unsafe, tried
from tests.trials.fuzz.targets import TARGETS

pytestmark = pytest.mark.slow

FEW, MANY = 1, 100


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_spoilt_inputs_break_nothing(target: Target) -> None:
    assert [found for seed in range(FEW) if (found := tried(target, target.case(f"few:{seed}")))] == []


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_many_more_spoilt_inputs_break_nothing(target: Target) -> None:
    assert [found for seed in range(MANY) if (found := tried(target, target.case(f"many:{seed}")))] == []


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


@pytest.mark.parametrize(
    ("read", "said"),
    [(_recurse, "RecursionError"), (_fill, "it took "), (_say, "Find"), (_turn, "TooLong")],
)
def test_what_counts_as_a_find(read: object, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.trials.fuzz.target.LONGEST", 0.3)
    found = tried(Target("made", lambda: [b"x"], read), b"x")  # type: ignore[arg-type]
    assert found is not None
    assert found.startswith(said)
    assert issubclass(Find, AssertionError)
