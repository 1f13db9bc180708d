"""NPUs that are missing, unhealthy or in use: facts in, problems out."""

from collections.abc import Mapping
from typing import Any

import pytest

from doctor.api import Confidence, Expect, Severity
from doctor.facts.ascend.npu_smi_table import NpuProcess
from doctor.facts.ascend.npus import Npu
from doctor.facts.system import Devices
from doctor.job.plan import JobPlan
from doctor.model import SourcedValue, View
from tests.support.cases import cases, cases_with
from tests.support.npu_cluster import EIGHT, HOSTS, NODE1, Judgement, devices, everywhere, judge, plan

SEVEN = tuple(n for n in EIGHT if n != 3)


def missing(
    found: Mapping[str, Devices],
    job: JobPlan | None = None,
    expect: Mapping[str, Expect] | None = None,
    view: View | None = View.HOST,
) -> Judgement:
    views = dict.fromkeys(found, view) if view else {}
    return judge("device-missing", found, expect or everywhere(Expect()), job or plan(*found), views)


@cases_with(devices, View, range)
def test_a_host_that_lacks_devices(own: Devices, more: dict[str, Any], lost: set[int], says: str) -> None:
    found = missing({**everywhere(devices()), "node2": own}, **more)
    assert found.only.hosts == ("node2",)
    assert found.places == {("node2", device) for device in lost}
    assert says in found.only.expected
    assert found.only.severity is None


def test_the_fault_decides_the_summary() -> None:
    def summary(own: Devices) -> str:
        return missing({**everywhere(devices()), "node2": own}).only.summary

    assert summary(devices(npus=(), on_bus=8)) == "the NPU driver is not loaded"
    assert summary(devices(npus=SEVEN, on_bus=8)) == "the driver made no device for NPUs on the PCI bus"
    assert summary(devices("cpu", npus=())) == "there is no NPU"
    assert summary(devices(npus=SEVEN)) == "NPUs are missing"


@cases_with(devices, plan, SourcedValue, everywhere, Expect, range, View)
def test_hosts_with_as_many_devices_as_they_should_have(own: Devices, more: dict[str, Any]) -> None:
    assert missing({**everywhere(devices()), "node2": own}, **more).passed


@cases_with(Expect, plan, SourcedValue)
def test_expectations_for_a_single_host(
    expect: Expect, job: JobPlan | None, says: str, confidence: Confidence | None
) -> None:
    problem = missing({"node1": devices(npus=SEVEN)}, job, {"node1": expect}).only
    assert says in problem.expected
    assert problem.subject == "device 3"
    assert problem.confidence is (confidence or Confidence.CERTAIN)


def test_an_absurdly_large_expectation_takes_no_time() -> None:
    problem = missing({"node1": devices()}, expect={"node1": Expect(devices=10**12)}).only
    assert (problem.expected, problem.where) == ("1000000000000, as expected of this host", ())


def test_without_a_majority_nothing_is_expected() -> None:
    mixed = {"a": devices(), "b": devices(), "c": devices(npus=range(4)), "d": devices(npus=range(4))}
    assert missing(mixed).passed


@cases_with(devices, range)
def test_one_other_host_is_too_few_for_a_failure_unless_the_product_says_so(
    own: Devices, others: list[Devices], severity: Severity | None
) -> None:
    problem = missing({"own": own} | {f"other{n}": each for n, each in enumerate(others)}).only
    assert problem.hosts == ("own",), "the one that has fewer"
    assert problem.expected.startswith("8, as on ")
    assert (problem.severity, problem.confidence) == (severity, Confidence.STRONG)


@cases
@pytest.mark.parametrize("hosts", [1, 3])
def test_the_same_number_too_few_on_every_host(product: str, there: int, whole: int, hosts: int) -> None:
    found = missing({name: devices(product, range(there)) for name in HOSTS[:hosts]})
    assert [problem.hosts for problem in found.problems] == [(name,) for name in HOSTS[:hosts]]
    for problem in found.problems:
        assert problem.severity is None
        assert problem.expected.startswith(
            f"{whole}, as servers of {product} have; if it is to have {there}: "
        )
        assert problem.confidence is Confidence.STRONG


@cases_with(View, everywhere, Expect, plan, SourcedValue)
def test_numbers_that_a_server_may_have(product: str, there: int, more: dict[str, Any]) -> None:
    assert missing(everywhere(devices(product, range(there))), **more).passed


def test_a_gap_in_the_numbers() -> None:
    """Nothing says how many there should be, but a number between two others is missing."""
    found = missing(everywhere(devices("ascend", (0, 1, 3))))
    assert [problem.severity for problem in found.problems] == [Severity.WARN] * 3
    assert found.places == {(host, 2) for host in HOSTS}
    assert missing(everywhere(devices("atlas-a2", (4, 5, 6, 7)))).passed, "those of another virtual machine"
    assert missing(everywhere(devices("ascend", (0, 1, 3))), view=View.CONTAINER).passed, "as they were given"
    assert missing(everywhere(devices("ascend", (0, 1, 3))), expect=everywhere(Expect(devices=3))).passed


def test_no_npu_anywhere() -> None:
    """The job may see them elsewhere, in its containers, so a container without NPUs decides nothing."""
    none = everywhere(devices("cpu", npus=()))
    assert {host for problem in missing(none).problems for host in problem.hosts} == set(HOSTS)
    inside = missing(none, view=View.CONTAINER)
    assert (inside.problems, inside.unknown_hosts) == ((), HOSTS)
    assert "no host shows an NPU here" in inside.unknown
    plugged = everywhere(devices("cpu", npus=())) | {"node2": devices("atlas-a2", npus=(), on_bus=8)}
    assert {host for problem in missing(plugged).problems for host in problem.hosts} == set(HOSTS)


def npu(device: int, **more: Any) -> Npu:
    """A device of an idle Atlas A2, with changes."""
    own: dict[str, Any] = {
        "card": device,
        "chip": 0,
        "health": "OK",
        "hbm_used_mb": 4175,
        "hbm_total_mb": 65536,
    } | more
    return Npu(device=device, name="910B1", bus=f"0000:{device:02X}:00.0", **own)


def npus(**changes: Any) -> tuple[Npu, ...]:
    """Eight idle devices; device 3 has these changes."""
    return tuple(npu(n, **changes) if n == 3 else npu(n) for n in EIGHT)


NO_ERRORS: Mapping[int, int] = {}


def unhealthy(
    found: tuple[Npu, ...],
    ecc: Mapping[int, int] | None = NO_ERRORS,
    job: JobPlan | None = None,
    view: View | None = View.HOST,
    there: Devices | None = None,
    openable: frozenset[int] | None = None,
) -> Judgement:
    return judge("device-unhealthy", found, there or devices(), job or plan(), NODE1, ecc, view, openable)


def test_unknown_memory_errors_are_not_called_none() -> None:
    assert "memory errors" in unhealthy(npus(), None).unknown


@cases
def test_a_device_that_is_not_healthy(health: str, severity: Severity | None) -> None:
    problem = unhealthy(npus(health=health, codes=("80E01801",), errors=("HBM ECC",), card=1)).only
    assert (problem.subject, problem.severity) == ("device 3", severity)
    assert [place.device for place in problem.where] == [3]
    assert problem.actual == f"{health} (80E01801; HBM ECC)"
    assert problem.commands[0] == "sudo msnpureport"
    assert problem.commands[-1] == "# With no job on it: npu-smi set -t reset -i 1 -c 0"


def test_the_same_fault_of_several_devices_is_one_problem() -> None:
    found = tuple(npu(n, health="Alarm", codes=("A",)) if n < 4 else npu(n) for n in EIGHT)
    assert unhealthy(found).only.subject == "devices 0-3"
    found = (*found[:7], npu(7, health="Alarm", codes=("B",)))
    assert [problem.subject for problem in unhealthy(found).problems] == ["devices 0-3", "device 7"]


def test_memory_errors_warn() -> None:
    fine = dict.fromkeys(EIGHT, 0)
    assert unhealthy(npus(), fine).passed, "single bits are corrected"
    problem = unhealthy(npus(), {**fine, 3: 2}).only
    assert (problem.subject, problem.severity) == ("device 3", Severity.WARN)
    assert problem.actual == "2 double-bit ECC errors"


def test_both_chips_of_a_card_have_its_memory_errors() -> None:
    found = tuple(npu(n, card=n // 2, chip=n % 2) for n in range(16))
    judged = unhealthy(found, {2: 1}, there=devices("atlas-a3", range(16)))
    assert judged.only.subject == "devices 4-5"


def test_a_device_that_npu_smi_does_not_show() -> None:
    seven = tuple(npu(n) for n in SEVEN)
    problem = unhealthy(seven).only
    assert (problem.subject, problem.confidence) == ("device 3", Confidence.STRONG)
    inside = unhealthy(seven, view=View.CONTAINER)
    assert (inside.problems, inside.unknown) == ((), "npu-smi does not show device 3")
    assert judge("device-busy", seven, devices(), plan(), NODE1, Expect()).unknown == inside.unknown


def test_npu_smi_shows_none_of_the_devices_whose_files_are_there() -> None:
    assert unhealthy(()).only.subject == "devices 0-7"
    assert unhealthy((), view=View.CONTAINER, openable=frozenset(EIGHT)).only.subject == "devices 0-7"


@pytest.mark.parametrize("view", [View.CONTAINER, None])
def test_a_device_that_npu_smi_does_not_show_to_a_container_that_may_open_it(view: View | None) -> None:
    found = unhealthy(tuple(npu(n) for n in SEVEN), view=view, openable=frozenset(EIGHT))
    assert (found.only.subject, found.only.severity, found.unknown) == ("device 3", None, "")
    assert found.places == {(None, 3)}
    assert found.only.actual == "npu-smi shows 7"


@pytest.mark.parametrize("openable", [frozenset(SEVEN), frozenset(), None])
def test_a_container_is_not_accused_for_a_device_that_it_was_not_given(
    openable: frozenset[int] | None,
) -> None:
    found = unhealthy(tuple(npu(n) for n in SEVEN), view=View.CONTAINER, openable=openable)
    assert (found.problems, found.unknown) == ((), "npu-smi does not show device 3")


def test_a_lost_device_is_told_apart_from_one_that_was_not_given() -> None:
    found = unhealthy(
        tuple(npu(n) for n in (0, 1, 2)),
        view=View.CONTAINER,
        there=devices(npus=range(5)),
        openable=frozenset(range(4)),
    )
    assert [problem.subject for problem in found.problems] == ["device 3"]
    assert found.unknown == "npu-smi does not show device 4"


def test_a_container_that_was_given_the_upper_half() -> None:
    upper = devices(npus=(4, 5, 6, 7))
    for shown in ((4, 5, 6, 7), (0, 1, 2, 3), tuple(EIGHT)):
        found = tuple(npu(n) for n in shown)
        assert unhealthy(found, view=View.CONTAINER, there=upper, openable=frozenset(range(4, 8))).passed
    lost = unhealthy(
        tuple(npu(n) for n in range(3)),
        view=View.CONTAINER,
        there=upper,
        openable=frozenset(range(4, 8)),
    )
    assert lost.only.summary == "npu-smi shows fewer NPUs than there are device files"
    assert (lost.only.subject, lost.places) == (None, set())


def test_a_container_may_number_its_devices_differently() -> None:
    found = tuple(npu(n) for n in range(2))
    assert unhealthy(found, there=devices(npus=(4, 5)), view=View.CONTAINER).passed
    ill = (npu(0), npu(1, health="Alarm"))
    assert unhealthy(ill, there=devices(npus=(4, 5)), view=View.CONTAINER).only.subject == "device 1"


@pytest.mark.parametrize("id", ["device-unhealthy", "device-busy"])
@cases
def test_only_visible_devices_are_judged(id: str, visible: str, devices_of_job: int) -> None:
    job = plan(env={"ASCEND_RT_VISIBLE_DEVICES": visible})
    sick = npus(health="Alarm", processes=(NpuProcess(7, "python", 900),))
    more: tuple[object, ...] = (NODE1, {}, View.HOST, None) if id == "device-unhealthy" else (NODE1, Expect())
    found = judge(id, sick, devices(), job, *more)
    assert len(found.problems) == (visible in ("3", ""))
    assert bool(found.skipped) is (devices_of_job == 0)


def busy(*found: Npu, expect: Expect | None = None) -> Judgement:
    there = devices(npus=[one.device for one in found])
    return judge("device-busy", found, there, plan(), NODE1, expect or Expect())


def test_processes_of_another_job() -> None:
    found = busy(
        npu(0, processes=(NpuProcess(11, "python", 30780), NpuProcess(12, "python", 122))),
        npu(1, processes=(NpuProcess(13, "python", 30780),)),
        npu(2),
    )
    problem = found.only
    assert (problem.subject, problem.actual) == ("devices 0-1", "python")
    assert problem.confidence is Confidence.CERTAIN
    assert "pid 11 python 30780 MB; pid 12" in problem.evidence[0].text
    words = (problem.summary, problem.expected, problem.actual, str(problem.values))
    assert not any("11" in word for word in words), "numbers of processes differ from host to host"


def test_a_process_without_a_name_belongs_to_another_container() -> None:
    problem = busy(npu(0, processes=(NpuProcess(11, "", 30780),))).only
    assert "another container" in problem.summary
    assert problem.confidence is Confidence.STRONG
    both = busy(npu(0, processes=(NpuProcess(11, "", 9), NpuProcess(12, "python", 9)))).only
    assert both.actual == "python, and others not visible by name from here"


@cases
def test_memory_in_use_and_no_process(used: int, total: int, percent: int, found: bool) -> None:
    judged = busy(npu(0, hbm_used_mb=used, hbm_total_mb=total), expect=Expect(npu_idle_percent=percent))
    assert len(judged.problems) == found
    if found:
        assert judged.only.actual == "the process is not visible from here"
        assert judged.only.confidence is Confidence.STRONG
