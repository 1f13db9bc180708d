"""What hccn_tool prints, and the facts parsed from it: device by device, and never more than was printed."""

from collections.abc import Mapping
from typing import Any

import pytest

from checks.npu_wear import NPU_LINK_HISTORY, LinkChange
from doctor.api import Capture, Fact, UnreadableOutput
from doctor.facts.ascend import network, ports
from doctor.facts.ascend.hccn_tool import SilentDevice
from doctor.facts.ascend.network import (
    HCCN_CONF,
    Address,
    Tls,
)
from doctor.facts.ascend.ports import (
    NPU_COUNTERS,
    NPU_OPTICS,
    NPU_PORTS,
    Neighbour,
)
from tests.support.captures import SAMPLES, printed, sample
from tests.support.cases import cases, cases_with, from_cases
from tests.support.each import each

TEXTS = {path.name: path.read_text() for path in sorted((SAMPLES / "hccn_tool").glob("*.txt"))}
FACTS = {
    fact.name: fact
    for module in (network, ports)
    for fact in vars(module).values()
    if isinstance(fact, Fact) and fact is not HCCN_CONF
} | {NPU_LINK_HISTORY.name: NPU_LINK_HISTORY}


def framed(answers: Mapping[int, str], rc: int = 0) -> str:
    """The output of the loop of calls for these devices."""
    frames = "".join(f"{text}\n@ {device} {rc}\n" for device, text in answers.items())
    return f"devices{''.join(f' {device}' for device in answers)}\n{frames}"


def read(fact: Fact[Any], text: str, rc: int = 0) -> Any:
    """The fact parsed from one device's answer."""
    return printed(fact, framed({3: text}, rc))[3]


def history(text: str) -> tuple[LinkChange, ...]:
    return read(NPU_LINK_HISTORY, text)  # type: ignore[no-any-return]


ANSWERS = from_cases(
    __file__, "UNDERSTOOD", dict[str, dict[str, Any]], Address, Tls, Neighbour, LinkChange, tuple
)
UNDERSTOOD = {(name, fact): value for fact, values in ANSWERS.items() for name, value in values.items()}
PARTLY = from_cases(__file__, "PARTLY", set[tuple[str, ...]])
"""Too long to write down here; examined below."""


@pytest.mark.parametrize(("name", "fact"), UNDERSTOOD, ids=lambda part: part)
def test_an_answer(name: str, fact: str) -> None:
    assert read(FACTS[fact], TEXTS[f"{name}.txt"]) == UNDERSTOOD[name, fact]


@pytest.mark.parametrize("fact", FACTS)
@each("text", TEXTS)
def test_an_answer_to_another_question_is_not_understood(text: str, fact: str) -> None:
    known = (text.removesuffix(".txt"), fact) in {*UNDERSTOOD, *PARTLY}
    assert isinstance(read(FACTS[fact], TEXTS[text]), SilentDevice) != known


def test_optics() -> None:
    lines = TEXTS["optical_g_present_ok.txt"].splitlines()
    optics = read(NPU_OPTICS, TEXTS["optical_g_present_ok.txt"])
    assert optics.present is True
    assert len(optics.values) + len(optics.flags) + len(optics.texts) == len(lines) - 2
    assert optics.values["temperature"] == 47
    assert optics.values["Rx Power2"] == 0.9907
    assert optics.values["RxPower Low Thres"] == 0.1445
    assert optics.values["Media SNR Lane3"] == 23.2969
    assert optics.flags == {"Tx Los Flag": 0, "Rx Los Flag": 0, "Tx LoL Flag": 0, "Rx LoL Flag": 0}
    assert optics.texts["vendor org unique id"] == "0xac 0x4a 0x0"
    assert optics.texts["manufact date code"] == "2023.6.18"
    assert optics.texts["Host SNR Lane0"] == "not supported"


def test_a_module_that_is_not_present_may_still_describe_itself() -> None:
    text = (
        TEXTS["optical_g_present_ok.txt"].replace(": present\n", ": not present\n").replace("0x0\n", "0x1\n")
    )
    optics = read(NPU_OPTICS, text)
    assert (optics.present, optics.values["Vcc"]) == (False, 3262.9)
    assert set(optics.flags.values()) == {1}


def test_counters() -> None:
    full = read(NPU_COUNTERS, TEXTS["stat_g_full_910b_fieldorder.txt"])
    assert (len(full), full["nic_rx_all_oct_num"], full["roce_new_pkt_rty_num"]) == (48, 482237805, 0)
    assert len(read(NPU_COUNTERS, TEXTS["stat_g_doc_excerpt.txt"])) == 8
    large = read(NPU_COUNTERS, f"packet statistics:\nmac_rx_total_oct_num:{2**64 - 1}\n")
    assert large == {"mac_rx_total_oct_num": 2**64 - 1}


def test_history_of_old_versions() -> None:
    old = history(TEXTS["link_stat_g_910A_no_down_count.txt"])
    assert [change.up for change in old] == [True, False, True]
    assert [change.seconds_ago for change in old] == [44746, 44746, 44760]
    assert history(TEXTS["link_stat_g.txt"].replace("[devid 3]", "[device 3]")) == history(
        TEXTS["link_stat_g.txt"]
    )


def test_a_change_in_the_future_has_no_age() -> None:
    text = TEXTS["link_stat_g.txt"].replace("Mon Mar  2 09:15:40", "Sun Mar  1 09:15:40")
    assert [change.seconds_ago for change in history(text)] == [None, None, 33341]
    text = TEXTS["link_stat_g.txt"].replace("Sat Feb 28", "Sat Feb 30")
    assert history(text)[-1] == LinkChange("Sat Feb 30 23:59:59 2026", None, up=True)


@cases_with(Tls, Address, Neighbour, tuple)
def test_another_wording_is_understood(fact: str, text: str, value: object) -> None:
    found = read(FACTS[fact], text)
    assert (found.flags if fact == NPU_OPTICS.name else found) == value


def test_an_address_knows_its_network() -> None:
    address = Address("10.20.4.10", 16)
    assert (address.netmask, str(address.network)) == ("255.255.0.0", "10.20.0.0/16")
    assert str(Address("fd00::5", 64).network) == "fd00::/64"


@pytest.mark.parametrize("name", ["hccn_8npu_910b", "hccn_with_tls_enable"])
def test_the_configuration(name: str) -> None:
    text = sample(f"hccn_conf/{name}.conf")
    conf = printed(HCCN_CONF, text)
    assert {f"{key}_{n}={value}" for n, keys in conf.items() for key, value in keys.items()} == set(
        text.split()
    )
    assert list(conf) == ([0, 7] if name == "hccn_8npu_910b" else [0, 1])


def test_a_configuration_with_other_lines() -> None:
    assert printed(
        HCCN_CONF, "# comment\n\naddress_0 = 10.0.0.1 \naddress_0=10.0.0.2\nnothing=1\n_3=4\n"
    ) == {0: {"address": "10.0.0.2"}}
    assert printed(HCCN_CONF, "") == {}


@cases
def test_no_configuration(stderr: str, reason: str) -> None:
    with pytest.raises(UnreadableOutput, match=f"^/etc/hccn.conf {reason}$"):
        HCCN_CONF.parse(Capture("hccn-conf", 1, "", stderr))


@pytest.mark.parametrize(
    ("name", "fact"),
    [(name, fact) for name, fact in sorted({*UNDERSTOOD, *PARTLY}) if TEXTS[f"{name}.txt"]],
    ids=lambda part: part,
)
def test_unknown_lines_are_ignored(name: str, fact: str) -> None:
    text = TEXTS[f"{name}.txt"]
    plain = read(FACTS[fact], text)
    lines = text.splitlines()
    for place in (0, len(lines)):
        more = [*lines[:place], "a new thing | none", "", *lines[place:]]
        assert read(FACTS[fact], "\n".join(more)) == plain


def test_a_new_column_is_ignored() -> None:
    text = "\n".join(
        line + " new |" if line[0] == "|" else line for line in TEXTS["dev_info_a5.txt"].splitlines()
    )
    assert read(NPU_PORTS, text) == read(NPU_PORTS, TEXTS["dev_info_a5.txt"])
