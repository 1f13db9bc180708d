"""What is told about losses while the command runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from doctor.exam.request import HostFlags, Request
from doctor.run.why import losses_of

LOCAL = Request("run", who=HostFlags(local=True))
FALLING = [4 / (1 + n / 20) for n in range(120)]


@dataclass
class Text:
    text: bytes

    @property
    def total(self) -> int:
        return len(self.text)

    def first(self) -> bytes:
        return self.text

    def since(self, place: int, _: int = 0) -> tuple[int, bytes]:
        return place, self.text[place:]


@dataclass
class Printed:
    streams: dict[str, Text]


def told(*curves: Sequence[float], before: Sequence[str] = ()) -> tuple[tuple[str, ...], bool]:
    ranks = [f"[rank{n}]: " if len(curves) > 1 else "" for n in range(len(curves))]
    lines = [
        f"{rank}step {step} loss {loss:.6f}\n"
        for step, losses in enumerate(zip(*curves, strict=True))
        for rank, loss in zip(ranks, losses, strict=True)
    ]
    output = Printed({"stdout": Text("".join(lines).encode()), "stderr": Text(b"ready\n")})
    look = losses_of(LOCAL, output, before)  # type: ignore[arg-type]
    return look.says, look.why is not None


def test_a_loss_that_falls_is_not_told() -> None:
    assert told(FALLING) == ((), False)


@pytest.mark.parametrize(
    ("curves", "word"),
    [
        ([[*FALLING[:20], *[float("nan")] * 9]], "NaN"),
        ([[*FALLING[:60], *(FALLING[60] * 1.2**n for n in range(30))]], "rises"),
        ([[4.123457] * 300], "same number"),
    ],
    ids=["NaN", "diverging", "frozen"],
)
def test_each_fault_of_a_loss_is_told_once(curves: Sequence[Sequence[float]], word: str) -> None:
    says, reports = told(*curves)
    assert reports
    assert any(word in each for each in says), says
    assert told(*curves, before=says) == (says, False)
