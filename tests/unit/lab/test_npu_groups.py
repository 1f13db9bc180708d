"""Which groups the emulated HCCL refuses: the rule and the examples of CANN's `create_group`."""

import re
import runpy
from itertools import combinations

import pytest

from tests.lab.npu_python import SITE

# By its path: the package around it loads the libraries of an emulated host.
RULE = runpy.run_path(str(SITE / "torch_npu" / "groups.py"))
refusal, Place = RULE["refusal"], RULE["Place"]


def group(*ranks: int) -> list[object]:
    """Ranks on servers with eight devices each, numbered as in the manual."""
    return [Place(f"server{rank // 8}", rank % 8) for rank in ranks]


@pytest.mark.parametrize(
    "ranks",
    [
        (1, 9, 17),
        (1, 2, 9, 10, 17, 18),
        (4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23),
        range(8),
        range(16),
        (0, 12),
        (5,),
    ],
)
def test_what_the_manual_allows(ranks: tuple[int, ...]) -> None:
    assert not refusal(group(*ranks), rings=True)


@pytest.mark.parametrize(
    ("ranks", "why"),
    [
        ((0, 2, 4, 6), r"devices \[0, 2, 4, 6\] are not in one ring"),
        ((0, 4), "not in one ring"),
        ((0, 1, 12, 13), "not in one ring"),
        ((0, 1, 2), "3 devices of a server"),
        ((0, 1, 8), "different numbers"),
        (range(6), "6 devices"),
    ],
)
def test_what_it_forbids(ranks: tuple[int, ...], why: str) -> None:
    assert re.search(why, refusal(group(*ranks), rings=True))
    assert not refusal(group(*ranks), rings=False), "later products"


def test_every_group_of_one_server() -> None:
    """A ring has 6 pairs and one group of four; single devices and the whole server are allowed as well."""
    allowed = [
        ranks
        for size in range(1, 9)
        for ranks in combinations(range(8), size)
        if not refusal(group(*ranks), rings=True)
    ]
    assert len(allowed) == 8 + 2 * (6 + 1) + 1


def test_a_device_is_in_a_group_once_on_every_product() -> None:
    assert "twice" in refusal(group(3, 3), rings=False)
