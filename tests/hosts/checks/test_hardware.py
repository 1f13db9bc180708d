"""Parts of a machine that are missing or broken on one host, as emulated files of the kernel show it."""

import pytest

from tests.lab import Host, Lab
from tests.lab.shadow import Tree
from tests.support.faults import ALONE, Examiner, Fault, assert_healthy, assert_only, prove

EDAC = """
new=$(mktemp -d); mount -t tmpfs shadow "$new"
mc=$new/upper/edac/mc/mc0; mkdir -p "$mc" "$new/work"
echo "$1" >"$mc/ce_count"; echo "$2" >"$mc/seconds_since_reset"; echo 0 >"$mc/ue_count"
mount -t overlay -o "lowerdir=/sys/devices/system,upperdir=$new/upper,workdir=$new/work" s /sys/devices/system
umount -l "$new"
"""


def corrects_often(host: Host) -> None:
    host.do(EDAC, "500", "172800")


def lacks_a_disk(host: Host) -> None:
    host.shadow_dir("/sys/block", {"md5": {"md": {"degraded": "1\n", "sync_action": "recover\n"}}})


def lost_a_drive(host: Host) -> None:
    host.sysfs_class("nvme", {"nvme0": {"state": "live\n"}, "nvme3": {"state": "dead\n"}})


FAULTS = {
    "many corrected errors": Fault(
        "memory-errors",
        corrects_often,
        "warn",
        (r"mc0 \| fewer than 24 a day \| 500 in 2 days", "dmidecode"),
    ),
    "an array without a disk": Fault(
        "disk-gone", lacks_a_disk, "warn", (r"md5 \| all its disks \| 1 lacking, recover", "mdadm")
    ),
    "a dead drive": Fault("disk-gone", lost_a_drive, "warn", (r"nvme3 \| live \| dead",)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_found(name: str, examine: Examiner) -> None:
    prove(FAULTS[name], name, examine)


def servers(lab: Lab, maker: str = "Dell Inc.", odd: str = "") -> None:
    """All hosts are machines of one model; the kernel of the first was perhaps started otherwise."""
    for host in lab:
        plate = {"sys_vendor": f"{maker}\n", "product_name": "PowerEdge XE9680\n", "bios_version": "2.1.8\n"}
        host.sysfs_class("dmi", {"id": plate})
        options = odd if odd and host.name == "node1" else "iommu=pt quiet"
        host.shadow("/proc/cmdline", f"BOOT_IMAGE=/vmlinuz root=UUID=0{host.spec.index} ro {options}\n")


def memory(host: Host, gigabytes: int) -> None:
    total = gigabytes << 20
    host.shadow("/proc/meminfo", f"MemTotal: {total} kB\nMemFree: {total} kB\nMemAvailable: {total} kB\n")


def test_a_module_is_missing(lab: Lab, examine: Examiner) -> None:
    servers(lab)
    for host in lab:
        memory(host, 1536 if host.name == "node2" else 2016 - host.spec.index)
    (found,) = assert_only(examine(*ALONE), "memory-missing", ["node2"], "warn")
    assert "1536 GB" in found["actual"]
    assert "dmidecode" in " ".join(found["remedy"]["commands"])


def test_processors_are_off(lab: Lab, examine: Examiner) -> None:
    servers(lab)
    for host in lab:
        host.shadow("/sys/devices/system/cpu/online", "0-1\n" if host.name == "node3" else "0-3\n")
    (found,) = assert_only(examine(*ALONE), "memory-missing", ["node3"], "warn")
    assert "fewer processors" in found["summary"]


def test_a_kernel_that_was_started_otherwise(lab: Lab, examine: Examiner) -> None:
    servers(lab, odd="iommu=on pci=noacs token=x")
    (found,) = assert_only(examine(*ALONE), "boot-differs", ["node1"], "warn")
    assert (found["expected"], found["actual"]) == ("iommu=pt, as on 3 hosts", "iommu=on pci=noacs")
    lab["node1"].shadow("/sys/class/dmi/id/bios_version", "1.0.0\n")
    both = assert_only(examine(*ALONE), "boot-differs", ["node1"], "warn")
    assert sorted(each["actual"] for each in both) == ["1.0.0", "iommu=on pci=noacs"]


def test_another_microcode(lab: Lab, examine: Examiner) -> None:
    servers(lab)
    for host in lab:
        version = "0x2b000461" if host.name == "node2" else "0x2b000603"
        runs_microcode(host, version, "008F")
    (found,) = assert_only(examine(*ALONE), "boot-differs", ["node2"], "warn")
    assert (found["expected"], found["actual"]) == ("0x2b000603, as on 3 hosts", "0x2b000461")


def test_another_processor_in_a_machine_of_the_model(lab: Lab, examine: Examiner) -> None:
    servers(lab)
    for host in lab:
        newer = host.name == "node2"
        runs_microcode(host, "0x21000283" if newer else "0x2b000603", "00CF" if newer else "008F")
    assert_healthy(examine(*ALONE))


def runs_microcode(host: Host, version: str, model: str) -> None:
    kind = f"cpu:type:x86,ven0000fam0006mod{model}:feature:,0000\n"
    tree: Tree = {"modalias": kind, "cpu0": {"microcode": {"version": f"{version}\n"}}}
    host.shadow_dir("/sys/devices/system/cpu", tree)


def test_machines_that_are_alike(lab: Lab, examine: Examiner) -> None:
    servers(lab)
    assert_healthy(examine(*ALONE))


def test_what_differs_and_is_no_fault(lab: Lab, examine: Examiner) -> None:
    """Virtual machines of any size; a few errors that were corrected; arrays that are only checked."""
    servers(lab, "QEMU")
    for host in lab:
        memory(host, 64 * (1 + host.spec.index))
        host.do(EDAC, "23", "600")
        host.shadow_dir("/sys/block", {"md0": {"md": {"degraded": "0\n", "sync_action": "check\n"}}})
    assert_healthy(examine(*ALONE))
