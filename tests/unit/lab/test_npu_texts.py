"""The output of the emulated NPUs has the layout of the real samples; only values differ."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from doctor.facts.system import DEVICES
from tests.lab import hccn_texts as hccn
from tests.lab.npu_products import PRODUCTS, Product
from tests.lab.smi_tables import Chip, Chips, Process
from tests.lab.smi_texts import texts
from tests.support.captures import held, sample
from tests.support.cases import from_cases

TRAINING, A2, A3, A950 = (PRODUCTS[f"atlas-{name}"] for name in ("training", "a2", "a3", "950"))


def exact(text: str) -> str:
    return text


def keys(text: str) -> str:
    """A text without the values after each colon."""
    return "".join(f"{line.partition(':')[0].rstrip()}\n" for line in text.expandtabs(8).splitlines() if line)


def numbers(text: str) -> str:
    """A text in which every number and the blanks after it are replaced by equally many characters."""
    text = re.sub(r"\d{4}:[0-9A-F]{2}:00\.0", "9999:99:99.9", text)
    return re.sub(r"\d[\d.]* *", lambda found: "9" * len(found[0]), text)


def dates(text: str) -> str:
    text = re.sub(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}", "DATE", text)
    return re.sub(r"\d+", "9", text)


def bracketed(text: str) -> str:
    """A text without the contents of brackets and without the part that some versions omit."""
    return re.sub(
        r"\d+", "9", re.sub(r"\[[^]]*\]", "[]", re.sub(r", tls preconfigured\S+ \S+(?=,)", "", text))
    )


def tlvs(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if line.endswith("TLV"))


HCCN: list[tuple[str, Callable[[str], str], str]] = [
    ("ip_g", exact, hccn.ip(TRAINING, "192.161.200.10", "255.255.255.0")),
    ("link_g_up", exact, hccn.link(True)),
    ("link_g_down", exact, hccn.link(False)),
    ("gateway_g", exact, hccn.gateway("10.20.4.1", 2)),
    ("optical_g_present_ok", keys, hccn.common(A2, 1)["optical"]),
    ("speed_g", exact, hccn.common(TRAINING, 1)["speed"]),
    ("speed_g_200g", exact, hccn.common(A2, 1)["speed"]),
    ("netdetect_g", dates, hccn.common(A2, 1)["netdetect"]),
    ("mac_g", keys, hccn.own(A2, 1, 0)["mac"]),
    ("vnic_g", dates, hccn.own(A3, 1, 0)["vnic"]),
    ("link_stat_g", dates, hccn.link_stat(A2, 3, hccn.HEALTHY)),
    ("link_stat_g_910A_no_down_count", dates, hccn.link_stat(TRAINING, 0, hccn.HEALTHY)),
    ("tls_g_switch0", exact, f"{hccn.tls(TRAINING, 0).splitlines()[0]}\n"),
    ("tls_g_certificates", bracketed, hccn.tls(A2, 1, True)),
    ("lldp_g", tlvs, hccn.lldp("400GE1/1/1")),
]


@pytest.mark.parametrize(("name", "values_apart", "text"), HCCN, ids=[case[0] for case in HCCN])
def test_hccn_tool(name: str, values_apart: Callable[[str], str], text: str) -> None:
    assert values_apart(text) == values_apart(sample(f"hccn_tool/{name}.txt"))


def test_the_ports_of_a_950() -> None:
    shown, real = hccn.ports(True), sample("hccn_tool/dev_info_a5.txt")
    assert shown.splitlines()[:3] == real.splitlines()[:3]
    bars = {tuple(found.start() for found in re.finditer(r"[|+]", line)) for line in shown.splitlines()}
    assert len(bars) == 1


def test_hccn_conf() -> None:
    settings = ["address", "netmask", "netdetect", "gateway", "send_arp_status", "tls_enable"]
    lines = [line.partition("=")[0] for line in hccn.conf(A2, 1).splitlines()]
    assert lines == [f"{setting}_{device}" for device in range(8) for setting in settings]
    assert {"address_0", "netmask_0", "tls_enable_0"} <= {
        line.partition("=")[0] for line in sample("hccn_conf/hccn_with_tls_enable.conf").splitlines()
    }


def test_addresses_of_atlas_training_are_the_official_example() -> None:
    addresses = [TRAINING.address(1, device)[0] for device in range(8)]
    assert addresses[:4] == [f"192.168.{net}.101" for net in range(100, 104)]
    assert addresses[4:] == [f"192.168.{net}.100" for net in range(100, 104)]


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=list(PRODUCTS))
def test_addresses_are_unique_and_no_router_has_one(product: Product) -> None:
    addresses = [product.address(host, n)[0] for host in range(1, 33) for n in range(product.devices)]
    assert len({*addresses}) == len(addresses)
    assert not {*addresses} & product.routers


SICK = ("A4025021", "8C03A000", "8C084E00")
ERRORS = from_cases(__file__, "ERRORS", tuple[str, ...])
PYTHON = Process("python3", 4242, 4590)
PORT = Chip("Warning", ("81078603",), ("node type=port, event state=link down",), (PYTHON,), 4410, 188.7)


def on(product: Product, host: int = 1, **sick: Chip) -> dict[str, str]:
    """The output of npu-smi on a host whose device N is `dN`."""
    chips: Chips = {device: sick.get(f"d{device}", Chip(idle_hbm_mb=0)) for device in range(product.devices)}
    return texts(product, host, chips)


def below(text: str, card: int) -> str:
    """The answer for one card."""
    return text.split(f"@ {card}\n")[1].split("@")[0]


SMI: list[tuple[str, Callable[[str], str], str]] = [
    ("m_910A", exact, on(TRAINING)["m"]),
    ("m_a3", exact, "".join(f"{line}\n" for line in on(A3)["m"].splitlines()[:7])),
    ("t_board_910A", keys, below(on(TRAINING)["board"], 0)),
    ("t_board_c0_910A", keys, below(on(TRAINING)["board"], 0)),
    ("t_ecc_910A", exact, below(on(TRAINING)["ecc"], 1)),
    ("t_usages_910A", keys, below(on(TRAINING)["usages"], 0)),
    ("t_common_910A", keys, below(on(TRAINING)["common"], 0)),
    ("t_health_ok_910A", exact, below(on(TRAINING)["health"], 0)),
    ("t_health_alarm_910A", exact, below(on(A2, d3=Chip("Alarm", SICK, ERRORS))["health"], 3)),
    ("t_health_a5", str.expandtabs, below(on(A950, d1=PORT)["health"], 1)),
    ("t_proc_mem_a5", str.expandtabs, below(on(A950, d1=PORT)["proc-mem"], 1)),
    ("t_spod_info_a3", dates, on(A3)["spod-info"].split("@ 0.0\n")[1].split("@")[0]),
]


@pytest.mark.parametrize(("name", "values_apart", "text"), SMI, ids=[case[0] for case in SMI])
def test_npu_smi(name: str, values_apart: Callable[[str], str], text: str) -> None:
    if name == "t_board_c0_910A":
        text = on(TRAINING)["board"].split("@ 0.0\n")[1].split("@")[0]
    assert values_apart(text).rstrip() == values_apart(sample(f"npu-smi/{name}.txt")).rstrip()


def test_table_of_two_dies_a_card() -> None:
    chips = {
        0: Chip(processes=(Process("", 700101, 37800), Process("", 700102, 130)), idle_hbm_mb=3122),
        1: Chip(processes=(Process("", 700102, 37790),), idle_hbm_mb=3158),
        2: Chip("Critical", idle_hbm_mb=3104, power=168.9),
        3: Chip("Warning", idle_hbm_mb=2870),
    }
    chips = {device: replace(chip, power=210.4) for device, chip in chips.items()}
    shown = texts(replace(A3, driver="25.2.1"), 1, chips)["info"]
    real = sample("npu-smi/info_a3_superpod_with_proc.txt")
    assert numbers(shown) == numbers(real)
    assert "41052/ 65536" in shown


def test_table_of_one_chip_a_card() -> None:
    shown = texts(replace(A2, chip="910B3"), 1, {n: Chip() for n in range(8)})["info"]
    real = sample("npu-smi/info_910b1_idle.txt").splitlines()
    assert numbers("\n".join(shown.splitlines()[:11])) == numbers("\n".join(real[:11]))


def test_table_of_a_950() -> None:
    product = replace(A950, chip="Ascend950")
    shown = texts(product, 1, {0: Chip(idle_hbm_mb=4401, power=190.1), 1: PORT})["info"]
    assert numbers(shown).replace("17 ", "9  ") == numbers(sample("npu-smi/info_a5_950.txt"))


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=list(PRODUCTS))
def test_tables_are_rectangular(product: Product) -> None:
    busy = Chip(processes=tuple(Process("python", 100000 + n, 30000) for n in range(9)))
    shown = on(product, d1=busy)["info"]
    assert len({len(line) for line in shown.splitlines()}) == 1
    assert shown.count("python") == 8


@pytest.mark.parametrize("kind", ["usages", "common"])
def test_additional_lines_of_an_a2(kind: str) -> None:
    shown, real = (
        keys(text).splitlines() for text in (below(on(A2)[kind], 4), sample(f"npu-smi/t_{kind}_910b1.txt"))
    )
    assert {*real} <= {*shown}
    assert {*shown} - {*keys(below(on(TRAINING)[kind], 4)).splitlines()}


def test_topology() -> None:
    shown, real = on(A2)["topo"].splitlines(), sample("npu-smi/t_topo_910b.txt").splitlines()
    assert shown[0].split()[-2:] == real[0].split()[-2:]
    assert shown[1].startswith("NPU0       X          HCCS       HCCS ")
    assert real[1].startswith("NPU0       X          HCCS       ")
    assert "Legend:" in shown


def test_a_card_that_dropped_off_is_not_in_any_text() -> None:
    chips = {device: Chip() for device in range(8) if device != 5}
    shown = texts(A2, 1, chips)
    assert shown["cards"] == "0 1 2 3 4 6 7\n"
    assert not [name for name, text in shown.items() if re.search(r"(?m)^(@ 5|\| 5 |\t5 |NPU5)", text)]


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=list(PRODUCTS))
def test_the_doctor_knows_the_product_by_its_pci_number(product: Product) -> None:
    bus = f"0100\t{product.pci}\t0\n"
    assert held(DEVICES, {"/proc/bus/pci/devices": bus, "/dev/davinci0": ""}).product == product.name
