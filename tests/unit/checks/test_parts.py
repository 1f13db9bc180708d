"""What a machine is made of, from the kernel's files; what cannot be read is unknown."""

from contextlib import suppress
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.errors import UnreadableOutput
from tests.support.captures import every_fact, held, printed

PARTS = every_fact()["parts"]
EDAC = "/sys/devices/system/edac/mc"
SERVER = {
    "/proc/meminfo": "MemTotal:       2113428276 kB\nMemFree:        1992294400 kB",
    "/proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz-6.8.0 root=UUID=1234 ro iommu=pt pci=realloc",
    "/sys/devices/system/cpu/online": "0-95,97,192-287",
    "/sys/class/dmi/id/bios_version": "2.1.8",
    "/sys/devices/system/cpu/cpu0/microcode/version": "0x2b000603",
    "/sys/devices/system/cpu/modalias": "cpu:type:x86,ven0000fam0006mod008F:feature:,0000,0001",
    "/sys/block/md0/md/degraded": "0",
    "/sys/block/md5/md/degraded": "1",
    "/sys/block/md5/md/sync_action": "recover",
    "/sys/class/nvme/nvme0/state": "live",
    "/sys/class/nvme/nvme1/state": "dead",
    f"{EDAC}/mc0/ce_count": "262",
    f"{EDAC}/mc0/seconds_since_reset": "86400",
    f"{EDAC}/mc1/ce_count": "0",
}


def test_a_server() -> None:
    assert astuple(held(PARTS, SERVER)) == (
        2113428276,
        193,
        "2.1.8",
        ("ven0000fam0006mod008F", "0x2b000603"),
        {"md0": (0, ""), "md5": (1, "recover")},
        {"nvme0": "live", "nvme1": "dead"},
        {"mc0": (262, 86400), "mc1": (0, 0)},
        ("BOOT_IMAGE=/boot/vmlinuz-6.8.0", "root=UUID=1234", "ro", "iommu=pt", "pci=realloc"),
    )


def test_a_virtual_machine_shows_nothing_of_it() -> None:
    assert astuple(held(PARTS, {})) == (0, 0, "", ("", ""), {}, {}, {}, ())


@pytest.mark.parametrize(
    ("kind", "version", "compared"),
    [
        ("ven0000fam0006mod008F", "0x2b000461", "ven0000fam0006mod008F"),
        ("ven0002fam0019mod0001", "0xa0011d1", "ven0002fam0019mod00010xa0011"),
        ("ven0002fam0019mod0001", "0xa001238", "ven0002fam0019mod00010xa0012"),
        ("ven0000fam0006mod008F", "0xffffffffffffffffffff", ""),
        ("", "0x2b000461", ""),
    ],
)
def test_with_which_machines_a_microcode_is_compared(kind: str, version: str, compared: str) -> None:
    cpu = "/sys/devices/system/cpu"
    own = held(PARTS, {f"{cpu}/modalias": f"cpu:type:x86,{kind}:x", f"{cpu}/cpu0/microcode/version": version})
    assert own.microcode[0] == compared


@given(st.dictionaries(st.sampled_from([*SERVER]), st.text(max_size=40)))
def test_anything_may_stand_in_the_files(changed: dict[str, str]) -> None:
    held(PARTS, SERVER | changed)


@given(st.text(max_size=200))
def test_anything_may_be_printed(text: str) -> None:
    with suppress(UnreadableOutput):
        printed(PARTS, text)
