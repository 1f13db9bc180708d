"""What just suffices for the ranks is enough, and a byte less is not."""

import pytest

from doctor.expect import Expect
from doctor.facts.memory import Space, Spaces
from tests.support.npu_cluster import judge

MB = 1 << 20
NEED = 4 * 4 * 10 * MB
"""For 4 ranks, each with 4 connections."""


def said(check: str, total: int, free: int, inodes: int | None = None) -> list[str]:
    spaces = Spaces((Space("/dev/shm", "/dev/shm", total, free, True, inodes),), (), ())
    others = (None,) if check == "shm-full" else ()
    return [problem.summary for problem in judge(check, spaces, *others, 4, Expect()).problems]


def test_shm_of_just_the_size() -> None:
    assert said("shm-small", NEED, NEED) == []
    assert said("shm-small", NEED - 1, NEED - 1) == ["/dev/shm is too small for the ranks on this host"]


def test_shm_with_just_enough_free() -> None:
    assert said("shm-full", NEED, NEED) == []
    assert said("shm-full", NEED, NEED - 1) == ["/dev/shm is nearly full"]
    assert said("shm-full", NEED - 1, 0) == [], "it is too small, and another check says so"


@pytest.mark.parametrize(("inodes", "problems"), [(None, 0), (64, 0), (63, 1), (0, 1)])
def test_inodes(inodes: int | None, problems: int) -> None:
    assert len(said("shm-full", NEED, NEED, inodes)) == problems
