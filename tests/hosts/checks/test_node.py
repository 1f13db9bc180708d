"""The exam `node`: every fault that may take a node out of service, each on a host of its own; and hosts that
only look faulty. `python -m tests.trials.node` looks at sound hosts many times.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from doctor.errors import EXIT_FAULT, EXIT_OK
from tests.lab import Lab, missing
from tests.support.cases import from_cases
from tests.support.faults import Examiner, Outcome, assert_consistent
from tests.support.paths import ROOT
from tests.support.verified import PRINTED
from tests.trials.node.acts import logged
from tests.trials.node.situation import HOSTS, Kind, Stage

NODE = ("--exam", "node")
FULL = ("umount /tmp; mount -t tmpfs -o size=200m tmp /tmp; fallocate -l 190m /tmp/core.4711",)


@dataclass(frozen=True, slots=True)
class NodeFault:
    check: str
    inject: Callable[[Stage], object]
    says: str = ""


def no_shm(stage: Stage) -> None:
    stage.host.do("umount /dev/shm; rmdir /dev/shm")


def lost_memory(stage: Stage) -> None:
    line = "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x12)"
    logged(stage.host, f"[89000.1] {line}\n")


def old_xid(stage: Stage) -> None:
    stage.gpu.driver_lacks("gpu_recovery_action")
    bus = stage.gpu[3]["pci.bus_id"][9:14].lower()
    line = f"NVRM: Xid (PCI:0000:{bus}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    logged(stage.gpu.host, f"[89000.1] {line}\n")


def errors(stage: Stage) -> None:
    stage.amd_gpu[1].uncorrected = 4
    stage.amd_gpu.tell()


def none_listed(stage: Stage) -> None:
    for _ in range(stage.amd_gpu.count):
        stage.amd_gpu.drop(0, node=True)


def failed_reset(stage: Stage) -> None:
    logged(stage.amd_gpu.host, "[89000.1] amdgpu 0000:65:00.0: amdgpu: GPU reset(3) failed\n")


FAULTS: Mapping[Kind, tuple[NodeFault, ...]] = {
    "plain": (
        NodeFault("tmp-not-writable", lambda on: on.host.do("mount -o remount,ro /tmp"), "/tmp cannot"),
        NodeFault(
            "tmp-not-writable", lambda on: on.host.do("mount -o remount,ro /dev/shm"), "/dev/shm cannot"
        ),
        NodeFault("tmp-not-writable", lambda on: on.host.do("chmod 755 /tmp"), "/tmp cannot"),
        NodeFault("tmp-not-writable", no_shm, "/dev/shm cannot"),
        NodeFault("disk-full", lambda on: on.host.do(*FULL), "/tmp is nearly full"),
        NodeFault("loopback-down", lambda on: on.host.link_down("lo")),
        NodeFault("memory-errors", lost_memory),
        NodeFault("clock-impossible", lambda on: on.host.clock(-1_700_000_000)),
        NodeFault("host-unreachable", lambda on: on.host.kill_sshd()),
    ),
    "gpus": (
        NodeFault("gpu-missing", lambda on: on.gpu.without_driver(), "driver is not loaded"),
        NodeFault("gpu-unhealthy", lambda on: on.gpu[2].needs_reset()),
        NodeFault("gpu-ecc", lambda on: on.gpu[7].remap(failed=True)),
        NodeFault("gpu-xid", old_xid),
        NodeFault("fabric-manager-down", lambda on: on.gpu.stop_fabric_manager()),
    ),
    "npus": (
        NodeFault("device-missing", lambda on: on.npu.do("rm -f /dev/davinci*"), "driver is not loaded"),
        NodeFault("device-unhealthy", lambda on: on.npu[3].health("Alarm", "80E18400")),
        NodeFault("device-link-down", lambda on: setattr(on.npu[4], "link_up", False)),
    ),
    "amd": (
        NodeFault("amd-missing", lambda on: on.amd_gpu.without_driver(), "driver is not loaded"),
        NodeFault("amd-unhealthy", none_listed),
        NodeFault("amd-ras", errors),
        NodeFault("amd-reset", failed_reset),
    ),
}
"""What concerns devices, the kernel's log and the clock is emulated."""
NODES = {kind: name for name, kind in HOSTS.items()}
ROUNDS = [
    {NODES[kind]: fault for kind, fault in zip(FAULTS, batch, strict=True) if fault}
    for batch in zip_longest(*FAULTS.values())
]


@pytest.fixture(scope="module")
def stage4() -> Iterator[Stage]:
    if reason := missing():
        pytest.skip(reason)
    with Lab(len(HOSTS)) as lab, closing(Stage.on(lab)) as stage:
        yield stage


@pytest.fixture
def stage(stage4: Stage) -> Iterator[Stage]:
    yield stage4
    stage4.reset()


def failed(outcome: Outcome) -> set[tuple[str, str]]:
    """Host and check of what is at fault, without what follows from it."""
    findings = [each for each in outcome.trouble if each["status"] in ("fail", "crash")]
    return {(host, each["check"]) for each in findings if not each["because"] for host in each["hosts"]}


def names(faults: Mapping[str, NodeFault]) -> str:
    return " + ".join(fault.check for fault in faults.values())


@pytest.mark.parametrize("faults", ROUNDS, ids=map(names, ROUNDS))
def test_a_fault_ends_with_1_and_names_its_host_alone(
    faults: Mapping[str, NodeFault], stage: Stage, tmp_path: Path
) -> None:
    for fault in faults.values():
        fault.inject(stage)
    outcome = Examiner(stage.lab, tmp_path)(*NODE)
    assert outcome.code == EXIT_FAULT
    assert failed(outcome) == {(host, fault.check) for host, fault in faults.items()}, outcome.text
    assert_consistent(outcome)
    for fault in faults.values():
        assert fault.says in outcome.text
    lines = {
        fault.check: line.strip()
        for fault in faults.values()
        for line in PRINTED.findall(outcome.text)
        if f" --only {fault.check} " in f"{line} "
    }
    assert lines.keys() == {fault.check for fault in faults.values()}, outcome.text
    # What is in the kernel's log stays there: such a line fails if it comes again.
    before = {c: EXIT_OK if "kernel_log_since=" in line else EXIT_FAULT for c, line in lines.items()}
    assert typed(stage.lab, lines) == before
    stage.reset()
    assert typed(stage.lab, lines) == dict.fromkeys(lines, EXIT_OK)


def typed(lab: Lab, lines: Mapping[str, str]) -> dict[str, int]:
    return {check: lab.doctor(*shlex.split(line)[1:]).returncode for check, line in lines.items()}


SOUND = from_cases(__file__, "SOUND", dict[str, str])


@pytest.mark.parametrize("name", SOUND)
def test_what_only_looks_like_a_full_disk_is_a_warning(name: str, stage: Stage, tmp_path: Path) -> None:
    stage.host.do(SOUND[name])
    outcome = Examiner(stage.lab, tmp_path)(*NODE)
    assert (outcome.code, failed(outcome)) == (EXIT_OK, set()), outcome.text
    assert outcome.trouble


DISK = from_cases(__file__, "DISK", str)
ON_DISK = from_cases(__file__, "ON_DISK", dict[str, str])


@pytest.mark.parametrize("name", ON_DISK)
def test_a_disk_to_which_the_kernel_stopped_writing(name: str, tmp_path: Path) -> None:
    """On this machine, which may be a container, in a mount namespace that ends with the test."""
    if reason := missing() or ("" if Path("/dev/loop-control").exists() else "no loop devices"):
        pytest.skip(reason)
    asked = f'HOME=$1/home exec "$2" -m doctor check --local {" ".join(NODE)} --only tmp-not-writable'
    words = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        f"{DISK}{ON_DISK[name]}\n{asked}",
        "sh",
        str(tmp_path),
        sys.executable,
    ]
    wide = {**os.environ, "COLUMNS": "400"}  # a long path is not broken
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, env=wide)
    shown = " ".join(done.stdout.split())
    went = f"the file system at {tmp_path}/home went read-only" in shown
    assert went == (name == "the kernel found an error"), done
    assert (f"{tmp_path}/home cannot be written to" in shown) == ("a person" in name), done
