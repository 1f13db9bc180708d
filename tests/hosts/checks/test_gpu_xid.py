"""Lines of the NVIDIA driver in the kernel log: which GPU they accuse, and which lines accuse no GPU."""

import pytest

from tests.lab.gpus import GpuHost
from tests.support.batches import batches, prove_each
from tests.support.captures import sample
from tests.support.faults import ALONE, assert_healthy, assert_only, words
from tests.support.gpu_faults import GpuExaminer, GpuFault, gpu_examiner, victim
from tests.support.npu_faults import assert_says

DAY = 24 * 3600
LINE = "[{:>12.6f}] NVRM: Xid (PCI:0000:{}): {}, pid='<unknown>', name=<unknown>, {}\n"


examine = gpu_examiner


def logged(host: GpuHost, index: int, *numbers: int, hours_ago: float = 2, says: str = "") -> None:
    """The kernel log of a host that was booted two days ago."""
    bus = host[index]["pci.bus_id"][9:14].lower()
    at = 2 * DAY - hours_ago * 3600
    host.host.shadow("/proc/uptime", f"{2 * DAY}.00 9.00\n")
    host.host.kernel_log("".join(LINE.format(at, bus, number, says) for number in numbers))


def fallen_off(host: GpuHost) -> None:
    logged(host, 3, 79, says="GPU has fallen off the bus.")
    host[3].lost()


def on_an_old_driver(host: GpuHost, number: int) -> None:
    """A driver that does not report the recovery action."""
    host.driver_lacks("gpu_recovery_action")
    logged(host, 3, number)


FAULTS = GpuFault.table(__file__, "FAULTS", fallen_off, on_an_old_driver, logged)


@pytest.mark.parametrize("names", batches(FAULTS, size=2))
def test_found(names: list[str], examine: GpuExaminer) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


def test_xids_of_programs_and_old_xids_accuse_no_gpu(examine: GpuExaminer) -> None:
    """Xids that a program causes, and Xids that are two days old."""
    one, other = examine.gpus["node1"], examine.gpus["node3"]
    logged(one, 2, 13, 31, 43, 45)
    logged(other, 2, 79, 48, hours_ago=25)
    assert_healthy(examine(*ALONE))
    found = assert_only(
        examine(*ALONE, "--expect", "kernel_log_hours=26"),
        "gpu-xid",
        ["node3"],
        "warn",
        devices=[("node3", 2)],
    )
    assert {each["summary"][:6] for each in found} == {"Xid 79", "Xid 48"}


def test_a_captured_log_of_a_gpu_that_fell_off_the_bus(examine: GpuExaminer) -> None:
    """Lines without a time, about GPUs that are no longer at their place on the bus."""
    host = victim(examine.gpus, "met")
    text = sample("dmesg/xid_79_63.txt")
    host.host.kernel_log(text)
    outcome = examine(*ALONE)
    found = outcome.trouble
    assert {(each["check"], each["status"], each["subject"]) for each in found} == {
        ("gpu-xid", "fail", "GPU at 0000:05:00"),
        ("gpu-xid", "warn", "GPU at 0000:10:1c"),
    }
    assert all(each["hosts"] == [host.host.name] for each in found)
    assert all(evidence["text"] in text for each in found for evidence in each["evidence"])
    assert outcome.code == 1


def test_many_on_two_gpus(examine: GpuExaminer) -> None:
    host = victim(examine.gpus, "many")
    bus = [host[index]["pci.bus_id"][9:14].lower() for index in (0, 7)]
    lines = [LINE.format(9, bus[n % 2], 94, "Contained: SM (0x1).") for n in range(40)]
    host.host.shadow("/proc/uptime", f"{DAY}.00 9.00\n")
    host.host.kernel_log("".join(lines))
    name = host.host.name
    (found,) = assert_only(examine(*ALONE), "gpu-xid", [name], "warn", devices=[(name, 0), (name, 7)])
    assert_says([found], "GPUs 0,7", r"no such Xid \| 40 times", "24.0 h ago")
    assert len(found["evidence"]) == 3


def test_an_xid_is_only_a_warning_for_a_job_on_cpus(examine: GpuExaminer) -> None:
    host = victim(examine.gpus, "cpu")
    logged(host, 1, 79)
    found = assert_only(examine(*ALONE, "--backend", "gloo"), "kernel-log", [host.host.name], "warn")
    assert "a GPU reported a fault" in words(found[0])
