"""Parsers of versions, Python, environment, processes and the kernel log, on real output."""

import re
from dataclasses import replace
from importlib.metadata import requires

import pytest

from checks.software import OURS, library_unusable, torch_npu_unusable, version_drift
from doctor.api import Expect, Skip
from doctor.devices import AMD, NVIDIA, Vendor
from doctor.devices import ASCEND as ASCEND_ROW
from doctor.errors import UnreadableOutput
from doctor.facts.gpus import Gpu, Gpus
from doctor.facts.processes import KERNEL_LOG, PROCESSES
from doctor.facts.software import ENVIRONMENT, PYTHON, VERSIONS, Versions
from doctor.facts.system import Devices, FoundDevices
from doctor.job.launch.process_env import Launch
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.model import Backend, Host, Severity, SourcedValue
from tests.support.captures import held, printed, sample
from tests.support.cases import cases, cases_with, from_cases
from tests.support.recordings import heard, recording, report

ASCEND = "/usr/local/Ascend"
PLAN = draft([Host("node1", "node1")], JobWishes())
PS = from_cases(__file__, "PS", str)


def test_versions() -> None:
    versions = held(
        VERSIONS,
        {
            f"{ASCEND}/driver/version.info": sample("version/driver_version.info"),
            f"{ASCEND}/firmware/version.info": sample("version/firmware_version.info"),
            f"{ASCEND}/ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info": sample(
                "version/ascend_toolkit_install_8.3.RC2.info"
            ),
            f"{ASCEND}/nnae/latest/ascend_nnae_install.info": sample("version/ascend_nnae_install.info"),
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat",
            "/usr/local/cuda/version.json": '{\n "cuda" : {\n  "version" : "12.2.2"\n }\n}',
        },
    )
    assert versions.installed == {
        "driver": "23.0.7",
        "firmware": "7.1.0.11.220",
        "cann": "8.3.RC2",
        "nnae": "8.0.RC3",
        "nvidia-driver": "535.104.05",
        "cuda": "12.2.2",
    }
    assert versions.firmware_range == ("7.0.0", "7.1.99")


def test_nothing_installed() -> None:
    versions = held(VERSIONS, {})
    assert (versions.installed, versions.firmware_range) == ({}, None)


def test_the_open_nvidia_driver() -> None:
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build"
    assert held(VERSIONS, {"/proc/driver/nvidia/version": text}).installed == {"nvidia-driver": "550.54.15"}


def test_python() -> None:
    python = printed(
        PYTHON,
        "python 3.10.12 /opt/my env/bin/python3\npackage torch 2.1.0\npackage torch-npu 2.1.0.post8\n"
        "package torch 1.0\nnoise\n",
    )
    assert (python.path, python.version) == ("/opt/my env/bin/python3", "3.10.12")
    assert python.packages == {"torch": "2.1.0", "torch-npu": "2.1.0.post8"}, "the first on sys.path wins"


@cases
def test_torch_missing(said: str, expected: str, outcome: str) -> None:
    names = ["node1"]
    made = recording(
        names, heard={"node1": heard(1, names, python=f"python 3.11.2 /usr/bin/python3\n{said}")}
    )
    found = report(replace(made, expect={"torch": expected} if expected else {})).results
    (result,) = [each for each in found if each.check == "torch-missing"]
    assert result.status.value == outcome
    if outcome == "fail":
        assert result.problem is not None
        assert ("no torch" if not said else "torch 2.1.0") in result.problem.actual


@pytest.mark.parametrize(("path", "found"), [("/opt/no/python", ["node1"]), ("python3", [])])
def test_an_interpreter_that_was_named_and_is_not_there(path: str, found: list[str]) -> None:
    """Even if no torch is expected: nobody names an interpreter that a job does not use."""
    made = recording(["node1"], heard={"node1": heard(1, ["node1"], python=f"absent {path}\n")})
    assert [host for f in report(made).findings if f.check == "torch-missing" for host in f.hosts] == found


@pytest.mark.parametrize("head", ["python 3.11.2 /usr/bin/python3\n", "absent /usr/bin/python3\n"])
def test_what_has_torch_instead_is_named(head: str) -> None:
    names, others = ["node1"], "elsewhere /opt/conda/bin/python 2.7.0\nelsewhere /venv/bin/python ?\n"
    made = recording(names, expect={"torch": "any"}, heard={"node1": heard(1, names, python=head + others)})
    (found,) = [each for each in report(made).findings if each.check == "torch-missing"]
    assert found.actual.endswith(
        "; torch is in /opt/conda/bin/python (torch 2.7.0), /venv/bin/python (torch ?)"
    )
    assert found.remedy is not None
    assert found.remedy.commands == (
        "doctor smoke node1 --python /opt/conda/bin/python    # or python: in the inventory",
    )


def test_a_strange_path_with_torch_is_not_typed() -> None:
    said = "python 3.11.2 /usr/bin/python3\nelsewhere /tmp/$(reboot)/python 2.7.0\n"
    made = recording(["node1"], expect={"torch": "any"}, heard={"node1": heard(1, ["node1"], python=said)})
    (found,) = [each for each in report(made).findings if each.check == "torch-missing"]
    assert found.remedy is not None
    assert not any("reboot" in command for command in found.remedy.commands)
    assert any("pip install torch" in command for command in found.remedy.commands)


@cases
def test_torch_npu_and_the_libraries_of_cann(said: str, actual: str | None) -> None:
    python = printed(PYTHON, f"python 3.11.2 /usr/bin/python3\n{said}")
    job = draft([Host("node1", "node1")], JobWishes(backend=SourcedValue(Backend.HCCL, "test")))
    devices = Devices({ASCEND_ROW.name: FoundDevices((0, 1))}, "atlas-a2")
    problems = list(torch_npu_unusable.run(python, Expect(torch="any"), job, devices))
    assert [problem.actual[: len(actual or "")] for problem in problems] == ([actual] if actual else [])


WITH_CUDA = "python 3.11.2 /usr/bin/python3\npackage torch 2.5.1\nbuilt cuda 12.4\n"
WITH_NPU = "python 3.11.2 /usr/bin/python3\npackage torch-npu 2.5.1\n"
STUB = "/usr/local/cuda-12.4/targets/x86_64-linux/lib/stubs/libcuda.so"


@pytest.mark.parametrize(
    ("said", "backend", "found"),
    [
        ("library libnccl.so.2 0 /opt/lib/libnccl.so.2.21.5", Backend.NCCL, "libnccl.so.2 is an empty file"),
        ("library libnccl.so.2 folder /opt/lib/libnccl.so.2", Backend.NCCL, "libnccl.so.2 is a folder"),
        (f"library libcuda.so.1 1200 {STUB}", Backend.NCCL, "libcuda.so.1 is a stub of the CUDA toolkit"),
        (
            "library libhccl.so 0 /usr/local/Ascend/lib64/libhccl.so",
            Backend.HCCL,
            "libhccl.so is an empty file",
        ),
        ("library libcudart.so.12 0 /opt/libcudart.so.12", Backend.NCCL, "libcudart.so.12 is an empty file"),
        ("library libcudart.so.11.0 0 /opt/libcudart.so.11.0", Backend.NCCL, ""),
        ("library librccl.so.1 0 /opt/librccl.so.1", Backend.NCCL, ""),
        ("library libnccl.so.2 9 /opt/stubs/libnccl.so.2", Backend.NCCL, ""),
        ("library libhccl.so 0 /usr/local/Ascend/lib64/libhccl.so", Backend.NCCL, ""),
        ("library libcuda.so.1 28 /usr/lib64/libcuda.so.535.104.05", Backend.NCCL, ""),
        ("library libnccl.so.2 none /opt/lib/libnccl.so.2", Backend.NCCL, ""),
        ("library libnccl.so.2 0 libnccl.so.2", Backend.NCCL, ""),
        ("", Backend.NCCL, ""),
    ],
)
def test_a_library_that_no_rank_can_load(said: str, backend: Backend, found: str) -> None:
    python = printed(PYTHON, f"{WITH_CUDA if backend is Backend.NCCL else WITH_NPU}{said}\n")
    job = draft([Host("node1", "node1")], JobWishes(backend=SourcedValue(backend, "test")))
    problems = list(library_unusable.run(python, job))
    assert [(problem.summary, problem.severity) for problem in problems] == [(found, None)] * bool(found)
    plain = printed(PYTHON, f"python 3.11.2 /usr/bin/python3\n{said}\n")
    assert list(library_unusable.run(plain, job)) == [], "without torch nothing is loaded"


def test_a_library_is_not_asked_of_every_job() -> None:
    python = printed(PYTHON, f"{WITH_CUDA}library libnccl.so.2 0 /opt/libnccl.so.2\n")
    with pytest.raises(Skip, match="nccl or hccl"):
        list(library_unusable.run(python, PLAN))
    job = draft([Host("node1", "node1")], JobWishes(backend=SourcedValue(Backend.NCCL, "test")))
    (problem,) = library_unusable.run(python, job, (Launch("job.sh", (), complete=False),))
    assert problem.severity is Severity.WARN, "a launch may set the path, or start a container"
    job = replace(job, env={"LD_LIBRARY_PATH": "/opt/own"})
    with pytest.raises(Skip, match="LD_LIBRARY_PATH"):
        list(library_unusable.run(python, job))


PACKAGED = "library libnccl.so.2 7 /opt/env/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"


@pytest.mark.parametrize(
    ("odd", "usual", "named"),
    [
        ("library libnccl.so.2 9 /usr/lib/libnccl.so.2.18.3", PACKAGED, ["libnccl.so.2"]),
        (
            "library libnccl.so.2 9 /usr/lib/libnccl.so.2.18.3",
            "library libnccl.so.2 8 /a/libnccl.so.2.18.3",
            ["libnccl.so.2"],
        ),
        ("library libnccl.so.2 8 /b/libnccl.so.2.18.3", "library libnccl.so.2 8 /a/libnccl.so.2.18.3", []),
        (PACKAGED.replace(" 7 ", " 8 "), PACKAGED, []),
        ("", PACKAGED, []),
        (
            "library libcuda.so.1 1 /usr/lib/libcuda.so.535.1",
            "library libcuda.so.1 2 /usr/lib/libcuda.so.550.2",
            [],
        ),
        ("library libnccl.so.2 0 /usr/lib/libnccl.so.2.18.3", PACKAGED, []),
    ],
)
def test_the_files_that_ranks_would_load_are_compared(odd: str, usual: str, named: list[str]) -> None:
    """Other rows compare packages and drivers."""
    names = ["node1", "node2", "node3"]
    said = {host: f"{WITH_CUDA}{odd if host == 'node2' else usual}\n" for host in names}
    made = recording(
        names, heard={host: heard(n, names, python=said[host]) for n, host in enumerate(names, 1)}
    )
    found = [each for each in report(made).findings if each.check == "version-drift"]
    assert [(each.subject, each.hosts) for each in found] == [(name, ("node2",)) for name in named]


@cases
def test_torch_npu_is_not_asked_of_everybody(
    torch: str, backend: Backend, numbers: tuple[int, ...], why: str
) -> None:
    python = printed(PYTHON, "python 3.11.2 /usr/bin/python3\npackage torch 2.1.0\n")
    job = draft([Host("node1", "node1")], JobWishes(backend=SourcedValue(backend, "test")))
    devices = Devices({ASCEND_ROW.name: FoundDevices(numbers)}, "atlas-a2")
    with pytest.raises(Skip, match=why):
        list(torch_npu_unusable.run(python, Expect(torch=torch), job, devices))


def test_a_torch_of_unknown_version_is_not_called_another_one() -> None:
    names = ["node1", "node2"]
    said = ("package torch 2.1.0\n", "package torch ?\n")
    made = recording(
        names,
        heard={
            name: heard(n, names, python=f"python 3.11.2 /usr/bin/python3\n{said[n - 1]}")
            for n, name in enumerate(names, 1)
        },
    )
    assert not {finding.check for finding in report(made).findings} & {"torch-missing", "version-drift"}


@cases
def test_packages_that_differ(said: list[str], found: list[str]) -> None:
    """A string is what an interpreter has on node1, node2 and so on; "-p" came with the system."""

    def line(word: str) -> str:
        name, _, version = word.lstrip("-").partition("=")
        version, _, source = version.partition("@")
        more = f"system {name}\n" if word.startswith("-") else ""
        return f"package {name} {version}\n{more}" + (f"source {name} {source}\n" if source else "")

    names = [f"node{number}" for number in range(1, len(said) + 1)]
    pythons = {
        name: printed(PYTHON, "python 3.11.2 /opt/python\ndistributions\n" + "".join(map(line, own.split())))
        for name, own in zip(names, said, strict=True)
    }
    devices = {name: Devices({}, "") for name in names}
    told = version_drift.run({}, {}, pythons, devices, PLAN, {}, {}, {})
    assert [f"{' '.join(each.hosts)}: {each.actual} | {each.expected}" for each in told] == found


def test_what_doctor_needs_may_lie_beside_the_packages_of_the_job() -> None:
    wanted = [each for each in requires(OURS[0]) or () if "extra ==" not in each]
    assert wanted
    assert {re.split(r"[^\w.-]", each, maxsplit=1)[0].lower() for each in wanted} <= {*OURS}


def test_interpreters_of_different_frameworks_are_told_once() -> None:
    """Their packages are not compared, and none of them lacks torch."""
    names = ["node1", "node2", "node3"]
    has = ["package torch 2.7.0\n", *["package mindspore 2.10.0\npackage numpy 1.26.4\n"] * 2]
    made = recording(
        names,
        expect={"torch": "any"},
        heard={
            name: heard(n, names, python=f"python 3.11.2 /usr/bin/python3\n{has[n - 1]}")
            for n, name in enumerate(names, 1)
        },
    )
    judged = report(made)
    (drift,) = [each for each in judged.findings if each.check == "version-drift"]
    assert (drift.hosts, drift.subject, drift.actual) == (("node1",), "framework", "torch")
    (missing,) = [each for each in judged.findings if each.check == "torch-missing"]
    assert (missing.status.value, missing.essential, missing.hosts) == ("unknown", True, tuple(names))
    assert "torch on node1; MindSpore on node[2-3]; name the interpreter" in missing.summary


@cases_with(NVIDIA=NVIDIA, AMD=AMD)
def test_a_driver_that_is_not_loaded_is_no_other_version(
    vendor: Vendor, name: str, driver: str, told: bool
) -> None:
    hosts = ("node1", "node2", "node3")
    versions = {host: Versions({} if host == "node2" else {name: "550.90.12"}, None) for host in hosts}
    devices = {
        host: Devices({vendor.name: FoundDevices((0, 1), 2, driver if host == "node2" else "550.90.12")}, "x")
        for host in hosts
    }
    found = [
        (each.subject, each.hosts) for each in version_drift.run({}, versions, {}, devices, PLAN, {}, {}, {})
    ]
    assert found == ([(name, ("node2",))] if told else [])


def test_models_that_differ() -> None:
    """A card that only one host has beside eight others drives its screen."""

    def told(**models: list[str]) -> list[tuple[str | None, tuple[str, ...], str]]:
        gpus = {
            h: Gpus(tuple(Gpu(n, "", name, "") for n, name in enumerate(own))) for h, own in models.items()
        }
        devices = {host: Devices({NVIDIA.name: FoundDevices((0, 1))}, "nvidia") for host in models}
        found = version_drift.run({}, {}, {}, devices, PLAN, {}, gpus, {})
        return [(each.subject, each.hosts, each.actual) for each in found]

    a100, h100 = ["NVIDIA A100-SXM4-40GB"] * 8, ["NVIDIA H100 80GB HBM3"] * 8
    assert told(a=h100, b=h100, c=[*h100, "NVIDIA T400 4GB"], d=h100[1:], e=[], f=["", *h100]) == []
    assert told(a=h100, b=a100, c=h100) == [("GPU model", ("b",), a100[0])]
    (tie,) = told(a=h100, b=a100)
    assert tie == ("GPU model", ("a", "b"), f"{h100[0]} on 1 hosts; {a100[0]} on 1 hosts")


@cases
def test_python_not_understood(text: str) -> None:
    with pytest.raises(UnreadableOutput, match="did not print its version"):
        printed(PYTHON, text)


def test_only_listed_variables_of_the_environment_are_kept() -> None:
    text = (
        "HCCL_CONNECT_TIMEOUT=600\nNCCL_DEBUG=\nMASTER_PORT=29500\nPYTHONSTARTUP=/x\nHOME=/root\n"
        "PATH=/bin\nBASH_FUNC_x%%=() {  echo\n}\nLD_LIBRARY_PATH=/a:/b=c\nOMP_NUM_THREADS=8\nno equals sign\n"
    )
    assert printed(ENVIRONMENT, text).variables == {
        "HCCL_CONNECT_TIMEOUT": "600",
        "NCCL_DEBUG": "",
        "MASTER_PORT": "29500",
        "LD_LIBRARY_PATH": "/a:/b=c",
        "OMP_NUM_THREADS": "8",
    }


def test_processes() -> None:
    processes = printed(PROCESSES, PS)
    assert processes.init == "/sbin/init"
    assert [(p.pid, p.parent, p.state, p.user, p.seconds) for p in processes.shown] == [
        (2222, 1, "D", "root", 7200),
        (2223, 2222, "Zl", "anna", 10),
    ]
    with pytest.raises(UnreadableOutput, match="no process"):
        printed(PROCESSES, "ps: bad -o argument 'etimes'\n")


@cases
def test_only_important_lines_of_the_kernel_log_are_kept(name: str, texts: list[str]) -> None:
    lines = printed(KERNEL_LOG, sample(f"dmesg/{name}.txt"))
    assert len(lines) == len(texts)
    assert all(text in line.text for line, text in zip(lines, texts, strict=True))


@cases
def test_the_age_of_a_kernel_line(line: str, age: float | None) -> None:
    (found,) = printed(KERNEL_LOG, f"uptime 1000.00\n{line}\n[ 1.0] nothing of interest\n")
    assert (found.age, found.text) == (age, "Out of memory: Killed process 7")


@cases
def test_torch_is_installed_by_what_looks_like_an_interpreter(said: str, typed: str) -> None:
    made = recording(["node1"], heard={"node1": heard(1, ["node1"], python=f"python 3.11.2 {said}\n")})
    found = report(replace(made, expect={"torch": "any"})).findings
    (finding,) = [each for each in found if each.check == "torch-missing"]
    assert finding.remedy
    assert any(f"{typed} -m pip install" in command for command in finding.remedy.commands)
    assert said == typed or not any(said in command for command in finding.remedy.commands)
