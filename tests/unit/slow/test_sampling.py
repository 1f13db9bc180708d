"""How often the ranks of a slow job are sampled."""

import pytest

from doctor.slow.onhost import sampling


class Costly:
    """A rank whose third sample takes a second of the processor."""

    def __init__(self) -> None:
        self.looks, self.cost = 0, 0.0

    def look(self, *_: object) -> None:
        self.looks += 1
        self.cost += 1.0 if self.looks == 3 else 0.0


def test_a_sample_that_costs_more_is_followed_by_a_longer_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    rank, now, pauses = Costly(), [0.0], list[float]()
    monkeypatch.setattr(sampling.time, "process_time", lambda: rank.cost)
    monkeypatch.setattr(sampling.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sampling.random, "uniform", lambda *_: 1.0)
    monkeypatch.setattr(sampling, "_ticks", lambda: None)

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(sampling.time, "sleep", sleep)
    monkeypatch.setattr(sampling.Round, "_open", lambda _: None)
    made = sampling.Round([], 1)
    made.ranks = [rank]  # type: ignore[list-item]
    monkeypatch.setattr(made, "_busiest", lambda _: None)
    made.run(100.0)
    assert pauses[2] == pytest.approx(1.0 / sampling.OF_A_CORE)
    assert pauses[0] == pauses[1] == pauses[3] == pytest.approx(100.0 / sampling.SAMPLES)
