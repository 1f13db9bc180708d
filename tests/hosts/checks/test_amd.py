"""AMD GPUs: each fault alone on one of three hosts with eight MI300X each, and tools in every condition."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab import Lab, missing
from tests.lab.amd import AmdGpus, AmdHost, fit_amd
from tests.lab.amd_texts import NOT_IN_GROUPS
from tests.support.batches import batches, prove_each
from tests.support.cases import from_cases
from tests.support.faults import (
    ALONE,
    Examiner,
    Outcome,
    assert_healthy,
    assert_only,
    assert_unexamined,
    some_of,
    words,
)
from tests.support.gpu_faults import ALL, DeviceFault, left_out, undecided_on
from tests.support.npu_faults import assert_says

EIGHT = (*ALONE, "--expect", "devices=8")
OF_SMI = {"amd-unhealthy", "amd-busy", "amd-ras"}
LINE = "[{:.6f}] amdgpu 0000:65:00.0: amdgpu: {}\n"


@pytest.fixture(scope="module")
def amd3() -> Iterator[AmdGpus]:
    if reason := missing():
        pytest.skip(reason)
    with Lab(3) as lab:
        yield fit_amd(lab)


@dataclass(frozen=True, slots=True)
class AmdExaminer:
    """`doctor check` on hosts that are healthy at first; it asserts that no setting was changed."""

    amd: AmdGpus
    folder: Path

    @property
    def lab(self) -> Lab:
        return self.amd.lab

    @property
    def hosts(self) -> AmdGpus:
        return self.amd

    def heal(self) -> None:
        self.amd.lab.reset()
        self.amd.reset()

    def __call__(self, *args: str, user: str | None = None) -> Outcome:
        outcome = Examiner(self.amd.lab, self.folder)(*args, hosts=ALL, user=user)
        assert not self.amd.setters
        return outcome

    def victim(self, seed: str) -> AmdHost:
        return self.amd[random.Random(seed).choice(self.amd.lab.names)]


@pytest.fixture
def examine(amd3: AmdGpus, tmp_path: Path) -> AmdExaminer:
    examiner = AmdExaminer(amd3, tmp_path)
    examiner.heal()
    return examiner


@pytest.mark.parametrize("exam", [(), ("--exam", "full"), EIGHT], ids=["preflight", "full", "expected"])
def test_healthy(exam: tuple[str, ...], examine: AmdExaminer) -> None:
    before = {host.host.name: host.host.snapshot() for host in examine.amd}
    outcome = examine(*exam)
    assert_healthy(outcome)
    assert "3 hosts · 24 ranks (8 a host, devices " in outcome.text
    assert "backend nccl (devices found)" in outcome.text
    assert {host["product"] for host in outcome.report["hosts"]} == {"amd"}
    for check in ("gpu-missing", "gpu-busy", "gpu-ecc", "fabric-manager-down"):
        assert set(left_out(outcome, check).values()) == {"only for jobs on NVIDIA devices"}
    for each in examine.amd:
        host = each.host
        host.await_that(lambda host=host: not host.leftovers(before[host.name]), "clean end")  # type: ignore[misc]


Fault = DeviceFault[AmdHost]


def uncorrected(host: AmdHost) -> None:
    host[1].uncorrected = 4
    host.tell()


def pages(kind: str, count: int) -> Callable[[AmdHost], None]:
    def inject(host: AmdHost) -> None:
        host[6].pages = [(kind, 4096 * n) for n in range(count)]
        host.tell()

    return inject


def sends_again(host: AmdHost) -> None:
    host[2].replays = "@"
    host.tell()


def corrects(host: AmdHost) -> None:
    host[7].corrected = "@"
    host.tell()


def memory(host: AmdHost) -> None:
    host[5].used_mb = 5000
    host.tell()


def logged(text: str) -> Callable[[AmdHost], None]:
    def inject(host: AmdHost) -> None:
        host.host.shadow("/proc/uptime", "90000.00 9.00\n")
        host.host.kernel_log(LINE.format(82800, text))

    return inject


FAULTS = Fault.table(__file__, "FAULTS", uncorrected, pages, sends_again, corrects, memory, logged)


@pytest.mark.parametrize("names", batches(FAULTS, size=2))
def test_found(names: list[str], examine: AmdExaminer) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


HARMLESS = from_cases(__file__, "HARMLESS", tuple[str, ...])


def test_log_lines_that_accuse_no_gpu(examine: AmdExaminer) -> None:
    host = examine.victim("nobody").host
    host.shadow("/proc/uptime", "90000.00 9.00\n")
    host.kernel_log("".join(LINE.format(82800, line) for line in HARMLESS))
    assert [f for f in examine(*ALONE).trouble if f["check"].startswith("amd-")] == []


def test_faults_of_gpus_that_the_job_does_not_use_are_ignored(examine: AmdExaminer) -> None:
    """HIP counts in the opposite order to amd-smi."""
    host = examine.victim("not used")
    host[1].uncorrected = 2
    host.runs(2, ("python", 5, 40000))
    inventory = examine.folder / "inventory.yaml"
    inventory.write_text("launch: {HIP_VISIBLE_DEVICES: '0,1,2,3'}\n")
    assert_healthy(examine(*ALONE, "--inventory", str(inventory)))
    inventory.write_text("launch: {HIP_VISIBLE_DEVICES: '6'}\n")
    found = assert_only(
        examine(*ALONE, "--inventory", str(inventory)),
        "amd-ras",
        [host.host.name],
        devices=[(host.host.name, 1)],
    )
    assert_says(found, "GPU 1")


def test_no_driver_anywhere(examine: AmdExaminer) -> None:
    """Instinct GPUs on the PCI bus alone show the purpose of the hosts."""
    for host in examine.amd:
        host.without_driver()
    found = assert_only(examine(*ALONE), "amd-missing", examine.amd.lab.names, devices=())
    assert_says(found, "the AMD driver is not loaded")


def test_rocm_smi_is_used_where_amd_smi_is_missing(examine: AmdExaminer) -> None:
    """rocm-smi provides everything except the errors, which it does not print as JSON."""
    for each in examine.amd:
        each.do("rm /usr/bin/amd-smi")
    assert_healthy(examine(*ALONE), {"amd-ras"})
    host = examine.victim("rocm-smi")
    host.runs(4, ("python", 77, 9000))
    outcome = examine(*EIGHT)
    found = assert_only(outcome, "amd-busy", [host.host.name], devices=[(host.host.name, 4)])
    assert_says(found, "its memory is in use", "pid 77 python 9000 MB")
    host.drop(2)
    assert {f["check"] for f in examine(*EIGHT).trouble} == {"amd-busy", "amd-missing"}


def test_amd_smi_refuses_a_login_outside_its_groups(examine: AmdExaminer) -> None:
    host = examine.victim("refused")
    host.put("outside_groups", NOT_IN_GROUPS)
    outcome = examine(*ALONE)
    assert_healthy(outcome, {"amd-ras"})
    assert undecided_on(outcome, host.host.name).keys() == {"amd-ras"}
    assert any(call.startswith("rocm-smi") for call in host.calls)


def test_without_either_tool_no_host_is_healthy(examine: AmdExaminer) -> None:
    host = examine.victim("neither")
    host.do("rm /usr/bin/amd-smi /usr/bin/rocm-smi")
    outcome = examine(*ALONE)
    name = host.host.name
    assert_unexamined(outcome, [name], OF_SMI, "amd-smi is not installed there")
    assert undecided_on(outcome, name).keys() == OF_SMI | {"probe-incomplete"}


def test_tools_that_hang(examine: AmdExaminer) -> None:
    host = examine.victim("hung")
    before = host.host.snapshot()
    host.hang()
    outcome = examine(*ALONE)
    (found,) = assert_only(outcome, "amd-unhealthy", [host.host.name], devices=())
    assert "its driver does not answer: amd-smi hangs" in words(found)
    assert undecided_on(outcome, host.host.name).keys() == OF_SMI - {"amd-unhealthy"}
    host.host.await_that(lambda: not host.host.leftovers(before), "clean end")


GARBAGE = ("{", "[" * 5000, "null", "[]", "segfault at 0", '[{"gpu": "x"}]', "[1, 2]")


@pytest.mark.parametrize("text", some_of(GARBAGE, "{", "[]"))
def test_garbage_is_never_healthy(text: str, examine: AmdExaminer) -> None:
    host = examine.victim(text[:3])
    for name in ("static", "metric", "process", "bad-pages"):
        host.put(name, text)
    outcome = examine(*ALONE)
    told = undecided_on(outcome, host.host.name)
    assert {"amd-ras", "amd-busy"} <= told.keys()
    named = {f["check"] for f in outcome.trouble if f["hosts"] == [host.host.name]}
    assert named & {"amd-unhealthy", "amd-missing"} or "amd-unhealthy" in told
    assert {name for f in outcome.trouble for name in f["hosts"]} <= {host.host.name}
