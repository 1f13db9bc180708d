"""If hccn_tool prints nothing usable about a device, only the reason is known."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.api import Capture, Fact, UnreadableOutput
from doctor.facts.ascend.hccn_tool import SilentDevice, split_known
from doctor.facts.ascend.network import (
    HCCN_CONF,
    NPU_ADDRESSES,
    NPU_LINKS,
    Address,
)
from tests.support.captures import printed
from tests.support.cases import cases
from tests.support.each import each
from tests.support.limits import within
from tests.unit.facts.ascend.test_network import FACTS, TEXTS, framed, read
from tests.unit.facts.test_hostile import tolerate


@cases
def test_the_reason_is_given_when_nothing_is_known(fact: str, text: str, reason: str) -> None:
    assert read(FACTS[fact], text, rc=7) == SilentDevice(reason)


@each("fact", FACTS)
@cases
def test_errors_are_quoted_from_the_tool(fact: str, name: str) -> None:
    text = TEXTS[f"{name}.txt"].strip()
    assert read(FACTS[fact], text, rc=5) == SilentDevice(f"{text} (exit code 5)")


@pytest.mark.parametrize("fact", FACTS)
def test_what_a_product_does_not_have(fact: str) -> None:
    """Every product that is asked has addresses and links, so such an answer counts as missing."""
    lacks = fact not in ("npu-addresses", "npu-links")
    unsupported = SilentDevice("the command is not supported on this product", unsupported=lacks)
    assert read(FACTS[fact], TEXTS["not_supported_product.txt"], rc=1) == unsupported
    unasked = printed(FACTS[fact], "devices 0\n@ 0 unasked product\n")
    assert unasked == {0: SilentDevice("this product does not have it", unsupported=True)}


def test_devices_that_did_not_answer_are_named() -> None:
    text = (
        "devices 0 1 2 3 10 11\nlink status: UP\n@ 0 0\n@ 1 hung 4\nlink status: DOWN\n@ 2 0\n"
        "@ 3 long\n@ 10 unasked hung\nlink sta"
    )
    said = printed(NPU_LINKS, text)
    known, why = split_known(said)
    assert (list(said), known) == ([0, 1, 2, 3, 10, 11], {0: True, 2: False})
    assert why == (
        "device 1: hccn_tool did not answer within 4 s; device 3: hccn_tool printed without end; "
        "device 10: not asked: hccn_tool had hung twice before; "
        "device 11: not asked: the time for hccn_tool was used up"
    )
    said = printed(NPU_LINKS, "devices 0 1 2 4\n" + "".join(f"@ {n} unasked busy\n" for n in (0, 1, 2, 4)))
    assert split_known(said) == ({}, "devices 0-2,4: hccn_tool was busy all the time")
    assert split_known({0: True}) == ({0: True}, "")


def test_an_ipv6_address_is_asked_for_where_there_is_no_other() -> None:
    none, there = TEXTS["ip_g_not_preset.stderr.txt"], TEXTS["ip_g_inet6.txt"]
    frames = f"devices 0 1 2\n{none}@ 0 3\n{there}@ 0 0\n{none}@ 1 3\n{none}@ 1 3\n{none}@ 2 3\n@ 2 hung 4\n"
    assert printed(NPU_ADDRESSES, frames) == {
        0: Address("fd00:0:0:1::8", 64),
        1: None,
        2: SilentDevice("hccn_tool did not answer within 4 s"),
    }


@pytest.mark.parametrize("text", ["", "nonsense", "devices\n", "link status: UP\n@ 0 0\n"])
def test_no_devices(text: str) -> None:
    with pytest.raises(UnreadableOutput, match="no /dev/davinciN"):
        printed(NPU_LINKS, text)


@pytest.mark.slow
@pytest.mark.parametrize("fact", [*FACTS.values(), HCCN_CONF], ids=lambda fact: fact.name)
@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(sorted(TEXTS)),
    cut=st.integers(0, 3000),
    noise=st.binary(max_size=40),
    rc=st.integers(0, 255),
)
def test_any_part_of_an_answer_with_any_bytes(
    fact: Fact[Any], name: str, cut: int, noise: bytes, rc: int
) -> None:
    text = TEXTS[name][:cut] + noise.decode(errors="replace") + TEXTS[name][cut:]
    for output in (framed({0: text}, rc), framed({0: TEXTS[name]}, rc)[:cut], text):
        with contextlib.suppress(UnreadableOutput):
            for said in fact.parse(Capture(fact.name, rc, output)).values():
                assert not isinstance(said, SilentDevice) or said.reason


@pytest.mark.slow
@pytest.mark.parametrize("fact", [*FACTS.values(), HCCN_CONF], ids=lambda fact: fact.name)
@each(
    "unit",
    [
        *(
            "a:1\n",
            "ipaddr:1\n",
            "a  ",
            " ",
            "link up count : 1\n",
            "end_time[",
            "[devid 0]",
            "address_0=",
            "_0",
        ),
        *("Port ID TLV\n", "| UdieID ", "| 0 ", "Sun Mar  1 09:15:40 2026 ", "@ 0 0\n", "9" * 4400),
    ],
)
def test_long_text_is_read_soon(fact: Fact[Any], unit: str) -> None:
    text = unit * (200_000 // len(unit))
    with within(5):
        tolerate(fact, f"devices 0 1\n{text}\n@ 0 0\n@ 1 0\n")
