"""What npu-smi prints, in the tables of every product, and the facts parsed from it."""

import contextlib
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doctor.api import Capture, Fact, UnreadableOutput
from doctor.facts.ascend.npu_smi_card import NPU_ECC, NPU_SUPER_POD, SuperPodPlace
from doctor.facts.ascend.npu_smi_table import NpuProcess
from doctor.facts.ascend.npus import NPUS, Npu
from tests.support.captures import SAMPLES, printed
from tests.support.cases import cases
from tests.support.limits import within
from tests.unit.facts.test_hostile import tolerate

TEXTS = {path.stem: path.read_text() for path in sorted((SAMPLES / "npu-smi").glob("*.txt"))}


def framed(answers: Mapping[str, str]) -> str:
    return "".join(f"{text}\n@ {key} 0\n" for key, text in answers.items())


def npus(name: str, more: Mapping[str, str] | None = None) -> tuple[Npu, ...]:
    return printed(NPUS, framed({"all": TEXTS[name], **(more or {})}))


@cases
def test_every_box(name: str, devices: list[int], names: set[str], sick: dict[int, str]) -> None:
    found = npus(name)
    assert [npu.device for npu in found] == devices
    assert {npu.name for npu in found} == names
    assert {npu.device: npu.health for npu in found if npu.health != "OK"} == sick


@cases
def test_a_device(name: str, place: int, npu: Npu) -> None:
    assert npus(name)[place] == npu


def test_the_faults_of_a_device() -> None:
    found = npus("info_old_header", {"5/0": TEXTS["t_health_alarm_910A"]})[1]
    assert found.codes == ("A4025021", "8C03A000", "8C084E00")
    assert [error.split(",")[0] for error in found.errors] == [
        "ascend_monitor adda heart beat lost error",
        "node type=process-manager",
        "node type=adda",
    ]
    found = npus("info_a5_950", {"1/": TEXTS["t_health_a5"]})[1]
    assert (found.codes, found.errors) == (("81078603",), ("node type=port, event state=link down",))


@pytest.mark.parametrize("answer", ["t_health_ok_910A", "info_h", "t_topo_not_supported"])
def test_no_details_of_a_sick_device(answer: str) -> None:
    found = npus("info_old_header", {"5/0": TEXTS[answer]})[1]
    assert (found.health, found.codes, found.errors) == ("Alarm", (), ())


def test_details_that_were_cut_off() -> None:
    text = framed({"all": TEXTS["info_old_header"]}) + "@ 5/0 hung 4\n\tHealth Sta"
    assert [npu.health for npu in printed(NPUS, text)] == ["OK", "Alarm"]


@pytest.mark.parametrize("name", sorted(name for name in TEXTS if re.match(r"info_(910|a3|a5|old)", name)))
def test_a_box_without_a_chip_is_an_answer(name: str) -> None:
    """All devices have been lost, which is not the same as a tool that cannot answer."""
    whole = TEXTS[name]
    assert npus(name)
    bare = "\n".join(line for line in whole.splitlines() if not re.match(r"\|\s*\d", line))
    assert printed(NPUS, framed({"all": bare})) == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "npu-smi did not answer in time"),
        ("+----+\n| NPU", "npu-smi did not answer in time"),
        ("@ all hung 10\n", "npu-smi did not answer within 10 s"),
        ("Invalid card id.\n@ all 1\n", "npu-smi lists no device: Invalid card id. (exit code 1)"),
        (framed({"all": TEXTS["info_h"]}), "npu-smi lists no device: -c %d          Chip ID"),
        ("@ all 8\n", "npu-smi lists no device: npu-smi printed nothing (exit code 8)"),
    ],
)
def test_no_devices(text: str, reason: str) -> None:
    with pytest.raises(UnreadableOutput) as caught:
        printed(NPUS, text)
    assert str(caught.value) == reason


BOXES = [name for name in TEXTS if name.startswith("info_") and name != "info_h"]


@pytest.mark.parametrize("name", BOXES)
def test_new_lines_and_columns_are_ignored(name: str) -> None:
    plain = npus(name)
    more = []
    for line in TEXTS[name].splitlines():
        wider = line.replace("Hugepages-Usage(page)", "Hugepages-Usage(page)  Fan")
        more += [f"{wider} new |" if line.startswith("|") else line, "| something new |", "something new"]
    found = printed(NPUS, framed({"all": "\n".join(more)}))
    assert found == plain


def test_a_number_that_is_not_known_counts_as_none() -> None:
    text = TEXTS["info_a5_950"].replace("| 4590 ", "| NA   ")
    assert printed(NPUS, framed({"all": text}))[1].processes == (NpuProcess(4242, "python3", 0),)


def test_an_empty_row_among_the_processes_is_ignored() -> None:
    text = TEXTS["info_910A_8procs"]
    first, head, rest = text.partition("Process id")
    assert printed(NPUS, framed({"all": f"{first}{head}{rest}\n|\n||\n"})) == npus("info_910A_8procs")


def mapped(name: str, **answers: str) -> str:
    keys = {key.removeprefix("of_").replace("_", "/"): text for key, text in answers.items()}
    return framed({"map": TEXTS[name], **keys})


def test_memory_errors_are_listed_by_card() -> None:
    text = mapped("m_a3", of_0=TEXTS["t_ecc_910A"], of_1=TEXTS["t_ecc_two_chips"])
    assert printed(NPU_ECC, text) == {0: 0, 1: 3}


def test_super_pods_are_listed_by_device() -> None:
    spod = TEXTS["t_spod_info_a3"]
    other = spod.replace("33554437", "33554438")
    text = mapped("m_a3", of_0_0=spod, of_0_1=other, of_1_0=other, of_1_1=spod)
    own = SuperPodPlace(33554437, 2)
    found = printed(NPU_SUPER_POD, text)
    assert (list(found), found[0], found[3]) == ([0, 1, 2, 3], own, own)
    assert found[1] == SuperPodPlace(33554438, 2)


@pytest.mark.parametrize("lacking", ["SDID", "Super Pod ID"])
def test_a_place_in_a_super_pod_without_one_of_its_numbers_is_not_understood(lacking: str) -> None:
    cut = "\n".join(line for line in TEXTS["t_spod_info_a3"].splitlines() if lacking not in line)
    assert cut != TEXTS["t_spod_info_a3"]
    with pytest.raises(UnreadableOutput):
        printed(
            NPU_SUPER_POD, mapped("m_a3", **{f"of_{card}_{chip}": cut for card in (0, 1) for chip in (0, 1)})
        )


def test_a_product_without_super_pods_or_memory_errors() -> None:
    text = mapped("m_910A", of_0_0=TEXTS["t_spod_info_not_supported"])
    assert printed(NPU_SUPER_POD, text) == {}
    assert printed(NPU_ECC, mapped("m_910A", of_0="This device does not support querying ecc.")) == {}


@pytest.mark.parametrize(
    ("fact", "text", "reason"),
    [
        (NPU_ECC, "", "npu-smi did not answer in time"),
        (NPU_ECC, "@ map hung 4\n", "npu-smi did not answer within 4 s"),
        (NPU_ECC, framed({"map": "Usage: npu-smi info"}), "npu-smi lists no device: Usage: npu-smi info"),
        (
            NPU_ECC,
            mapped("m_a5", of_0=TEXTS["t_ecc_910A"]) + "@ 1 hung 4\n",
            "card 1: npu-smi did not answer within 4 s",
        ),
        (
            NPU_ECC,
            mapped("m_a5", of_0="Invalid card id.", of_1="HBM Double Bit Error Count : NA"),
            "card 0: Invalid card id.; card 1: HBM Double Bit Error Count : NA",
        ),
        (
            NPU_SUPER_POD,
            mapped("m_a3", of_0_0=TEXTS["t_spod_info_a3"], of_0_1="SDID : 1\nSuper Pod Size : 8"),
            "device 1: Super Pod Size : 8; devices 2-3: not asked: the time for npu-smi was used up",
        ),
    ],
)
def test_an_incomplete_set_of_answers_is_not_understood(fact: Fact[Any], text: str, reason: str) -> None:
    with pytest.raises(UnreadableOutput) as caught:
        printed(fact, text)
    assert str(caught.value) == reason


@pytest.mark.slow
@pytest.mark.parametrize("fact", [NPUS, NPU_ECC, NPU_SUPER_POD], ids=lambda fact: fact.name)
@settings(max_examples=200, deadline=None)
@given(
    first=st.sampled_from(sorted(TEXTS)),
    second=st.sampled_from(sorted(TEXTS)),
    cut=st.integers(0, 4000),
    noise=st.binary(max_size=40),
)
def test_any_part_of_an_answer_with_any_bytes(
    fact: Fact[Any], first: str, second: str, cut: int, noise: bytes
) -> None:
    key = {"npus": "all"}.get(fact.name, "map")
    text = TEXTS[first][:cut] + noise.decode(errors="replace") + TEXTS[first][cut:]
    whole = framed({key: text, "0": TEXTS[second], "1/0": TEXTS[second], "0/0": TEXTS[second]})
    for output in (whole, whole[:cut], text):
        with contextlib.suppress(UnreadableOutput):
            fact.parse(Capture(fact.name, 0, output))


@pytest.mark.slow
@pytest.mark.parametrize("fact", [NPUS, NPU_ECC, NPU_SUPER_POD], ids=lambda fact: fact.name)
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "| 0 a | OK | 1 |\n| 0 | 0:0 | 1 / 2 |\n",
            "| 0 0 | 1 | a | 2 |\n",
            "|",
            "| ",
            "0  0  0  a\n",
            "a:1\n",
        ),
        *("@ all 0\n", "@ 0/0 0\n", "@ 0 0\n", "1 /", "Error Code : 80E01801 ", ": ", "9" * 4400),
    ],
)
def test_long_text_is_read_soon(fact: Fact[Any], unit: str) -> None:
    text = unit * (200_000 // len(unit))
    with within(5):
        for head in (TEXTS["info_910A_8procs"], TEXTS["m_a3"]):
            tolerate(fact, f"{head}{text}\n@ {'all' if fact is NPUS else 'map'} 0\n{text}\n@ 0/0 0\n")
