"""NVIDIA GPUs themselves: each fault alone on one of three hosts with eight H100 each."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.gpus import GpuHost, Gpus
from tests.support.batches import batches, prove_each
from tests.support.faults import ALONE, assert_healthy, assert_only
from tests.support.gpu_faults import GpuExaminer, GpuFault, three_hosts, victim
from tests.support.npu_faults import assert_says

EIGHT = (*ALONE, "--expect", "devices=8")
NO_ACTION = ("gpu_recovery_action",)
"""Drivers before 555 do not know this field."""


@pytest.fixture(scope="module")
def gpus3() -> Iterator[Gpus]:
    with three_hosts() as gpus:
        yield gpus


@pytest.fixture
def examine(gpus3: Gpus, tmp_path: Path) -> GpuExaminer:
    return GpuExaminer(gpus3, tmp_path)


@pytest.mark.parametrize("exam", [(), ("--exam", "full"), EIGHT], ids=["preflight", "full", "expected"])
def test_healthy(exam: tuple[str, ...], examine: GpuExaminer) -> None:
    before = {host.host.name: host.host.snapshot() for host in examine.gpus}
    began = time.monotonic()
    outcome = examine(*exam)
    print(f"examined in {time.monotonic() - began:.1f} s")
    assert_healthy(outcome)
    assert "3 hosts · 24 ranks (8 a host, devices " in outcome.text
    assert "backend nccl (devices found)" in outcome.text
    assert {host["product"] for host in outcome.report["hosts"]} == {"nvidia"}
    for each in examine.gpus:
        host = each.host
        host.await_that(lambda host=host: not host.leftovers(before[host.name]), "clean end")  # type: ignore[misc]


def broken_library(host: GpuHost) -> None:
    """The driver was upgraded on disk while the old one stays loaded."""
    host.put(
        "no_driver",
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.127\n",
    )


def old_driver_with_errors(host: GpuHost) -> None:
    host.driver_lacks(*NO_ACTION)
    host[1].ecc(4)


def errors_that_ask_for_a_reset(host: GpuHost) -> None:
    host[1].ecc(4)
    host[1]["gpu_recovery_action"] = "Reset"


MISSING = {
    "one fewer since the last boot": GpuFault(
        "gpu-missing",
        lambda host: host.drop(3),
        says=(
            "GPUs are missing",
            r"8, as on 2 other hosts of the job \| 7",
            r"/dev/nvidia\*: GPUs 0-6",
            "7 GPUs listed",
            "lspci -d 10de:",
        ),
    ),
    "one fewer than expected": GpuFault(
        "gpu-missing", lambda host: host.drop(3), says=(r"8, as expected of this host \| 7",), args=EIGHT
    ),
    "one that the driver could not start": GpuFault(
        "gpu-missing",
        lambda host: host.drop(3, node=True),
        says=(
            "nvidia-smi lists fewer GPUs than there are device files",
            r"8, as many as device files \| 7",
            r"/dev/nvidia\*: GPUs 0-7",
        ),
    ),
    "no driver": GpuFault(
        "gpu-missing",
        lambda host: host.without_driver(),
        says=("the NVIDIA driver is not loaded", r"at least one \| none", "12 NVIDIA dev", "modprobe nvidia"),
    ),
    "no device files": GpuFault(
        "gpu-missing",
        lambda host: host.do("rm /dev/nvidia[0-9]*"),
        says=(r"8, as on 2 other hosts of the job \| none", r"/dev/nvidia\*: none", "version: 550.90.12"),
    ),
    "no GPU at all": GpuFault(
        "gpu-missing",
        lambda host: host.without_gpus(),
        says=("there is no GPU", r"8, as on 2 other hosts of the job \| none", "devices: 0 NVIDIA"),
    ),
    "no GPU at all where eight are expected": GpuFault(
        "gpu-missing",
        lambda host: host.without_gpus(),
        says=("there is no GPU", r"8, as expected of this host \| none"),
        args=EIGHT,
    ),
}

UNHEALTHY = {
    "lost": GpuFault(
        "gpu-unhealthy",
        lambda host: host[5].lost(),
        (5,),
        says=("fallen off the bus", "GPU 5", "gpu is lost", "Take the host out of the cluster"),
    ),
    "requires a reset": GpuFault(
        "gpu-unhealthy",
        lambda host: host[2].needs_reset(),
        (2,),
        says=("must be reset", "GPU 2", "gpu requires reset", "nvidia-smi --gpu-reset -i 2"),
    ),
    "cannot be reached": GpuFault(
        "gpu-unhealthy",
        lambda host: host[6].unknown(),
        says=("GPU at 0000:79:00", "Unable to determine the device handle", "Take the host out"),
        follows=("gpu-missing",),
    ),
    "unknown error": GpuFault(
        "gpu-unhealthy",
        lambda host: host[4].__setitem__("temperature.gpu", "[Unknown Error]"),
        (4,),
        "warn",
        ("cannot read the GPU", "unknown error"),
    ),
    "to be drained": GpuFault(
        "gpu-unhealthy",
        lambda host: host[0].__setitem__("gpu_recovery_action", "Drain and Reset"),
        (0,),
        says=("asks for an action", r"None \| Drain and Reset", "--gpu-reset -i 0"),
    ),
    "closed to programs": GpuFault(
        "gpu-unhealthy",
        lambda host: host[6].__setitem__("compute_mode", "Prohibited"),
        (6,),
        says=("no program can compute on the GPU", r"Default \| Prohibited", "nvidia-smi -c DEFAULT -i 6"),
    ),
    "driver and library differ": GpuFault(
        "gpu-unhealthy",
        broken_library,
        says=("of different versions", "version mismatch", "modinfo nvidia"),
        follows=("gpu-missing",),
        unknown=("gpu-busy", "gpu-ecc", "nvlink-down"),
    ),
}

BUSY = {
    "a process": GpuFault(
        "gpu-busy",
        lambda host: host[3].processes(("/opt/conda/bin/python", 41207, 70511)),
        (3,),
        says=(
            "processes of another job",
            r"no process \| python",
            "pid 41207 python 70511 MB",
            "/dev/nvidia3",
        ),
    ),
    "a process that barely uses it": GpuFault(
        "gpu-busy",
        lambda host: host[3].processes(("python", 41207, 300)),
        (3,),
        "warn",
        ("pid 41207 python 300 MB",),
    ),
    "memory of nobody": GpuFault(
        "gpu-busy",
        lambda host: host[6].memory(5000),
        (6,),
        says=(r"at most 1024 MB .* \| of a process that is not visible", "GPU 6: 5000 MB in use"),
    ),
}

ECC = {
    "errors on a driver that tells no action": GpuFault(
        "gpu-ecc",
        old_driver_with_errors,
        (1,),
        says=("could not be corrected", "GPU 1", "4 since the last reset", "--gpu-reset -i 1"),
    ),
    "errors of which the driver asks for nothing": GpuFault(
        "gpu-ecc", lambda host: host[1].ecc(4), (1,), "warn", ("4 since the last reset",)
    ),
    "errors of which the driver asks for a reset": GpuFault(
        "gpu-ecc", errors_that_ask_for_a_reset, (1,), follows=("gpu-unhealthy",)
    ),
    "rows that wait for a reset": GpuFault(
        "gpu-ecc",
        lambda host: host[7].remap(),
        (7,),
        "warn",
        ("will be replaced at the next reset", "remapped_rows.pending"),
    ),
    "rows that cannot be replaced": GpuFault(
        "gpu-ecc",
        lambda host: host[7].remap(failed=True),
        (7,),
        says=("could not be replaced", "remapped_rows.failure", "nvidia-bug-report.sh"),
    ),
}

FAULTS = MISSING | UNHEALTHY | BUSY | ECC


@pytest.mark.parametrize("names", batches(FAULTS, size=2))
def test_found(names: list[str], examine: GpuExaminer) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


def test_services_that_are_not_jobs_do_not_make_a_gpu_busy(examine: GpuExaminer) -> None:
    host = victim(examine.gpus, "no job")
    host[0].processes(("/usr/bin/nv-hostengine", 900, 300), ("nvidia-cuda-mps-server", 901, 30))
    host[1].memory(1000)
    host[2].memory(9000)
    assert_healthy(examine(*ALONE, "--expect", "gpu_idle_mb=9000"))


def test_a_process_on_several_gpus_is_reported_once(examine: GpuExaminer) -> None:
    host = victim(examine.gpus, "several")
    for index in (1, 2, 6):
        host[index].processes(("python", 700 + index, 40000))
    name = host.host.name
    (found,) = assert_only(examine(*ALONE), "gpu-busy", [name], devices=[(name, 1), (name, 2), (name, 6)])
    assert_says([found], "GPUs 1-2,6", "pid 701 python", "pid 706 python")


# GPUs that the job uses, according to its launch.


def chosen(examine: GpuExaminer, visible: str) -> tuple[str, ...]:
    """The arguments for a job that uses only these GPUs."""
    inventory = examine.folder / "inventory.yaml"
    inventory.write_text(f"launch: {{CUDA_VISIBLE_DEVICES: '{visible}'}}\n")
    return (*ALONE, "--inventory", str(inventory))


def test_faults_of_gpus_that_the_job_does_not_use_are_ignored(examine: GpuExaminer) -> None:
    host = victim(examine.gpus, "not used")
    host[4].lost()
    host[5].ecc(2)
    host[6].processes(("python", 5, 40000))
    host.drop(7)
    assert_healthy(examine(*chosen(examine, "0,1,2,3")))


def test_a_gpu_that_the_job_names_does_not_exist(examine: GpuExaminer) -> None:
    host = victim(examine.gpus, "named")
    host.drop(7)
    name = host.host.name
    found = assert_only(examine(*chosen(examine, "6,7")), "gpu-missing", [name], devices=[(name, 7)])
    assert_says(found, "CUDA_VISIBLE_DEVICES names a GPU that is not there", r"GPU 7 \|", "6,7")


# No host has a GPU, and nothing on the hosts shows that there should be one.


def test_no_driver_anywhere(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        host.without_driver()
    names = examine.gpus.lab.names
    outcome = examine(*ALONE)
    assert "backend nccl (on the PCI bus)" in outcome.text
    found = assert_only(outcome, "gpu-missing", names, devices=())
    assert_says(found, "the NVIDIA driver is not loaded", "if the job trains on CPUs: --backend gloo")
    assert_only(examine(*EIGHT), "gpu-missing", names, devices=())
    assert_healthy(examine(*ALONE, "--backend", "gloo"))


def test_no_gpu_anywhere(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        host.without_gpus()
    assert_healthy(examine(*ALONE))
    found = assert_only(examine(*EIGHT), "gpu-missing", examine.gpus.lab.names, devices=())
    assert_says(found, "there is no GPU", r"8, as expected of this host \| none")


def test_what_all_logins_hide_alike_is_missing_to_the_ranks(examine: GpuExaminer, tmp_path: Path) -> None:
    """Unless the launch names as many GPUs as there are ranks: that overrides the login."""
    script = tmp_path / "run.sh"
    launch = (
        "torchrun --nnodes=3 --nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=node1:29500 train.py\n"
    )
    for each in examine.gpus:
        each.host.sshd(SetEnv="CUDA_VISIBLE_DEVICES=0,0,1,1")
    try:
        script.write_text(launch)
        (found,) = examine("--launch", str(script)).report["findings"]
        names = [each.host.name for each in examine.gpus]
        assert (found["check"], found["status"], found["hosts"]) == ("devices-hidden", "fail", names)
        script.write_text(f"export CUDA_VISIBLE_DEVICES=0,1,2,3\n{launch}")
        assert_healthy(examine("--launch", str(script)))
    finally:
        for each in examine.gpus:
            each.host.sshd()


def test_split_gpus_are_not_enough_for_the_ranks(examine: GpuExaminer) -> None:
    (victim, *_) = examine.gpus
    for index in range(5):
        victim[index]["mig.mode.current"] = "Enabled"
    assert_healthy(examine(*ALONE, "--ranks-per-host", "3"))
    found = assert_only(examine(*ALONE, "--ranks-per-host", "4"), "gpu-split", [victim.host.name], devices=())
    assert_says(found, r"split into instances \(MIG\)", "3 of 8", "sudo nvidia-smi -mig 0")
