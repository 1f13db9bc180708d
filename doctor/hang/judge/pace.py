"""How long the steps of a watched job take, so that a step that is always long is not taken for a hang."""

from __future__ import annotations

from dataclasses import dataclass

from doctor.hang.judge.judgement import Judgement

TIMES = 2.0
"""A step may take this many times as long as the longest one that was seen."""


@dataclass(slots=True)
class StepPace:
    step: int | None = None
    since: float | None = None
    """When `step` began; None if it had begun before the first look."""
    longest: float = 0.0
    """Seconds for a step, by the looks so far."""

    def add(self, seen: Judgement, now: float) -> None:
        step = max((each.step for each in seen.ranks if each.step is not None), default=None)
        if step is None or step == self.step:
            return
        if self.step is not None and self.step < step and self.since is not None:
            self.longest = max(self.longest, (now - self.since) / (step - self.step))
        self.since = None if self.step is None else now
        self.step = step

    def limit(self, wished: float) -> float:
        return max(wished, TIMES * self.longest)
