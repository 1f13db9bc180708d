"""PCIe links from what the kernel shows of each place on the way to the processor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.captures import every_fact, printed
from tests.support.cases import cases

PCIE_LINKS = every_fact()["pcie-links"]
GPU = "0000:03:00.0 0x030200 0x10de 0x2330"
KIND = "0302 10de2330"


@cases
def test_the_narrowest_place_counts(way: str, found: tuple[int, int, float, float, str]) -> None:
    (link,) = printed(PCIE_LINKS, f"{GPU}{way}\n").values()
    assert (link.kind, link.lanes, link.of_lanes, link.speed, link.of_speed, link.at) == (KIND, *found)


@cases
def test_no_link_is_known(line: str) -> None:
    assert printed(PCIE_LINKS, line) == {}


@given(st.text(alphabet="0123456789abcdefx:. |Unkow\n", max_size=200))
def test_anything_may_be_printed(text: str) -> None:
    printed(PCIE_LINKS, text)


@pytest.mark.parametrize("text", ["", "\x00", "x" * 100_000, f"{GPU}|" * 1000])
def test_what_is_none_is_not_read(text: str) -> None:
    assert printed(PCIE_LINKS, text) == {}
