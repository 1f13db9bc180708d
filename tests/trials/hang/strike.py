"""What a job of a trial does at each step: rank VICTIM does FAULT at step AT, the others nothing."""

import os
from collections.abc import Callable

from tests.support.hang import work
from tests.trials.hang import BEFORE

FAULT, AT = os.environ.get("FAULT", ""), int(os.environ.get("AT", "5"))
VICTIM = int(os.environ.get("VICTIM", "1"))


def mark(name: str, rank: int, text: str) -> None:
    fresh = work.FOLDER / f"{name}.{rank}.new"
    fresh.write_text(text)
    fresh.rename(work.FOLDER / f"{name}.{rank}")


def strike(rank: int, step: int) -> None:
    if FAULT and rank == VICTIM and step == AT:
        mark("hit", rank, str(os.getpid()))
        fault: Callable[[], None] = getattr(work, FAULT)
        fault()
    if step != BEFORE:
        mark("step", rank, str(step))
