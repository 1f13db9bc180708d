"""What hccn_tool prints, and the facts parsed from it: device by device, and never more than was printed."""

from collections.abc import Mapping
from typing import Any

import pytest

from doctor.api import Capture, Fact, UnreadableOutput
from doctor.facts.ascend import network, ports
from doctor.facts.ascend.hccn_tool import SilentDevice
from doctor.facts.ascend.network import (
    HCCN_CONF,
    NPU_ADDRESSES,
    NPU_DETECT,
    NPU_NET_HEALTH,
    NPU_TLS,
    Address,
    Tls,
)
from doctor.facts.ascend.ports import (
    NPU_COUNTERS,
    NPU_LINK_HISTORY,
    NPU_NEIGHBOURS,
    NPU_OPTICS,
    NPU_PORTS,
    LinkChange,
    Neighbour,
)
from tests.support.captures import SAMPLES, printed, sample
from tests.support.cases import cases, from_cases
from tests.support.each import each

TEXTS = {path.name: path.read_text() for path in sorted((SAMPLES / "hccn_tool").glob("*.txt"))}
FACTS = {
    fact.name: fact
    for module in (network, ports)
    for fact in vars(module).values()
    if isinstance(fact, Fact) and fact is not HCCN_CONF
}
HEALTH = ("Fault", "Init", "Success", "Unreachable", "Receive timeout", "Socket fail", "Detect ip set")


def framed(answers: Mapping[int, str], rc: int = 0) -> str:
    """The output of the loop of calls for these devices."""
    frames = "".join(f"{text}\n@ {device} {rc}\n" for device, text in answers.items())
    return f"devices{''.join(f' {device}' for device in answers)}\n{frames}"


def read(fact: Fact[Any], text: str, rc: int = 0) -> Any:
    """The fact parsed from one device's answer."""
    return printed(fact, framed({3: text}, rc))[3]


def history(text: str) -> tuple[LinkChange, ...]:
    return read(NPU_LINK_HISTORY, text)  # type: ignore[no-any-return]


UNDERSTOOD: dict[tuple[str, str], Any] = {
    ("ip_g", "npu-addresses"): Address("192.161.200.10", 24),
    ("ip_g_inet6", "npu-addresses"): Address("fd00:0:0:1::8", 64),
    ("ip_g_not_preset.stderr", "npu-addresses"): None,
    ("link_g_up", "npu-links"): True,
    ("link_g_down", "npu-links"): False,
    **{(f"net_health_g_{state.lower().replace(' ', '_')}", "npu-net-health"): state for state in HEALTH},
    ("netdetect_g", "npu-detect"): "10.20.4.1",
    ("netdetect_g_unset", "npu-detect"): None,
    ("gateway_g", "npu-gateways"): "10.20.4.1",
    ("gateway_g_not_preset.stderr", "npu-gateways"): None,
    ("tls_g_switch0", "npu-tls"): Tls(on=False),
    ("tls_g_switch_mismatch", "npu-tls"): Tls(on=False),
    ("tls_g_no_certificate.stderr", "npu-tls"): Tls(on=False),
    ("tls_g_certificates", "npu-tls"): Tls(on=True, expired="Sun Jan  5 08:00:00 2025 GMT"),
    ("speed_g", "npu-speeds"): 100_000,
    ("speed_g_200g", "npu-speeds"): 200_000,
    ("speed_g_unknown", "npu-speeds"): None,
    ("status_g", "npu-speeds"): 100_000,
    ("lldp_g", "npu-neighbours"): Neighbour("200GE1/0/7", "Example Switch Software"),
    ("ip_g_empty", "npu-neighbours"): None,
    ("process_g_exist", "npu-hccp"): True,
    ("process_g_not_exist", "npu-hccp"): False,
    ("optical_absent", "npu-optics"): None,
    ("link_stat_g", "npu-link-history"): (
        LinkChange("Mon Mar  2 09:05:40 2026", 600.0, up=True),
        LinkChange("Mon Mar  2 09:05:37 2026", 603.0, up=False),
        LinkChange("Sat Feb 28 23:59:59 2026", 119741.0, up=True),
    ),
    ("stat_g_short_910A", "npu-counters"): {"roce_rx_err_pkt_num": 0, "roce_tx_err_pkt_num": 0},
    ("dev_info_a5", "npu-ports"): (True, False, True),
}
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


@pytest.mark.parametrize(
    ("fact", "text", "value"),
    [
        (NPU_DETECT, "netdetect addr: 10.0.0.1", "10.0.0.1"),
        (NPU_DETECT, "netdetect addr: ::", None),
        (NPU_NET_HEALTH, "net health status: Socket failed", "Socket failed"),
        (
            NPU_TLS,
            "dev_id:0, tls switch[1](0:disable, 1:enable), tls alarm time threshold[60]days",
            Tls(on=True),
        ),
        (
            NPU_TLS,  # stderr may arrive first
            "\t tls expiration status[2](0:normal, 1:near expiration, 2:has expired)\n"
            "dev_id:0, tls switch[1](0:disable, 1:enable)\n\t end_time[Sun Jan  5 08:00:00 2025 GMT]",
            Tls(on=True, expired="Sun Jan  5 08:00:00 2025 GMT"),
        ),
        (NPU_ADDRESSES, "ipaddr:0.0.0.0\nnetmask:0.0.0.0", None),
        (NPU_ADDRESSES, "ipaddr:10.0.0.9\nnetmask:255.255.255.255", Address("10.0.0.9", 32)),
        (NPU_NEIGHBOURS, "Port ID TLV\n\tMAC: 02:00:5e:00:53:02", Neighbour("02:00:5e:00:53:02", "")),
        (
            NPU_NEIGHBOURS,
            "Port ID TLV\n\tLocal7\nSystem Description TLV\nEnd of LLDPDU TLV",
            Neighbour("Local7", ""),
        ),
        (NPU_NEIGHBOURS, "", None),
        (NPU_OPTICS, "present : present\nTx Los Flag : 3\nlanes : 4", {"Tx Los Flag": 3}),
        (NPU_PORTS, "| UdieID | PortID | Link Status |\n| 0 | 4 | UP |", (True,)),
    ],
)
def test_another_wording_is_understood(fact: Fact[Any], text: str, value: object) -> None:
    found = read(fact, text)
    assert (found.flags if fact is NPU_OPTICS else found) == value


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
