"""Serial numbers, slots and switch ports, from facts that hosts are asked for anyway."""

from typing import Any

from doctor.api import Ask
from doctor.facts.ascend.npus import Npu
from doctor.facts.ascend.ports import Neighbour, Optics
from doctor.facts.gpus import Gpu, Gpus
from doctor.facts.network import Counters
from doctor.facts.system import NAMEPLATE, Nameplate
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.engine import Facts
from doctor.judge.hardware import Hardware, HardwarePart, hardware
from doctor.model import Host, MissingFact
from doctor.probe import HostAnswer, script
from tests.support.captures import held
from tests.support.cases import cases

DMI = "/sys/class/dmi/id/"
ANSWER = HostAnswer("node1", {}, {}, True, 0.0, 1.0)
PLATE = Nameplate("Maker", "Model", "S1", hidden=False, slots={"0000:c1:00": "5", "0000:8a:00": "PCIe 2"})


def nameplate(files: dict[str, str]) -> Nameplate:
    return held(NAMEPLATE, files)


def of(**known: Any) -> Hardware:
    values = {("node1", name.replace("_", "-")): value for name, value in known.items()}
    plan = draft((Host("node1", "10.0.0.1", data="10.0.0.1"),), JobWishes())
    return hardware(Facts({"node1": ANSWER}, values), plan)["node1"]


def test_what_the_firmware_says() -> None:
    files = {
        f"{DMI}sys_vendor": "Maker",
        f"{DMI}product_name": "Model",
        f"{DMI}product_serial": "S1",
        "/sys/bus/pci/slots/5/address": "0000:C1:00",
        "/sys/bus/pci/slots/PCIe 2/address": "0000:8a:00",
    }
    assert nameplate(files) == PLATE


@cases
def test_a_serial_number_that_only_root_may_read(files: dict[str, str], hidden: bool) -> None:
    """Then the file's name is there, without a text."""
    seen = nameplate(files)
    assert (seen.serial, seen.hidden) == ("", hidden)


def test_it_costs_no_process_on_a_host() -> None:
    asked = script([NAMEPLATE], Ask("node1"), "0123456789abcdef" * 2).stdin.decode()
    assert asked.count("grep -sH") == 1
    assert f"there {DMI}product_serial" in asked
    assert "cat /sys" not in asked


def test_an_npu_with_its_module_and_its_switch_port() -> None:
    texts = {"vendor name": "Hisense", "vendor part number": "LMQ", "vendor serial number": "V8"}
    found = of(
        nameplate=PLATE,
        npus=(Npu(3, 3, 0, "910B", "OK", "0000:C1:00.0", 0, 65536),),
        npu_optics={3: Optics(True, texts=texts)},
        npu_neighbours={3: Neighbour("200GE1/0/7", "Example Switch")},
    )
    assert (found.model, found.serial, found.hidden) == ("Maker Model", "S1", False)
    assert found.parts == {
        3: HardwarePart(
            "NPU 3",
            "910B",
            "0000:c1:00",
            "5",
            optics="Hisense LMQ serial number V8",
            neighbour="200GE1/0/7 of Example Switch",
        )
    }


def test_gpus_of_both_vendors() -> None:
    nvidia = of(nameplate=PLATE, gpus=Gpus((Gpu(0, "GPU-1", "H200", "0000:8a:00"),)))
    assert nvidia.parts == {0: HardwarePart("GPU 0", "H200", "0000:8a:00", "PCIe 2", "GPU-1")}
    amd = of(**{"amd-gpus": Gpus((Gpu(1, "", "MI300X", "0000:83:00", serial="0x11"),))})
    assert amd.parts == {1: HardwarePart("GPU 1", "MI300X", "0000:83:00", "", "0x11")}


def test_the_interface_of_the_job() -> None:
    link = {"eth1": Counters(1500, None, 0, "0a:00:00:00:00:01")}
    seen = of(addresses={"eth0": ("192.0.2.1",), "eth1": ("10.0.0.1",)}, links=link)
    assert seen.interface == "eth1, MAC 0a:00:00:00:00:01"


def test_a_host_that_told_nothing() -> None:
    assert of(npus=MissingFact("npus", "no time")) == Hardware()
