"""Which groups the emulated HCCL refuses: the rule and the examples of CANN's `create_group`."""

import re
import runpy
from itertools import combinations

from tests.lab.npu_python import SITE
from tests.support.cases import cases

# By its path: the package around it loads the libraries of an emulated host.
RULE = runpy.run_path(str(SITE / "torch_npu" / "groups.py"))
refusal, Place = RULE["refusal"], RULE["Place"]


def group(*ranks: int) -> list[object]:
    """Ranks on servers with eight devices each, numbered as in the manual."""
    return [Place(f"server{rank // 8}", rank % 8) for rank in ranks]


@cases
def test_what_the_manual_allows(ranks: tuple[int, ...]) -> None:
    assert not refusal(group(*ranks), rings=True)


@cases
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
