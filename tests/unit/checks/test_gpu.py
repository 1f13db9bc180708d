"""The checks of NVIDIA GPUs: typed facts in, problems out, and none for healthy GPUs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from doctor.api import NVIDIA, Check, Skip, Undecided
from doctor.expect import Expect
from doctor.facts.gpus import Gpu, Gpus
from doctor.facts.nvidia.gpus import GpuProcess, NvidiaHealth
from doctor.facts.processes import KernelLine
from doctor.facts.system import Devices, FoundDevices
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.judge.playbook import load_remedies
from doctor.judge.registry import find_checks
from doctor.model import Backend, Host, Problem, Severity, SourcedValue, View
from tests.support.cases import cases, cases_with, from_cases

CHECKS = {check.id: check for check in find_checks().checks}
MISSING = CHECKS["gpu-missing"]
UNHEALTHY = CHECKS["gpu-unhealthy"]
BUSY = CHECKS["gpu-busy"]
ECC = CHECKS["gpu-ecc"]
XID = CHECKS["gpu-xid"]
PLAYBOOK = load_remedies()


def plan(ranks: int = 0, **env: str) -> JobPlan:
    per_host = SourcedValue(ranks, "--ranks-per-host") if ranks else None
    wishes = JobWishes(env=env, ranks_per_host=per_host, backend=SourcedValue(Backend.NCCL, "--backend"))
    return draft([Host(f"node{n}", f"node{n}") for n in range(1, 5)], wishes)


def gpus(count: int = 8, **changes: Any) -> Gpus:
    listed = tuple(Gpu(i, f"GPU-{i}0-a", "NVIDIA H100", f"0000:{i:02x}:00", 1) for i in range(count))
    return Gpus(listed, **changes)


def with_gpu(index: int, **changes: Any) -> Gpus:
    return Gpus(tuple(replace(gpu, **changes) if gpu.index == index else gpu for gpu in gpus().listed))


def devices(count: int = 8, *, on_bus: int | None = None, driver: str = "550.54.15", **more: int) -> Devices:
    found = {
        NVIDIA.name: FoundDevices(
            tuple(range(count)), (count or 8) if on_bus is None else on_bus, driver, **more
        )
    }
    return Devices(found, "nvidia" if count else "cpu")


def found(check: Check, *facts: Any) -> list[Problem]:
    problems = list(check.run(*facts))
    for problem in problems:
        remedy = problem.remedy or check.remedy
        assert remedy
        assert PLAYBOOK.fill(remedy, problem.values), f"{remedy} says nothing to type"
        assert all(host not in problem.summary for host in problem.hosts)
        assert problem.evidence
        assert problem.actual
    return problems


def test_a_job_over_nccl_needs_a_gpu_that_somebody_shows() -> None:
    """A container without GPUs decides nothing, because the job's containers may have been given some."""
    none = {"node1": devices(0, on_bus=0, driver=""), "node2": devices(0, on_bus=0, driver="")}
    (one, two) = found(MISSING, none, {}, plan(), {}, {"node1": View.HOST})
    assert (one.hosts, two.hosts) == (("node1",), ("node2",))
    assert one.expected == "at least one, for an nccl job (--backend)"
    with pytest.raises(Undecided, match="no host shows a GPU here"):
        found(MISSING, none, {}, plan(), {}, dict.fromkeys(none, View.CONTAINER))
    with_expectation = found(MISSING, none, {"node1": Expect(devices=8)}, plan(), {}, {})
    assert [problem.hosts for problem in with_expectation] == [("node1",), ("node2",)]


def severity(check: Check, problem: Problem) -> Severity:
    return problem.severity or check.severity


def lacking(
    own: Mapping[str, Devices],
    *,
    expected: int = 0,
    seen: Mapping[str, Gpus] | None = None,
    views: Mapping[str, View] | None = None,
    job: JobPlan | None = None,
) -> list[Problem]:
    expects = dict.fromkeys(own, Expect(devices=expected))
    return found(
        MISSING,
        own,
        expects,
        job or plan(),
        seen if seen is not None else {host: gpus(len(one.of(NVIDIA).numbers)) for host, one in own.items()},
        views or dict.fromkeys(own, View.HOST),
    )


FOUR = {f"node{n}": devices() for n in range(1, 5)}


def test_all_gpus_are_there() -> None:
    assert lacking(FOUR) == []
    assert lacking(FOUR, expected=8) == []
    assert lacking({"node1": devices(4)}, expected=4) == []
    assert lacking(FOUR, job=plan(ranks=8)) == []
    assert lacking(FOUR, seen={}) == []
    assert lacking(FOUR, seen=dict.fromkeys(FOUR, Gpus((), silent="it hangs"))) == []
    assert lacking(FOUR, job=plan(CUDA_VISIBLE_DEVICES="0,1")) == []


NO_DRIVER = devices(0, driver="")
BARE = devices(0, on_bus=0, driver="")


@dataclass(frozen=True, slots=True)
class Lack:
    """What is wrong on one of four hosts with eight GPUs each, and the finding."""

    summary: str
    expected: str
    actual: str
    count: int
    driver: str = "550.54.15"
    on_bus: int | None = None
    devices: int = 0
    """How many are expected."""
    ranks: int = 0
    view: View = View.HOST
    listed: int | None = None
    said: tuple[str, ...] = ()
    denied: int = 0

    @property
    def own(self) -> Devices:
        return devices(self.count, on_bus=self.on_bus, driver=self.driver)


LACK = from_cases(__file__, "LACK", dict[str, Lack])


@pytest.mark.parametrize("case", LACK)
def test_gpus_are_missing(case: str) -> None:
    lack = LACK[case]
    listed = gpus(lack.count if lack.listed is None else lack.listed, said=lack.said, denied=lack.denied)
    (problem,) = lacking(
        {**FOUR, "node3": lack.own},
        expected=lack.devices,
        seen={**dict.fromkeys(FOUR, gpus()), "node3": listed},
        views={**dict.fromkeys(FOUR, View.HOST), "node3": lack.view},
        job=plan(lack.ranks),
    )
    assert problem.hosts == ("node3",)
    assert (problem.summary, problem.actual) == (lack.summary, lack.actual)
    assert problem.expected.startswith(lack.expected)
    assert severity(MISSING, problem) is Severity.FAIL


ON_BUS = from_cases(
    __file__, "ON_BUS", dict[str, tuple[Devices, dict[str, Any], bool]], devices, plan, View, gpus
)


@pytest.mark.parametrize("case", ON_BUS)
def test_gpus_on_the_bus_for_which_the_driver_made_no_device(case: str) -> None:
    own, more, warns = ON_BUS[case]
    problems = lacking({"node1": own}, **more)
    said = [(p.summary, severity(MISSING, p), p.actual) for p in problems]
    there = str(len(own.of(NVIDIA).numbers))
    lost = ("the driver made no device for GPUs on the PCI bus", Severity.WARN, there)
    assert said == ([lost] if warns else [])
    assert all(problem.expected.endswith(f"--expect devices={there}") for problem in problems)


def test_slurm_counts_parts_of_a_gpu_as_gpus() -> None:
    own = {"node1": devices(1)}
    job = plan()
    asked = replace(job.hosts[0], devices=SourcedValue(7, "SLURM_GPUS_PER_NODE=7"))
    job = replace(job, hosts=(asked, *job.hosts[1:]))
    for mig in (True, False):
        health = {"node1": {0: NvidiaHealth(mig=mig)}}
        problems = found(MISSING, own, {}, job, {"node1": gpus(1)}, {"node1": View.HOST}, health)
        assert [problem.expected for problem in problems] == ([] if mig else ["7, for SLURM_GPUS_PER_NODE=7"])


def on_bus_only() -> JobPlan:
    return replace(plan(), backend=SourcedValue(Backend.NCCL, "on the PCI bus"))


def test_hosts_without_a_gpu_on_their_bus_are_not_blamed_for_those_of_others() -> None:
    own = {**dict.fromkeys(FOUR, BARE), "node2": NO_DRIVER}
    assert [found.hosts for found in lacking(own, job=on_bus_only())] == [("node2",)]


def test_containers_on_hosts_with_gpus_may_be_meant_to_have_none() -> None:
    own = dict.fromkeys(FOUR, devices(0))
    with pytest.raises(Undecided):
        lacking(own, views=dict.fromkeys(own, View.CONTAINER), job=on_bus_only())
    assert lacking(own, views=dict.fromkeys(own, View.CONTAINER), job=on_bus_only(), expected=8)


def test_only_one_host_is_blamed() -> None:
    for case in ("fewer than expected", "fewer than on the other hosts", "the driver is not loaded"):
        own = {**FOUR, "node3": LACK[case].own}
        assert [p.hosts for p in lacking(own, expected=LACK[case].devices)] == [("node3",)], case


def test_a_driver_that_is_not_loaded_has_its_own_remedy() -> None:
    (problem,) = lacking({"node1": NO_DRIVER})
    assert problem.remedy == "load-gpu-driver"


def test_gpus_of_other_jobs_are_not_missing() -> None:
    """In a job of Slurm all device files are visible, but nvidia-smi lists only the GPUs of the job."""
    seen = dict.fromkeys(FOUR, gpus(4, denied=4))
    assert lacking(FOUR, seen=seen) == []
    one = {**dict.fromkeys(FOUR, gpus()), "node2": gpus(4, denied=4)}
    assert lacking(FOUR, seen=one) == []


def test_hosts_of_two_sizes_accuse_no_host() -> None:
    assert lacking({"node1": devices(4), "node2": devices(4), "node3": devices(), "node4": devices()}) == []


def named(count: int, name: str) -> Gpus:
    """As many GPUs of that name; if it is empty, nvidia-smi hangs."""
    listed = tuple(replace(gpu, name=name) for gpu in gpus(count).listed)
    return Gpus(listed) if name else Gpus((), silent="it hangs")


@cases
def test_only_hosts_with_the_same_gpus_set_the_expected_number(
    own: tuple[int, str], others: list[tuple[int, str]], wanted: tuple[str, str] | None
) -> None:
    hosts = {"node1": own} | {f"node{n}": other for n, other in enumerate(others, 2)}
    problems = lacking(
        {host: devices(count) for host, (count, _) in hosts.items()},
        seen={host: named(*told) for host, told in hosts.items()},
    )
    mine = [(severity(MISSING, p), p.confidence) for p in problems if p.hosts == ("node1",)]
    assert mine == ([wanted] if wanted else [])


def test_a_host_without_gpus_fails_whatever_gpus_the_others_have() -> None:
    (problem,) = lacking({"node1": BARE, "node2": devices()}, seen={"node2": gpus()})
    assert (problem.hosts, severity(MISSING, problem)) == (("node1",), Severity.FAIL)


def test_gpus_that_the_job_names() -> None:
    job = plan(CUDA_VISIBLE_DEVICES="1,7,GPU-30,GPU-99")
    (problem,) = lacking({"node1": devices(7)}, job=job, expected=8)
    assert problem.summary == "CUDA_VISIBLE_DEVICES names a GPU that is not there"
    assert problem.subject == "GPU 7, GPU-99"
    assert [place.device for place in problem.where] == [7]
    (problem,) = lacking({"node1": devices(7)}, job=job, seen={})
    assert problem.subject == "GPU 7"
    with pytest.raises(Skip, match="leaves the job no GPU"):
        lacking(FOUR, job=plan(CUDA_VISIBLE_DEVICES=""))
    with pytest.raises(Undecided, match="MIG"):
        lacking(FOUR, job=plan(CUDA_VISIBLE_DEVICES="MIG-1"))


WELL = dict.fromkeys(range(8), NvidiaHealth(0, None, False, False, "None", False, "Completed", "Success"))


def unwell(index: int, **changes: Any) -> dict[int, NvidiaHealth]:
    return {**WELL, index: replace(WELL[index], **changes)}


def test_healthy_gpus() -> None:
    for health in (WELL, None, dict.fromkeys(range(8), NvidiaHealth())):
        assert found(UNHEALTHY, gpus(), plan(), health) == []
    assert found(UNHEALTHY, gpus(said=("Warning: persistence mode is disabled",)), plan(), WELL) == []


@dataclass(frozen=True, slots=True)
class Ill:
    """What nvidia-smi shows of eight GPUs, `health` as far as it is not well, and the finding."""

    summary: str
    subject: str | None = None
    status: str = "fail"
    count: int = 8
    trouble: dict[int, str] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    silent: str = ""
    health: dict[int, dict[str, Any]] | None = field(default_factory=dict)

    def problems(self) -> list[Problem]:
        listed = tuple(
            replace(gpu, trouble=self.trouble.get(gpu.index, "")) for gpu in gpus(self.count).listed
        )
        health = None
        if self.health is not None:
            health = {i: replace(well, **self.health.get(i, {})) for i, well in WELL.items()}
        return found(UNHEALTHY, Gpus(listed, self.said, silent=self.silent), plan(), health)


ILL = from_cases(__file__, "ILL", dict[str, Ill])


@pytest.mark.parametrize("case", ILL)
def test_an_unhealthy_gpu(case: str) -> None:
    ill = ILL[case]
    (problem,) = ill.problems()
    assert (problem.summary, problem.subject) == (ill.summary, ill.subject)
    assert severity(UNHEALTHY, problem) == ill.status
    named = ill.subject.removeprefix("GPU ") if ill.subject else ""
    assert [place.device for place in problem.where] == ([int(named)] if named.isdigit() else [])


@cases
def test_each_fault_has_the_remedy_that_brings_the_gpu_back(case: str, remedy: str) -> None:
    (problem,) = ILL[case].problems()
    assert (problem.remedy or UNHEALTHY.remedy) == remedy


def test_a_gpu_that_is_closed_between_jobs_drains_no_node() -> None:
    for of_node, wanted in ((True, "warn"), (False, "fail")):
        job = replace(plan(), of_node=of_node)
        (problem,) = found(UNHEALTHY, gpus(), job, unwell(2, compute="Prohibited"))
        assert severity(UNHEALTHY, problem) == wanted
    assert found(UNHEALTHY, gpus(), plan(), unwell(2, compute="Exclusive_Process")) == []


def test_gpus_that_the_job_does_not_get_are_not_unhealthy() -> None:
    assert found(UNHEALTHY, Gpus((), ("No devices were found",), denied=8), plan(), None) == []


def test_an_unknown_message_of_nvidia_smi_is_undecided() -> None:
    with pytest.raises(Undecided, match="lists no GPU: bad luck"):
        found(UNHEALTHY, Gpus((), ("bad luck",)), plan(), None)


def test_equal_faults_are_reported_once() -> None:
    health = {**unwell(2, action="Reset"), 5: replace(WELL[5], action="Reset")}
    (problem,) = found(UNHEALTHY, gpus(), plan(), health)
    assert problem.subject == "GPUs 2,5"
    assert problem.values == {"gpu": ("2", "5")}


def test_gpus_that_the_job_does_not_use_are_not_judged() -> None:
    job = plan(CUDA_VISIBLE_DEVICES="0,1")
    hurt = unwell(3, action="Reset", uncorrected=3, remap_failed=True)
    assert found(UNHEALTHY, with_gpu(3, trouble="GPU is lost"), job, hurt) == []
    assert found(ECC, hurt, gpus(), job) == []
    assert found(BUSY, with_gpu(3, used_mb=70000), (), None, job, Expect()) == []
    line = KernelLine(1.0, "NVRM: Xid (PCI:0000:03:00): 79, GPU has fallen off the bus.")
    assert found(XID, (line,), gpus(), None, job, Expect()) == []


def busy(listed: Gpus, *processes: GpuProcess, **changes: Any) -> list[Problem]:
    known = None if changes.pop("hidden", False) else processes
    return found(
        BUSY, listed, known, changes.get("health", WELL), plan(), Expect(**changes.get("expect", {}))
    )


TRAINING = GpuProcess("GPU-40-a", 4711, 70000, "python3.11")


def test_idle_gpus() -> None:
    assert busy(gpus()) == []
    assert busy(gpus(), hidden=True) == []
    assert busy(with_gpu(4, used_mb=1024)) == []
    assert busy(with_gpu(4, used_mb=None)) == []
    assert busy(gpus(), replace(TRAINING, name="nvidia-cuda-mps-server", used_mb=30)) == []
    assert busy(gpus(), replace(TRAINING, uuid="GPU-elsewhere")) == []
    mig = unwell(4, mig=True)
    assert busy(with_gpu(4, used_mb=70000), TRAINING, health=mig) == [], "other parts of it may be in use"


@cases
def test_a_busy_gpu(
    used_mb: int,
    processes: list[GpuProcess],
    summary: str,
    actual: str,
    wanted: str,
    confidence: str,
) -> None:
    (problem,) = busy(with_gpu(4, used_mb=used_mb), *processes)
    assert (problem.summary, problem.actual, problem.subject) == (summary, actual, "GPU 4")
    assert (severity(BUSY, problem), problem.confidence) == (wanted, confidence)
    assert "4711" not in problem.summary + problem.actual
    assert f"{used_mb} MB in use" in problem.evidence[0].text
    assert all(f"pid {process.pid}" in problem.evidence[0].text for process in processes)


def test_the_memory_of_an_idle_gpu_can_be_set() -> None:
    assert busy(with_gpu(4, used_mb=1500), expect={"gpu_idle_mb": 2000}) == []
    (problem,) = busy(with_gpu(4, used_mb=1500), hidden=True)
    assert problem.expected == "at most 1024 MB of its memory in use"


def test_gpus_that_one_process_keeps_busy_are_reported_once() -> None:
    listed = Gpus(tuple(replace(gpu, used_mb=60000) for gpu in gpus().listed))
    (problem,) = busy(listed, *(replace(TRAINING, uuid=gpu.uuid) for gpu in listed.listed))
    assert problem.subject == "GPUs 0-7"


def test_memory_without_errors() -> None:
    for health in (WELL, dict.fromkeys(range(8), NvidiaHealth()), {}):
        assert found(ECC, health, gpus(), plan()) == []


@cases
def test_memory_with_errors(changes: dict[str, Any], summary: str, actual: str, wanted: str) -> None:
    (problem,) = found(ECC, unwell(6, **changes), gpus(), plan())
    assert summary in problem.summary
    assert (problem.actual, problem.subject, severity(ECC, problem)) == (actual, "GPU 6", wanted)
    assert [place.device for place in problem.where] == [6]


def xid(number: int, bus: str = "0000:02:00", age: float | None = 60.0) -> KernelLine:
    return KernelLine(age, f"NVRM: Xid (PCI:{bus}): {number}, pid=1, name=python, whatever")


def told(
    *lines: KernelLine, health: Mapping[int, NvidiaHealth] | None = None, listed: Gpus | None = None
) -> Any:
    return found(XID, lines, listed or gpus(), health, plan(), Expect())


def test_a_quiet_kernel_log() -> None:
    assert told() == []
    assert told(*(xid(number) for number in (13, 31, 43, 45, 69, 154))) == []
    assert told(xid(79, age=25 * 3600.0)) == []
    assert told(KernelLine(1.0, "Out of memory: Killed process 7 (python)")) == []


@cases_with(unwell, WELL=WELL)
def test_an_xid(number: int, health: Mapping[int, NvidiaHealth] | None, wanted: str) -> None:
    (problem,) = told(xid(number), xid(number, age=7200.0), health=health)
    assert problem.summary.startswith(f"Xid {number}: ")
    assert (problem.subject, problem.actual) == ("GPU 2", "2 times")
    assert severity(XID, problem) == wanted
    assert [place.device for place in problem.where] == [2]
    assert [each.text[:10] for each in problem.evidence] == ["0.0 h ago:", "2.0 h ago:"]


def test_an_xid_of_a_gpu_that_is_not_listed() -> None:
    for listed in (gpus(2), Gpus((), silent="it hangs")):
        (problem,) = told(xid(79, age=None), listed=listed)
        assert (problem.subject, problem.where) == ("GPU at 0000:02:00", ())
    (problem,) = found(XID, (xid(79),), None, None, plan(), Expect())
    assert problem.subject == "GPU at 0000:02:00"


def test_each_xid_number_is_reported_once() -> None:
    problems = told(xid(79), xid(79, "0000:05:00"), xid(63), xid(79, "0000:99:00"))
    assert [(problem.summary[:6], problem.subject) for problem in problems] == [
        ("Xid 79", "GPUs 2,5, GPU at 0000:99:00"),
        ("Xid 63", "GPU 2"),
    ]


def of_no_accelerator(source: str = "no accelerator found") -> JobPlan:
    return replace(plan(), backend=SourcedValue(Backend.GLOO, source))


EVERY_BARE = dict.fromkeys(FOUR, BARE)
EVERY_UNDRIVEN = dict.fromkeys(FOUR, NO_DRIVER)


@pytest.mark.parametrize("own", [EVERY_UNDRIVEN, EVERY_BARE])
def test_gpus_that_are_expected_are_missing_everywhere(own: Mapping[str, Devices]) -> None:
    problems = lacking(own, expected=8, job=of_no_accelerator(), seen={})
    assert [(*problem.hosts, problem.severity) for problem in problems] == [(host, None) for host in FOUR]


@cases_with(EVERY_BARE=EVERY_BARE, EVERY_UNDRIVEN=EVERY_UNDRIVEN)
def test_jobs_without_gpus(own: Mapping[str, Devices], expected: int, source: str) -> None:
    with pytest.raises(Skip, match="only for nccl jobs"):
        lacking(own, expected=expected, job=of_no_accelerator(source), seen={})


def on_the_bus() -> JobPlan:
    return replace(plan(), backend=SourcedValue(Backend.NCCL, "on the PCI bus"))


@pytest.mark.parametrize("view", [View.HOST, View.CONTAINER])
def test_gpus_on_the_bus_are_gpus_of_the_job(view: View) -> None:
    problems = lacking(EVERY_UNDRIVEN, job=on_the_bus(), seen={}, views=dict.fromkeys(FOUR, view))
    assert [(*problem.hosts, severity(MISSING, problem)) for problem in problems] == [
        (host, Severity.FAIL) for host in FOUR
    ]
    assert {problem.expected for problem in problems} == {
        "at least one; if the job trains on CPUs: --backend gloo"
    }


def test_device_files_outlive_the_driver() -> None:
    own = FOUR | {"node2": devices(driver="")}
    for job in (plan(), plan(CUDA_VISIBLE_DEVICES="0,1")):
        (problem,) = lacking(own, seen={}, job=job)
        assert (problem.hosts, problem.summary) == (("node2",), "the NVIDIA driver is not loaded")
    assert lacking(own, seen={}, views=dict.fromkeys(own, View.CONTAINER)) == [], "it may be hidden there"


@pytest.mark.parametrize("check", [UNHEALTHY, BUSY, ECC, XID], ids=lambda check: check.id)
def test_only_nccl_jobs_are_examined_for_gpus(check: Check) -> None:
    assert check.backends == (Backend.NCCL,)
    assert check.severity is Severity.FAIL
