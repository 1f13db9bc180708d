"""A job that is to have devices is not examined over gloo in silence; a job for CPUs stays healthy."""

from dataclasses import replace
from typing import Any

import pytest

from doctor.job.parallel import Layout
from doctor.job.wishes import JobWishes
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_exam, load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.model import Backend, Finding, SourcedValue, Status
from tests.support.recordings import heard, recording, report, syllabus

NAMES = ("node1", "node2")
POD: dict[str, Any] = {"view": {"/proc/1/cgroup": "0::/kubepods.slice/pod1"}}
PYTHON = "python 3.11.2 /opt/train/bin/python\n"
CPU = f"{PYTHON}package torch 2.5.1+cpu\nbuilt __version__ 2.5.1+cpu\nbuilt cuda None\nbuilt hip None\n"
CUDA = f"{PYTHON}package torch 2.5.1\nbuilt __version__ 2.5.1+cu124\nbuilt cuda 12.4\nbuilt hip None\n"
ROCM = f"{PYTHON}package torch 2.5.1+rocm6.2\nbuilt cuda None\nbuilt hip 6.2.41133-dd7f95766\n"
TORCH_NPU = f"{PYTHON}package torch 2.5.1\npackage torch-npu 2.5.1\nbuilt cuda None\nhccl True\n"
CANN = {
    "/usr/local/Ascend/ascend-toolkit/latest/x86_64-linux/ascend_toolkit_install.info": "version=8.0.RC3\n"
}
GPUS_ON_BUS = {
    "/proc/bus/pci/devices": "".join(f"{n}b00\t10de2330\t0\tnvidia\n" for n in range(8)),
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5\n",
}
UUIDS = ",".join(f"GPU-8f4c9a52-0b1e-4a4e-9f5f-0c4a7b1d2e3{n}" for n in range(8))
GLOO = SourcedValue(Backend.GLOO, "--backend")


def seen(
    env: str = "",
    python: str = CPU,
    *,
    wishes: JobWishes | None = None,
    command: str = "preflight",
    **more: Any,
) -> Report:
    own = {name: heard(n, NAMES, environment=env, python=python, **more) for n, name in enumerate(NAMES, 1)}
    return report(recording(NAMES, heard=own, command=command, wishes=wishes or JobWishes()))


def about_devices(of: Report) -> list[Finding]:
    names = ("gpu-missing", "amd-missing", "device-missing", "launch-devices-absent")
    return [each for each in of.findings if each.check in names]


def ranks(count: int, source: str = "--ranks-per-host") -> JobWishes:
    return JobWishes(ranks_per_host=SourcedValue(count, source))


def allocated(**variables: str) -> JobWishes:
    return replace(ranks(8, "slurm"), allocated=variables)


ASKED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a device plugin": (
        {"env": f"NVIDIA_VISIBLE_DEVICES={UUIDS}", **POD},
        "gpu-missing",
        "8, for NVIDIA_VISIBLE_DEVICES",
    ),
    "a device plugin, on a host with GPUs": (
        {"env": f"NVIDIA_VISIBLE_DEVICES={UUIDS}", "devices": GPUS_ON_BUS, **POD},
        "gpu-missing",
        "8, for NVIDIA_VISIBLE_DEVICES",
    ),
    "Ascend's plugin": (
        {"env": "ASCEND_VISIBLE_DEVICES=0-7", **POD},
        "device-missing",
        "8, for ASCEND_VISIBLE_DEVICES=0-7",
    ),
    "Slurm, in a smoke run": (
        {"env": "SLURM_GPUS_ON_NODE=8", "command": "smoke"},
        "gpu-missing",
        "8, for SLURM_GPUS_ON_NODE=8",
    ),
    "a launch that chooses NPUs": (
        {"wishes": JobWishes(env={"ASCEND_RT_VISIBLE_DEVICES": "0,1"})},
        "device-missing",
        "2, for ASCEND_RT_VISIBLE_DEVICES=0,1",
    ),
    "a launch that chooses GPUs": (
        {"wishes": JobWishes(env={"CUDA_VISIBLE_DEVICES": "0,1"}), "env": "CUDA_VISIBLE_DEVICES=0,1"},
        "gpu-missing",
        "at least one, for CUDA_VISIBLE_DEVICES=0,1",
    ),
    "a plugin, with an empty variable of another vendor": (
        {"env": f"NVIDIA_VISIBLE_DEVICES={UUIDS}\nROCR_VISIBLE_DEVICES=", **POD},
        "gpu-missing",
        "8, for NVIDIA_VISIBLE_DEVICES",
    ),
    "Slurm, in an image for CUDA": (
        {"env": "SLURM_GPUS_ON_NODE=8\nNVIDIA_VISIBLE_DEVICES=all\nCUDA_VISIBLE_DEVICES=0"},
        "gpu-missing",
        "8, for SLURM_GPUS_ON_NODE=8",
    ),
    "Slurm, on the host": ({"env": "SLURM_GPUS_ON_NODE=8"}, "gpu-missing", "8, for SLURM_GPUS_ON_NODE=8"),
    "Slurm, for the job": (
        {"wishes": allocated(SLURM_GPUS_PER_NODE="a100:8")},
        "gpu-missing",
        "8, for SLURM_GPUS_PER_NODE=a100:8",
    ),
    "Slurm, unevenly": (
        {"wishes": allocated(SLURM_GPUS="12", SLURM_GPUS_ON_NODE="8")},
        "gpu-missing",
        "at least one, for SLURM_GPUS=12",
    ),
    "PBS": (
        {"wishes": allocated(CUDA_VISIBLE_DEVICES="0,1,2,3"), "command": "check"},
        "gpu-missing",
        "at least one, for CUDA_VISIBLE_DEVICES=0,1,2,3",
    ),
    "a check of a parallel plan": (
        {
            "env": "NVIDIA_VISIBLE_DEVICES=0,1",
            "command": "check",
            "wishes": JobWishes(layout=SourcedValue(Layout(dp=2), "--plan")),
        },
        "gpu-missing",
        "2, for NVIDIA_VISIBLE_DEVICES=0,1",
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_devices_that_the_job_is_to_have_are_missing(case: str) -> None:
    facts, check, expected = ASKED[case]
    done = seen(**facts)
    (found,) = about_devices(done)
    assert (done.exit_code, found.check, found.status, found.hosts) == (1, check, Status.FAIL, NAMES)
    assert expected in found.expected
    assert "if the job trains on CPUs: --backend gloo" in found.expected


@pytest.mark.parametrize("case", ASKED)
def test_a_job_that_is_said_to_train_on_cpus_needs_none(case: str) -> None:
    facts = ASKED[case][0]
    done = seen(**{**facts, "wishes": replace(facts.get("wishes") or JobWishes(), backend=GLOO)})
    assert (about_devices(done), done.plan.backend) == ([], GLOO)


def test_gpus_that_a_plugin_gave_and_that_are_gone() -> None:
    gone = {f"/dev/nvidia{n}": "" for n in range(7)}
    done = seen(f"NVIDIA_VISIBLE_DEVICES={UUIDS}", CUDA, devices={**GPUS_ON_BUS, **gone}, **POD)
    (found,) = about_devices(done)
    assert (found.check, found.status, found.actual) == ("gpu-missing", Status.FAIL, "7")
    assert found.expected == "8, for NVIDIA_VISIBLE_DEVICES"
    there = {**gone, "/dev/nvidia7": ""}
    assert (
        about_devices(seen(f"NVIDIA_VISIBLE_DEVICES={UUIDS}", CUDA, devices={**GPUS_ON_BUS, **there})) == []
    )


def test_pods_for_cpus_on_hosts_with_gpus() -> None:
    """They see the bus and the driver of their host, and images for CUDA set the variable."""
    done = seen("NVIDIA_VISIBLE_DEVICES=all", devices=GPUS_ON_BUS, **POD)
    (found,) = about_devices(done)
    assert (found.check, found.status) == ("gpu-missing", Status.UNKNOWN)
    named = JobWishes(backend=SourcedValue(Backend.NCCL, "--backend"))
    done = seen("NVIDIA_VISIBLE_DEVICES=all", devices=GPUS_ON_BUS, wishes=named, **POD)
    (found,) = about_devices(done)
    assert (found.check, found.status) == ("gpu-missing", Status.FAIL)


def test_what_slurm_counts_on_one_node_is_asked_of_that_node() -> None:
    """Nodes of an allocation may have different numbers of GPUs."""
    there = {
        "/proc/driver/nvidia/version": GPUS_ON_BUS["/proc/driver/nvidia/version"],
        **{f"/dev/nvidia{n}": "" for n in range(4)},
    }
    for node, hosts in (("node1", ["node1"]), ("node7", [])):
        wishes = JobWishes(allocated={"SLURM_GPUS_ON_NODE": "8", "SLURMD_NODENAME": node})
        found = about_devices(seen(python=CUDA, devices=there, wishes=wishes))
        failed = [each for each in found if each.status is Status.FAIL]
        assert [each.hosts for each in failed] == [(host,) for host in hosts]
        assert all(each.expected == "8, for SLURM_GPUS_ON_NODE=8" for each in failed)
    none = about_devices(seen(wishes=allocated(SLURM_GPUS_ON_NODE="8", SLURMD_NODENAME="node1")))
    assert {each.hosts: each.status for each in none} == {(name,): Status.FAIL for name in NAMES}
    each_says = about_devices(seen("SLURM_GPUS_ON_NODE=8", devices=there))
    assert [found.hosts for found in each_says] == [NAMES]


OPEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "torch for CUDA": ({"python": CUDA}, "gpu-missing", "torch is built for NVIDIA GPUs (cuda 12.4), and no"),
    "torch for CUDA in a pod": (
        {"python": CUDA, "env": "NVIDIA_VISIBLE_DEVICES=void", **POD},
        "gpu-missing",
        "tor",
    ),
    "torch for CUDA in Slurm": (
        {"python": CUDA, "wishes": allocated()},
        "gpu-missing",
        "torch is built for NV",
    ),
    "torch for ROCm": ({"python": ROCM}, "gpu-missing", "torch is built for AMD GPUs (hip 6.2.41133"),
    "torch_npu": (
        {"python": TORCH_NPU},
        "gpu-missing",
        "torch_npu is installed, and no host shows a device",
    ),
    "CANN": ({"versions": CANN}, "gpu-missing", "CANN is installed, and no host shows a device"),
    "eight ranks": ({"wishes": ranks(8)}, "gpu-missing", "--ranks-per-host 8 is typed, and no host shows"),
    "eight ranks in a check": ({"wishes": ranks(8), "command": "check"}, "gpu-missing", "--ranks-per-host 8"),
    "an image for CUDA": (
        {"env": "NVIDIA_VISIBLE_DEVICES=all", **POD},
        "gpu-missing",
        "NVIDIA_VISIBLE_DEVICES=all is set, and no host shows a device",
    ),
    "an image for CUDA, with an empty variable of another vendor": (
        {"env": "NVIDIA_VISIBLE_DEVICES=all\nHIP_VISIBLE_DEVICES=", **POD},
        "gpu-missing",
        "NVIDIA_VISIBLE_DEVICES=all is set, and no host shows a device",
    ),
    "AMD's runtime": (
        {"env": "AMD_VISIBLE_DEVICES=all", **POD},
        "gpu-missing",
        "AMD_VISIBLE_DEVICES=all is set, and no host shows a device",
    ),
    "a variable of a start file": (
        {"env": "CUDA_VISIBLE_DEVICES=0"},
        "gpu-missing",
        "CUDA_VISIBLE_DEVICES=0 is set, and no host shows a device",
    ),
    "an image for CUDA in a smoke run": (
        {"env": "NVIDIA_VISIBLE_DEVICES=all", "command": "smoke", **POD},
        "gpu-missing",
        "NVIDIA_VISIBLE_DEVICES=all is set, and no host shows a device",
    ),
    "torch for CUDA in a smoke run": ({"python": CUDA, "command": "smoke"}, "gpu-missing", "torch is built"),
    "three ranks and void": (
        {"wishes": ranks(3), "env": "NVIDIA_VISIBLE_DEVICES=void", **POD},
        "gpu-missing",
        "--",
    ),
}


@pytest.mark.parametrize("case", OPEN)
def test_whether_the_job_needs_devices_is_asked(case: str) -> None:
    facts, check, why = OPEN[case]
    done = seen(**facts)
    (found,) = about_devices(done)
    assert (done.exit_code, found.check, found.status) == (3, check, Status.UNKNOWN)
    assert found.summary.startswith(why)
    assert "--backend gloo" in found.summary
    assert "--expect devices=8" in found.summary


@pytest.mark.parametrize("case", OPEN)
def test_the_answer_decides(case: str) -> None:
    facts = OPEN[case][0]
    wishes = facts.get("wishes") or JobWishes()
    on_cpus = seen(**{**facts, "wishes": replace(wishes, backend=GLOO)})
    assert about_devices(on_cpus) == []
    done = report_expecting_8(**facts)
    (found,) = about_devices(done)
    assert (done.exit_code, found.check, found.status) == (1, OPEN[case][1], Status.FAIL)
    assert found.expected.startswith("8, as expected of this host")


def report_expecting_8(env: str = "", python: str = CPU, **more: Any) -> Report:
    wishes, command = more.pop("wishes", JobWishes()), more.pop("command", "preflight")
    own = {name: heard(n, NAMES, environment=env, python=python, **more) for n, name in enumerate(NAMES, 1)}
    made = recording(NAMES, heard=own, wishes=wishes, command=command)
    return report(replace(made, expect={"devices": "8"}))


SOUND: dict[str, dict[str, Any]] = {
    "a laptop": {},
    "torch for CPUs in a pod": POD,
    "two ranks": {"wishes": ranks(2)},
    "Slurm without GPUs": {"wishes": allocated()},
    "a job for no GPU": {"python": CUDA, "env": "CUDA_VISIBLE_DEVICES="},
    "a container whose devices CDI gives": {"env": "NVIDIA_VISIBLE_DEVICES=void", **POD},
    "a smoke run": {"command": "smoke"},
    "a smoke run for no GPU": {"python": CUDA, "env": "CUDA_VISIBLE_DEVICES=", "command": "smoke"},
    "a container for no GPU": {"python": CUDA, "env": "NVIDIA_VISIBLE_DEVICES=none", **POD},
    "torch for CUDA, and no job": {"python": CUDA, "command": "check"},
    "a CUDA image, and no job": {
        "python": CUDA,
        "command": "check",
        "env": "NVIDIA_VISIBLE_DEVICES=all",
        **POD,
    },
    "MindSpore for CPUs": {"python": f"{PYTHON}package mindspore 2.6.0\n", "wishes": ranks(2)},
}


@pytest.mark.parametrize("case", SOUND)
def test_jobs_without_devices_are_healthy(case: str) -> None:
    done = seen(**SOUND[case])
    assert about_devices(done) == []
    assert done.plan.backend == SourcedValue(Backend.GLOO, "no accelerator found")


def test_the_exam_of_a_node_knows_no_job() -> None:
    own = {
        n: heard(i, NAMES, environment="NVIDIA_VISIBLE_DEVICES=all", python=CUDA)
        for i, n in enumerate(NAMES, 1)
    }
    checks = find_checks().checks
    prepared = syllabus(checks, load_exam("node", checks))
    done = build_report(
        read_recording(recording(NAMES, heard=own, command="check")), prepared, load_remedies()
    )
    assert about_devices(done) == []
