"""Whose exit code it is that `doctor run` ends with."""

from enum import Enum


class Whose(str, Enum):
    JOB = "job"
    PREFLIGHT = "preflight"
    ENDED = "ended by doctor"
    NOT_STARTED = "not started"

    @property
    def words(self) -> str:
        if self is Whose.ENDED:
            return "doctor's, which ended the job"
        if self is Whose.NOT_STARTED:
            return "doctor's: the command could not be started"
        return f"the {'pre-flight' if self is Whose.PREFLIGHT else self.value}'s"
