"""`doctor`, without the repeats that follow a fault: a trial needs only the result of the first run."""

from doctor.__main__ import main
from doctor.exam import smoke_rounds
from tests.lab import doctor_program
from tests.lab.warm import Warm

__all__ = ["ONCE", "load", "main"]

ONCE = Warm("tests.trials.once")


def load() -> None:
    doctor_program.load()
    smoke_rounds.REPEATS = 0
