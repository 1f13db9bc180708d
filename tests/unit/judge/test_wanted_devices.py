"""A job that is to have devices is not examined over gloo in silence; a job for CPUs stays healthy."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest

from doctor.job.wishes import JobWishes
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_exam, load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.model import Backend, Finding, SourcedValue, Status
from tests.support.cases import from_cases
from tests.support.recordings import heard, recording, report, syllabus

NAMES = ("node1", "node2")
POD: dict[str, Any] = {"view": {"/proc/1/cgroup": "0::/kubepods.slice/pod1"}}
PYTHON = "python 3.11.2 /opt/train/bin/python\n"
CPU = f"{PYTHON}package torch 2.5.1+cpu\nbuilt __version__ 2.5.1+cpu\nbuilt cuda None\nbuilt hip None\n"
CUDA = f"{PYTHON}package torch 2.5.1\nbuilt __version__ 2.5.1+cu124\nbuilt cuda 12.4\nbuilt hip None\n"
PYTHONS = from_cases(__file__, "PYTHONS", dict[str, str])
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
    expect: dict[str, str] | None = None,
    **more: Any,
) -> Report:
    own = {name: heard(n, NAMES, environment=env, python=python, **more) for n, name in enumerate(NAMES, 1)}
    made = recording(NAMES, heard=own, command=command, wishes=wishes or JobWishes())
    return report(replace(made, expect=expect or {}))


def about_devices(of: Report) -> list[Finding]:
    names = ("gpu-missing", "amd-missing", "device-missing", "launch-devices-absent")
    return [each for each in of.findings if each.check in names]


def ranks(count: int, source: str = "--ranks-per-host") -> JobWishes:
    return JobWishes(ranks_per_host=SourcedValue(count, source))


def allocated(**variables: str) -> JobWishes:
    return replace(ranks(8, "slurm"), allocated=variables)


@dataclass(frozen=True, slots=True)
class Asked:
    """A job and its hosts, and what is said about their devices. UUIDS stands for those of eight GPUs."""

    env: str = ""
    python: Literal["cpu", "cuda", "rocm", "torch_npu", "mindspore"] = "cpu"
    command: str = "preflight"
    wishes: JobWishes = field(default_factory=JobWishes)
    pod: bool = False
    on_bus: bool = False
    """Whether GPUs are on the PCI bus."""
    cann: bool = False
    check: str = "gpu-missing"
    says: str = ""

    def seen(self, **changed: Any) -> Report:
        more: dict[str, Any] = {
            **(POD if self.pod else {}),
            **({"devices": GPUS_ON_BUS} if self.on_bus else {}),
            **({"versions": CANN} if self.cann else {}),
        }
        asked = more | {"wishes": self.wishes, "command": self.command} | changed
        return seen(self.env.replace("UUIDS", UUIDS), PYTHONS[self.python], **asked)


ASKED = from_cases(__file__, "ASKED", dict[str, Asked])


@pytest.mark.parametrize("case", ASKED)
def test_devices_that_the_job_is_to_have_are_missing(case: str) -> None:
    job = ASKED[case]
    done = job.seen()
    (found,) = about_devices(done)
    assert (done.exit_code, found.check, found.status, found.hosts) == (1, job.check, Status.FAIL, NAMES)
    assert job.says in found.expected
    assert "if the job trains on CPUs: --backend gloo" in found.expected


@pytest.mark.parametrize("case", ASKED)
def test_a_job_that_is_said_to_train_on_cpus_needs_none(case: str) -> None:
    done = ASKED[case].seen(wishes=replace(ASKED[case].wishes, backend=GLOO))
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


OPEN = from_cases(__file__, "OPEN", dict[str, Asked])


@pytest.mark.parametrize("case", OPEN)
def test_whether_the_job_needs_devices_is_asked(case: str) -> None:
    done = OPEN[case].seen()
    (found,) = about_devices(done)
    assert (done.exit_code, found.check, found.status) == (3, "gpu-missing", Status.UNKNOWN)
    assert found.summary.startswith(OPEN[case].says)
    assert "--backend gloo" in found.summary
    assert "--expect devices=8" in found.summary


@pytest.mark.parametrize("case", OPEN)
def test_the_answer_decides(case: str) -> None:
    on_cpus = OPEN[case].seen(wishes=replace(OPEN[case].wishes, backend=GLOO))
    assert about_devices(on_cpus) == []
    done = OPEN[case].seen(expect={"devices": "8"})
    (found,) = about_devices(done)
    assert (done.exit_code, found.check, found.status) == (1, "gpu-missing", Status.FAIL)
    assert found.expected.startswith("8, as expected of this host")


SOUND = from_cases(__file__, "SOUND", dict[str, Asked])


@pytest.mark.parametrize("case", SOUND)
def test_jobs_without_devices_are_healthy(case: str) -> None:
    done = SOUND[case].seen()
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
