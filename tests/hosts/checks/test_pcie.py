"""The PCIe links of devices: one on one of three hosts is narrow, as emulated files of the kernel show it."""

from collections.abc import Mapping

import pytest

from tests.lab.gpus import GpuHost
from tests.lab.shadow import Tree
from tests.support.cases import from_cases
from tests.support.faults import ALONE, assert_healthy, assert_only
from tests.support.gpu_faults import GpuExaminer, gpu_examiner, victim
from tests.support.npu_faults import assert_says

DEVICES = "/sys/bus/pci/devices"
CARD = "0000:ba:00.0"
Place = tuple[int, int, str, str]
"""Lanes, of how many; speed, of which."""
FULL: Place = (16, 16, "32.0", "32.0")
CARDS = (*ALONE, "--expect", "memlock_mb=0")

examine = gpu_examiner


def gpu_at(index: int) -> str:
    return f"0000:{0x19 + 16 * index:02x}:00.0"


def plug(host: GpuHost, places: Mapping[str, Place], ports: Mapping[str, Place]) -> None:
    """Eight GPUs and a card, each below a port of its own."""
    tree: dict[str, Tree] = {}
    links = []
    for address in (*map(gpu_at, range(8)), CARD):
        kind = ("0x020700", "0x15b3", "0x1021") if address == CARD else ("0x030200", "0x10de", "0x2330")
        port = f"{address[:-4]}01.0"
        own = _files(places.get(address, FULL), *kind)
        above = _files(ports.get(address, FULL), "0x060400", "0x1000", "0xc030")
        tree[port] = {**above, address: own}
        links.append(f"ln -sfn {port}/{address} {DEVICES}/{address}")
    host.host.shadow_dir(DEVICES, tree)
    host.host.do("\n".join(links))


def _files(place: Place, kind: str, vendor: str, device: str) -> dict[str, str]:
    lanes, of_lanes, speed, of_speed = place
    return {
        "class": f"{kind}\n",
        "vendor": f"{vendor}\n",
        "device": f"{device}\n",
        "current_link_width": f"{lanes}\n",
        "max_link_width": f"{of_lanes}\n",
        "current_link_speed": f"{speed} GT/s PCIe\n",
        "max_link_speed": f"{of_speed} GT/s PCIe\n",
    }


Case = tuple[dict[str, Place], dict[str, Place], list[int], tuple[str, ...]]
FAULTS = from_cases(__file__, "FAULTS", dict[str, Case])
SOUND = from_cases(__file__, "SOUND", dict[str, tuple[dict[str, Place], dict[str, Place], bool]])


@pytest.mark.parametrize("name", FAULTS)
def test_found(name: str, examine: GpuExaminer) -> None:
    places, ports, gpus, says = FAULTS[name]
    bad = victim(examine.gpus, name)
    for host in examine.gpus:
        plug(host, places if host is bad else {}, ports if host is bad else {})
    host_name = bad.host.name
    devices = [(host_name, index) for index in gpus]
    (found,) = assert_only(examine(*CARDS), "pcie-link-slow", [host_name], devices=devices)
    assert_says([found], *says, "LnkSta", "lspci -vvs 0000:")


@pytest.mark.parametrize("name", SOUND)
def test_sound(name: str, examine: GpuExaminer) -> None:
    places, ports, everywhere = SOUND[name]
    odd = victim(examine.gpus, name)
    for host in examine.gpus:
        if name == "an idle GPU saves power":
            host[3]["pstate"] = "P8"
        plug(host, *((places, ports) if everywhere or host is odd else ({}, {})))
    assert_healthy(examine(*CARDS))
