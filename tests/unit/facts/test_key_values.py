"""Outputs of device tools that no fact reads: the generic readers understand them too."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.facts.key_values import cells, fields, pairs, table, value_of
from tests.support.captures import SAMPLES, sample
from tests.support.limits import within
from tests.support.paths import ROOT

PAIRS: dict[str, Mapping[str, str]] = {
    "hccn_tool/bandwidth_g": {"bandwidth tx": "0.00 MB/sec", "bandwidth rx": "0.00 MB/sec"},
    "hccn_tool/cfg_recovery_one_ok": {"dev": "0 recovery success"},
    "hccn_tool/duplex_g": {"duplex": "Full"},
    "hccn_tool/fec_g_none": {"fec mode": "no FEC mode"},
    "hccn_tool/fec_g_rs": {"fec mode": "rs FEC mode"},
    "hccn_tool/hw_stats_g": {"pd_alloc": "3", "mr_alloc": "12", "ceqe": "7"},
    "hccn_tool/mac_g": {"mac addr": "84:46:fe:00:00:01"},
    "hccn_tool/mtu_g": {"mtu": "1500"},
    "hccn_tool/process_g_exist": {"device hccp process": "exist"},
    "hccn_tool/process_g_not_exist": {"device hccp process": "not exist"},
    "hccn_tool/status_g": {"speed": "100000Mb/s", "duplex": "Full", "supports auto-negotiation": "No"},
    "hccn_tool/vnic_g": {
        "vnic link status": "UP",
        "vnic ipaddr": "192.168.2.199",
        "vnic netmask": "255.255.255.0",
    },
    "hccn_tool/roce_test_ib_send_bw_sender_a3": {
        "dual-port": "OFF",
        "device": "hns_2",
        "transport type": "IB",
        "link type": "Ethernet",
        "gid index": "1",
    },
    "npu-smi/l_a5": {"total count": "2", "npu id": "0", "serial number": "EXAMPLE0001"},
    "npu-smi/t_board_910A": {"npu id": "0", "software version": "23.0.5", "pcie bus info": "0000:61:00.0"},
    "npu-smi/t_board_c0_910A": {
        "chip name": "910A",
        "vdie id": "42C711D4 20B03704 4A10C8D4 14CC040A D2102003",
    },
    "npu-smi/t_common_910A": {"aicore count": "30", "npu real-time power(w)": "71.7"},
    "npu-smi/t_common_910b1": {"aicore count": "20", "temperature(c)": "43", "chip name": "mcu"},
    "npu-smi/t_current_fault_event_a5": {
        "fault event count": "1",
        "fault event information": "event id=0x81078603, severity=1, node type ex=1, node id=2, "
        "sub node type ex=0, sub node id=0",
    },
    "npu-smi/t_health_ok_910A": {"health status": "OK", "error code": "NA", "error information": "NA"},
    "npu-smi/t_proc_mem_a5": {
        "npu id": "1",
        "process id": "4242",
        "process name": "python3",
        "process memory(mb)": "4590",
    },
    "npu-smi/t_usages_910A": {"hbm capacity(mb)": "31129", "aicpu usage rate(%)": "0", "chip id": "0"},
    "npu-smi/t_usages_910b1": {"hbm capacity(mb)": "65536", "aivector usage rate(%)": "1"},
}
WORDS = r"\s+"
TABLES: dict[str, tuple[str, int, Mapping[str, str]]] = {
    "hccn_tool/route_g": (WORDS, 4, {"Destination": "10.20.0.0", "Flags": "U", "Iface": "eth2"}),
    "hccn_tool/pfc_g": (WORDS, 1, {"priority": "enabled", "4": "1", "5": "0"}),
    "npu-smi/m_910A": ("", 8, {"NPU ID": "1", "Chip Logic ID": "1", "Chip Name": "Ascend 910A"}),
    "npu-smi/m_a5": ("", 2, {"NPU ID": "1", "Slot ID": "4", "Chip Phy-ID": "1", "Chip Name": "Ascend950"}),
    "npu-smi/m_a3": ("", 6, {"NPU ID": "0", "Chip ID": "1", "Chip Logic ID": "1", "Chip Phy-ID": "1"}),
    "npu-smi/t_topo_910b": ("", 3, {"": "NPU1", "NPU0": "HCCS", "NPU2": "SYS", "CPU Affinity": "24-47"}),
}
"""How cells are separated, the number of rows, and the content of the second (or only) one."""
NOTHING = (
    "hccn_tool/busy",
    "hccn_tool/hccs_ping_a3_ok",
    "hccn_tool/hccs_ping_a3_loss",
    "hccn_tool/invalid_device_id.stderr",
    "hccn_tool/ip_g_empty",
    "hccn_tool/roce_test_ib_send_bw_receiver_waiting_a3",
    "hccn_tool/optical_control_link_unreachable.stderr",
    "hccn_tool/set_ok",
    "npu-smi/t_spod_info_not_supported",
    "npu-smi/t_topo_not_supported",
)


@pytest.mark.parametrize("name", PAIRS)
def test_keys_and_values(name: str) -> None:
    found = fields(sample(f"{name}.txt"))
    assert {key: found.get(key) for key in PAIRS[name]} == PAIRS[name]


@pytest.mark.parametrize("name", TABLES)
def test_rows_and_columns(name: str) -> None:
    gap, count, second = TABLES[name]
    rows = table(sample(f"{name}.txt"), gap) if gap else table(sample(f"{name}.txt"))
    assert len(rows) == count
    row = rows[min(1, count - 1)]
    assert {key: row.get(key) for key in second} == second


@pytest.mark.parametrize("name", NOTHING)
def test_texts_without_keys_or_tables(name: str) -> None:
    text = sample(f"{name}.txt")
    assert {key: value for key, value in pairs(text) if value} == {}
    assert table(text) == []


@pytest.mark.parametrize(
    ("name", "count"), [("lspci_grep_acce_910A_8cards", 8), ("lspci_grep_acce_910A_7of8", 7)]
)
def test_what_is_on_the_bus(name: str, count: int) -> None:
    found = dict(pairs(sample(f"lspci/{name}.txt")))
    assert len(found) == count
    assert all("Huawei" in value and value.endswith("Device d801 (rev 20)") for value in found.values())


def test_the_bus_with_classes() -> None:
    found = dict(pairs(sample("lspci/lspci_nn_nvidia_a100.txt")))
    assert [key for key, value in found.items() if "3D controller" in value] == ["0001", "0002"]


def test_device_files() -> None:
    (line,) = sample("hccn_conf/dev_listing_910b.txt").splitlines()
    assert cells(line) == [*(f"/dev/davinci{number}" for number in range(4)), "/dev/davinci_manager"]
    lines = sample("hccn_conf/ls_l_hisi_hdc_devmm_svm.txt").splitlines()
    assert [cells(line)[-1] for line in lines] == ["/dev/hisi_hdc", "/dev/devmm_svm"]


def test_every_sample_is_read_by_a_test() -> None:
    parsers = (ROOT / "tests/unit/facts/ascend").glob("*.py")
    calls = ROOT / "tests/process/facts/test_device_tools.py"
    read = "".join(path.read_text() for path in (*parsers, calls))
    for folder in ("hccn_tool", "npu-smi"):
        for path in (SAMPLES / folder).glob("*.txt"):
            name = f"{folder}/{path.stem}"
            here = name in PAIRS or name in TABLES or name in NOTHING
            assert here or path.stem in read or path.stem.startswith(("net_health_g_", "ping_g_")), name


def test_pairs() -> None:
    text = "a : 1\n[devid 3]  b:2  Long name (%) :  3\n\t: goes on\nno pair\nc:\na:4\n12:30"
    assert list(pairs(text)) == [
        *(
            ("a", "1"),
            ("b", "2"),
            ("Long name (%)", "3"),
            ("Long name (%)", "goes on"),
            ("c", ""),
            ("a", "4"),
        ),
        ("12", "30"),
    ]
    assert fields(text)["a"] == "1"
    assert value_of(text, "none", "long name (%)") == "3"


def test_a_table_begins_where_two_lines_have_the_same_columns() -> None:
    text = "A title of  two\n\nA  B  C\n1  2  3\n4  5\n6  7  8\n"
    assert table(text) == [{"A": "1", "B": "2", "C": "3"}, {"A": "6", "B": "7", "C": "8"}]
    assert table("A  B\n\nx") == []


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=300))
def test_any_text(text: str) -> None:
    assert all(isinstance(value, str) for pair in pairs(text) for value in pair)
    assert all(len(row) > 1 for row in table(text) if len(set(row)) == len(row))


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["a", " ", "\t", ":", "a:", "a  ", "  a:", "|", "| ", "[devid 1]", "\n", "a  b\n"]
)
def test_long_text_is_read_soon(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    with within(5):
        assert sum(1 for _ in pairs(text)) >= 0
        assert len(table(text)) >= 0
