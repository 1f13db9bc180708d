"""Lines that only repeat a complaint are counted: the answer is the same as if each had been examined."""

from pathlib import Path

import pytest

from doctor.logs.loss.collect import LossCollector
from doctor.logs.model import Logs
from doctor.logs.read import read
from doctor.logs.reading import scan
from tests.support.cases import cases
from tests.support.fault_logs import matcher

LINES = 1500


def told(path: Path, lines: list[str]) -> Logs:
    text = "".join(
        f"{lines[n % len(lines)]}\n".format(n=n, rank=n * 7 % 16, ms=f"{n % 1000:03}", s=f"{n // 60 % 60:02}")
        for n in range(LINES)
    )
    path.write_text(f"the job begins\n{text}the job is over\n")
    return read([path], matcher(), loss=LossCollector)


@cases
def test_nothing_is_lost(
    lines: list[str], examined: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 0
    examine = scan._Scanner._line

    def counting(*given: object) -> None:
        nonlocal number
        number += 1
        examine(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(scan._Scanner, "_line", counting)
    found = told(tmp_path / "job.log", lines)
    few, number = number, 0
    monkeypatch.setattr(scan, "FEW", LINES * 2)
    assert found == told(tmp_path / "job.log", lines)
    assert few <= examined
    assert number >= LINES // 2
    assert sum(each.count for each in found.sightings) >= LINES // 2


def test_the_first_of_two_wordings_is_examined(tmp_path: Path) -> None:
    """Sentences are looked through in no order, and rank 1's error stands between them."""
    broke = "[rank0]: RuntimeError: CUDA error: unspecified launch failure"
    some = [f"{broke} {how} {n}" for how in ("at step", "in stage") for n in range(100, 160)]
    some.insert(60, "[rank1]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    (tmp_path / "job.log").write_text("\n".join(some))
    found = read([tmp_path / "job.log"], matcher(), loss=LossCollector)
    assert [(each.first.number, each.count) for each in found.sightings] == [(1, 120), (61, 1)]
