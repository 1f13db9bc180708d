"""Whose exit code it is that `doctor run` ends with."""

from __future__ import annotations

from enum import Enum


class Whose(str, Enum):
    JOB = "job"
    PREFLIGHT = "preflight"
    ENDED = "ended by doctor"

    @property
    def words(self) -> str:
        if self is Whose.ENDED:
            return "doctor's, which ended the job"
        return f"the {'pre-flight' if self is Whose.PREFLIGHT else self.value}'s"
