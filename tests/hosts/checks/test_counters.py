"""Counters that grow while a host is examined, as emulated files of the kernel and tools show them."""

import json
import re
from pathlib import Path

import pytest

from doctor import cli
from tests.hosts.checks.test_hardware import EDAC
from tests.lab import Host, Lab
from tests.lab.found import keep
from tests.support.faults import (
    ALONE,
    Examiner,
    Fault,
    assert_blamed,
    assert_healthy,
    assert_only,
    judged_again,
    prove,
)
from tests.support.gpu_faults import GpuExaminer, gpu_examiner

__all__ = ["gpu_examiner"]

FULL = (*ALONE, "--exam", "full")
GROWS = """
at=/sys/devices/system/edac/mc/mc0; n=500
while sleep 0.3; do n=$((n + 20)); echo $n >$at/new; mv $at/new $at/ce_count; done >/dev/null 2>&1 &
"""


def errors_of_memory(host: Host) -> None:
    host.do(EDAC, "500", "17280000")  # few, for as long as it is up
    host.do(GROWS)


FAULTS = {
    "errors of memory grow": Fault(
        "errors-growing", errors_of_memory, "warn", (r"mc0 \| none \| \d+ in \d+ s", "edac"), FULL
    )
}


@pytest.mark.parametrize("name", FAULTS)
def test_found(name: str, examine: Examiner) -> None:
    prove(FAULTS[name], name, examine)


def test_links_of_gpus(gpu_examiner: GpuExaminer) -> None:
    """High on all; on one GPU of one host they grow, and on another those of an NVLink do."""
    examine = gpu_examiner
    host = examine.gpus["node2"]
    host[3].counts(replays="@")
    host[5].counts(link_errors="@")
    seats = [("node2", 3), ("node2", 5)]
    found = assert_only(examine(*FULL), "errors-growing", ["node2"], "warn", devices=seats)
    assert sorted(each["subject"] for each in found) == ["GPU 3 at 0000:49:00", "GPU 5"]
    for each in examine.gpus:
        for gpu in each:
            gpu.counts()
    assert_healthy(examine(*FULL))


CARD, PORT = "0000:ba:00.0", "0000:b9:01.0"
TOTALS = {"correctable": "COR", "nonfatal": "NONFATAL", "fatal": "FATAL"}
DIES = """
at=/sys/bus/pci/devices/$1/aer_dev_fatal; n=5
while sleep 0.5; do n=$((n + 1)); echo "DLP $n
TOTAL_ERR_FATAL $n" >$at.new; mv $at.new $at; done >/dev/null 2>&1 &
"""


def aer(kind: str) -> dict[str, str]:
    return {"class": f"{kind}\n"} | {
        f"aer_dev_{name}": f"RxErr 5\nTOTAL_ERR_{word} 5\n" for name, word in TOTALS.items()
    }


def test_a_card_that_dies(lab: Lab, examine: Examiner) -> None:
    for host in lab:
        host.shadow_dir("/sys/bus/pci/devices", {PORT: {**aer("0x060400"), CARD: aer("0x020000")}})
        host.do(f"ln -sfn {PORT}/{CARD} /sys/bus/pci/devices/{CARD}")
    assert_healthy(examine(*FULL))
    lab["node3"].do(DIES, CARD)
    (found,) = assert_only(examine(*FULL), "errors-growing", ["node3"])
    assert found["subject"] == f"device {CARD}"


def test_a_file_server_that_loses_requests(examine: Examiner, tmp_path: Path) -> None:
    """Emulated: a recording in which the kernel of one host counts so; nothing can stand in for its file."""
    recording = json.loads(examine(*FULL).recording.read_bytes())
    counts = recording["heard"]["node2"]["captures"]["counts"]
    head, first, rest = re.split(r"^(boot .*\n)", counts["stdout"], maxsplit=1, flags=re.MULTILINE)
    mount = "nfs 10.0.0.9:/data /data"
    counts["stdout"] = (
        f"{head}{first}900 {mount} asked\n0 {mount} resent\n0 {mount} unanswered\n90 {mount} waited\n"
        f"{rest}\n990 {mount} asked\n12 {mount} resent\n4 {mount} unanswered\n99 {mount} waited\n"
    )
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(recording))
    code, report = judged_again(changed)
    keep(["--json", "replayed.json"], code, tmp_path, "")
    assert code == 0
    (found,) = (each for each in report["findings"] if each["status"] == "warn")
    assert (found["check"], found["hosts"]) == ("folder-server-slow", ["node2"])
    assert found["subject"] == "/data of 10.0.0.9:/data"
    assert "90 requests, 12 sent again, 4 not answered" in found["actual"]


def test_since_an_earlier_run(lab: Lab, examine: Examiner, tmp_path: Path) -> None:
    """They stand still while they are read, and grew since a baseline was made, or a run failed."""
    for host in lab:
        host.do(EDAC, "500", "17280000")
    good = examine(*FULL)
    assert_healthy(good)
    baseline = tmp_path / "good.yaml"
    assert cli.run(["baseline", str(good.recording), "--output", str(baseline)]) == 0
    since = (*FULL, "--baseline", str(baseline))
    assert_healthy(examine(*since))
    lab["node3"].do("echo 9000 >/sys/devices/system/edac/mc/mc0/ce_count")
    found = assert_blamed(examine(*since), "errors-growing", ["node3"], "warn", also=["memory-errors"])
    assert re.search(r"8500 in .* since the earlier run", found[0]["actual"])
    then, now = tmp_path / "then.json", tmp_path / "now.json"
    assert lab.doctor("check", "node3", *since, "--strict", "--save", str(then)).returncode == 1

    def again() -> dict[str, str]:
        lab.doctor("check", "--again", str(then), "--json", str(now))
        return {each["check"]: each["now"] for each in json.loads(now.read_bytes())["again"]}

    assert again()["errors-growing"] == "fixed"  # nothing since that run
    lab["node3"].do("echo 20000 >/sys/devices/system/edac/mc/mc0/ce_count")
    assert again()["errors-growing"] == "still there"
    lab["node3"].do("echo 7 >/sys/devices/system/edac/mc/mc0/ce_count")  # its driver was loaded again
    assert again() == {"errors-growing": "fixed", "memory-errors": "fixed"}


def test_many_that_stand_still(lab: Lab, examine: Examiner) -> None:
    for host in lab:
        host.do(EDAC, "500", "17280000")
    assert_healthy(examine(*FULL))
