"""Outputs of device tools that no fact reads: the generic readers understand them too."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.facts.key_values import cells, fields, pairs, table, value_of
from tests.support.captures import SAMPLES, sample
from tests.support.cases import cases, from_cases
from tests.support.limits import within
from tests.support.paths import ROOT

PAIRS = from_cases(__file__, "PAIRS", dict[str, Mapping[str, str]])
TABLES = from_cases(__file__, "TABLES", dict[str, tuple[str, int, Mapping[str, str]]])
"""How cells are separated, the number of rows, and the content of the second (or only) one."""
NOTHING = from_cases(__file__, "NOTHING", tuple[str, ...])


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


@cases
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
    folder = ROOT / "tests/unit/facts/ascend"
    calls = ROOT / "tests/process/facts/test_device_tools.py"
    read = "".join(path.read_text() for path in (*folder.glob("*.py"), *folder.glob("cases/*.yaml"), calls))
    for tool in ("hccn_tool", "npu-smi"):
        for path in (SAMPLES / tool).glob("*.txt"):
            name = f"{tool}/{path.stem}"
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
@cases
def test_long_text_is_read_soon(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    with within(5):
        assert sum(1 for _ in pairs(text)) >= 0
        assert len(table(text)) >= 0
