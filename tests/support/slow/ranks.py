"""A training on this machine whose fault is changed while it runs, and the truth by its own clock."""

import os
import struct
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from tests.support.cases import from_cases
from tests.support.hang.ranks import RunningJob

JOB = Path(__file__).with_name("job.py")
ROW = struct.Struct("4d")
FEED = from_cases(__file__, "FEED", str)
Step = tuple[float, float, float, float]
"""When it began, had its data, was ready and was done."""


def truth(path: Path) -> list[Step]:
    try:
        data = path.read_bytes()
    except OSError:
        return []
    return list(ROW.iter_unpack(data[: len(data) // ROW.size * ROW.size]))


@dataclass(slots=True)
class SlowJob(RunningJob):
    feeder: subprocess.Popen[bytes] | None = None

    def fault(self, name: str, rank: int | str = -1, ms: float = 50) -> None:
        self.faults(f"{name} {rank} {ms}")

    def faults(self, *rows: str) -> None:
        new = self.folder / "fault.new"
        new.write_text("\n".join(rows))
        new.rename(self.folder / "fault")

    def begin(self, **more: str) -> None:
        self.fault("none")
        os.mkfifo(self.folder / "shard")
        self.start(**more)
        argv = [sys.executable, "-c", FEED, str(self.folder / "shard"), str(os.getpid())]
        self.feeder = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        self.until(lambda: all(len(self.steps(rank)) >= 10 for rank in range(self.world)))

    def steps(self, rank: int) -> list[Step]:
        return truth(self.folder / f"truth.{rank}")

    def end(self) -> None:
        self.close()
        if self.feeder is not None:
            self.feeder.kill()
            self.feeder.wait(10)


def lost(steps: dict[int, list[Step]], rank: int, since: float, beside: Collection[int] = ()) -> float:
    """The share of the time since then that the others waited for this rank, by their own clock; without
    those that are late beside it.
    """
    late = whole = 0.0
    for row in _since(steps, since):
        others = max(at[2] for each, at in row.items() if each not in (rank, *beside))
        late += max(0.0, row[rank][2] - others)
        whole += row[rank][3] - row[rank][0]
    return late / whole if whole else 0.0


def longer(steps: dict[int, list[Step]], rank: int, since: float) -> float:
    """The share of the time since then that this rank needs longer until it is ready than the others, which a
    slow link does not change: it lets the ranks go on at different moments.
    """
    rows = list(_since(steps, since))
    needs = {each: sum(row[each][2] - row[each][0] for row in rows) for each in steps}
    return (needs.pop(rank) - median(needs.values())) / _whole(rows)


def shared(steps: dict[int, list[Step]], since: float) -> float:
    """The share of the time since then that the rank which waits least is in the collective."""
    rows = list(_since(steps, since))
    return min(sum(row[each][3] - row[each][2] for row in rows) for each in steps) / _whole(rows)


def _whole(rows: list[dict[int, Step]]) -> float:
    return sum(row[0][3] - row[0][0] for row in rows) or 1.0


def _since(steps: dict[int, list[Step]], since: float) -> Iterator[dict[int, Step]]:
    for rows in zip(*steps.values(), strict=False):
        if rows[0][0] >= since:
            yield dict(zip(steps, rows, strict=True))


@pytest.fixture(scope="module")
def make_slow_job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., SlowJob]]:
    """Starts ranks, which are kept for all tests of a file, with variables for all of them."""
    made: dict[tuple[object, ...], SlowJob] = {}

    def make(world: int = 4, **more: str) -> SlowJob:
        asked = (world, *sorted(more.items()))
        if asked not in made:
            made[asked] = SlowJob(tmp_path_factory.mktemp("slow"), world, script=JOB)
            made[asked].begin(**more)
        return made[asked]

    yield make
    for job in made.values():
        job.end()
