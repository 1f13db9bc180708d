"""A job that was started more than once: its last attempt is judged, what became of the others is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from doctor.logs.model import Conclusion, Logs, Outcome

MOST = 10
"""Attempts that are told: the first and the last ones."""


def with_earlier(last: Conclusion, logs: Logs, earlier: Sequence[Conclusion]) -> Conclusion:
    """A job that went on is not one that nothing happened to; one that only began has not gone on."""
    total = len(earlier) + 1
    told = [f"attempt {number} of {total} {_ended(each)}" for number, each in enumerate(earlier, 1)]
    if total - 1 > MOST:
        told = [*told[: MOST // 2], f"{total - 1 - MOST} more attempts", *told[-(MOST // 2) :]]
    made = replace(last, beside=tuple(told))
    if last.outcome is not Outcome.CLEAN or any(file.progress for file in logs.files):
        return made
    opened = f"attempt {total} of {total} began; its log tells of no step, so it may have ended as well"
    return replace(made, outcome=Outcome.UNKNOWN, open=(*last.open, opened))


def _ended(attempt: Conclusion) -> str:
    causes = [each for each in attempt.charges if each.because is None]
    if not causes:
        return "ended; its log does not say why"
    if attempt.outcome is Outcome.NAMED:
        beside = f" (or {len(causes) - 1} more)" if len(causes) > 1 else ""
        return f"failed: {causes[0].says.rstrip('.')}{beside}"
    return f"ended; it is not known why: {causes[0].says.rstrip('.')}"
