"""NVIDIA GPUs themselves: each fault alone on one of three hosts with eight H100 each."""

import time
from pathlib import Path

import pytest

from tests.lab.gpus import GpuHost
from tests.support.batches import batches, prove_each
from tests.support.faults import ALONE, assert_healthy, assert_only
from tests.support.gpu_faults import GpuExaminer, GpuFault, gpu_examiner, victim
from tests.support.npu_faults import assert_says

EIGHT = (*ALONE, "--expect", "devices=8")
NO_ACTION = ("gpu_recovery_action",)
"""Drivers before 555 do not know this field."""


examine = gpu_examiner


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


def told_to_draw_less(host: GpuHost) -> None:
    for gpu in host[0], host[1]:
        gpu["power.limit"] = gpu["enforced.power.limit"] = "500.00"


def without_ecc(host: GpuHost) -> None:
    host[2]["ecc.mode.current"] = host[2]["ecc.mode.pending"] = "Disabled"


FAULTS = GpuFault.table(
    *(__file__, "FAULTS", broken_library, old_driver_with_errors, errors_that_ask_for_a_reset),
    *(told_to_draw_less, without_ecc),
)


@pytest.mark.parametrize("names", batches(FAULTS, size=2))
def test_found(names: list[str], examine: GpuExaminer) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


def test_what_is_alike_or_normal_under_load_accuses_no_gpu(examine: GpuExaminer) -> None:
    """A power limit that is reached or was set for all; ECC that all switched off; idle GPUs; set clocks."""
    for host in examine.gpus:
        host.driver_lacks("clocks_event_reasons.active") if host.number == 2 else None
        for gpu in host:
            gpu.works(reasons=(0x4, 0x2, 0x1, 0x10, 0x100, 0x0)[gpu.index % 6])
            gpu["power.limit"] = gpu["enforced.power.limit"] = "500.00"
            gpu["ecc.mode.current"] = gpu["ecc.mode.pending"] = "Disabled"
            gpu["vbios_version"] = f"96.00.{gpu.index % 2}0.00.01"
    assert_healthy(examine(*ALONE))


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


def test_a_launch_for_more_gpus_than_there_are_blames_no_host(examine: GpuExaminer) -> None:
    path = examine.folder / "run.sh"
    for options, says in (
        ("--nproc_per_node=16", "asks for 16 ranks on a host"),
        ("--nproc_per_node=1", "names NVIDIA GPU 8"),
    ):
        visible = "export CUDA_VISIBLE_DEVICES=8\n" if "=16" not in options else ""
        meet = "--rdzv_backend=c10d --rdzv_endpoint=node1:29500"
        path.write_text(f"{visible}torchrun --nnodes=3 {options} {meet} train.py\n")
        outcome = examine(*ALONE, "--launch", str(path))
        found = [each for each in outcome.trouble if "device" in each["check"] or "gpu" in each["check"]]
        assert [each["check"] for each in found] == ["launch-devices"]
        assert says in found[0]["summary"]
        assert (outcome.hosts("faulty"), outcome.code) == (set(), 1)


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
        assert (found["check"], found["status"], found["hosts"]) == ("devices-hidden", "fail", [])
        assert (
            found["summary"]
            == "CUDA_VISIBLE_DEVICES of the login leaves no NVIDIA GPUs to the 4 ranks of every host"
        )
        script.write_text(f"export CUDA_VISIBLE_DEVICES=0,1,2,3\n{launch}")
        assert_healthy(examine("--launch", str(script)))
        script.write_text(f"export CUDA_VISIBLE_DEVICES=0,1\n{launch}")
        outcome = examine("--launch", str(script))
        (found,) = outcome.report["findings"]
        assert (found["check"], found["status"], found["hosts"]) == ("launch-values", "fail", [])
        assert (outcome.hosts("faulty"), outcome.code) == (set(), 1), "the launch is wrong, and no host"
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
