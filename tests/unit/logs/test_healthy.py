"""200 logs of healthy jobs: nothing is reported about them."""

from pathlib import Path

import pytest

from doctor.logs.model import LogOutcome
from tests.support.fault_logs import concluded
from tests.support.healthy_logs import KINDS, healthy

pytestmark = pytest.mark.slow

EACH = 20
TOTAL = 200


@pytest.mark.parametrize("first", range(0, TOTAL, EACH))
def test_nothing_is_said_of_them(first: int, tmp_path: Path) -> None:
    complaints = []
    for seed in range(first, first + EACH):
        folder = tmp_path / str(seed)
        for name, text in healthy(seed).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        said = concluded(folder)
        if said.outcome is not LogOutcome.CLEAN or said.charges:
            why = [each.says for each in said.charges] or [each.text for each in said.odd]
            complaints.append(f"{KINDS[seed % len(KINDS)].__name__} {seed}: {said.outcome.value} {why[:3]}")
    assert not complaints, "\n".join(complaints)


def test_the_same_seed_gives_the_same_logs_and_another_others() -> None:
    drawn = [tuple(healthy(seed).items()) for seed in range(len(KINDS), TOTAL)]
    assert len({str(each) for each in drawn}) > TOTAL * 0.8
    assert healthy(17) == healthy(17)
