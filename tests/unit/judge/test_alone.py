"""The exam `node`: only what is certain about a host is a fault, whatever jobs and other hosts say."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from doctor.facts.nvidia.gpus import GPUS
from doctor.judge.engine import Facts
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_exam, load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.model import Capture, HostStatus, Status, UnreachedHost, UnreachedKind
from doctor.recording import Recording
from doctor.report.files.json import check_report
from tests.support.captures import as_read
from tests.support.cases import from_cases
from tests.support.paths import ROOT
from tests.support.recordings import heard, recording, syllabus
from tests.support.recordings import report as reported
from tests.unit.judge.test_odd_host import sample

CHECKS = find_checks().checks
NODE = load_exam("node", CHECKS)
NAMES = ("node1", "node2", "node3")


def judged(of: Recording, **rules: Any) -> Report:
    asked = replace(of, command="check", exam="node")
    chosen = tuple(check for check in CHECKS if check.id in NODE.checks)
    prepared = replace(syllabus(chosen, NODE, **rules), name="node")
    return build_report(read_recording(asked), prepared, load_remedies())


def told(report: Report) -> set[tuple[str, str, tuple[str, ...]]]:
    return {
        (found.check, found.status.value, found.hosts)
        for found in report.findings
        if found.status in (Status.FAIL, Status.WARN)
    }


def odd(of: Recording, host: str, **texts: str) -> Recording:
    """The recording in which one host printed something else."""
    answer = of.heard[host]
    captures = {**answer.captures, **{k.replace("_", "-"): Capture(k, 0, t) for k, t in texts.items()}}
    return replace(of, heard={**of.heard, host: replace(answer, captures=captures)})


def alone(of: Recording, host: str) -> Recording:
    return replace(
        of, hosts=tuple(h for h in of.hosts if h.name == host), heard={host: of.heard[host]}, mesh=None
    )


def test_sound_hosts_are_healthy_and_the_list_has_a_version() -> None:
    report = judged(recording(NAMES))
    assert (report.exit_code, told(report)) == (0, set())
    entry = check_report(report)
    assert (entry.run.exam, entry.run.exam_version) == ("node", 1)
    assert {host.status for host in report.hosts} == {HostStatus.HEALTHY}


DISK = "/dev/vda 264212084 1 83035188 1% /\n"
SHM = "path yes /dev/shm\ntmpfs 12342040 0 12342040 0% /dev/shm\n"
FAULTS = from_cases(__file__, "FAULTS", dict[str, tuple[dict[str, Any], str]])


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_of_its_host_alone(name: str) -> None:
    texts, check = FAULTS[name]
    of = recording(NAMES, heard={"node2": heard(2, NAMES, **texts)})
    for report in (judged(of), judged(alone(of, "node2"))):
        said = {found for found in told(report) if found[0] != "clock-skew"}  # a warning beside 1970
        assert (report.exit_code, said) == (1, {(check, "fail", ("node2",))})
    report = judged(of)
    assert [host.name for host in report.hosts if host.status is not HostStatus.HEALTHY] == ["node2"]


SOUND = from_cases(__file__, "SOUND", dict[str, dict[str, Any]])


@pytest.mark.parametrize("name", SOUND)
def test_what_only_looks_like_a_fault_ends_with_0(name: str) -> None:
    of = recording(NAMES, heard={"node2": heard(2, NAMES, **SOUND[name])})
    for report in (judged(of), judged(alone(of, "node2"))):
        assert (report.exit_code, {found for found in told(report) if found[1] == "fail"}) == (0, set())


JOBS = from_cases(__file__, "JOBS", dict[str, str])


@pytest.mark.parametrize("job", JOBS)
def test_a_job_on_the_host_is_one_line(job: str) -> None:
    of = alone(recording(NAMES, heard={"node2": heard(2, NAMES, job_processes=JOBS[job])}), "node2")
    report = judged(of)
    assert (report.exit_code, told(report), report.seen.running) == (0, set(), ("node2",))


def test_a_host_in_a_container_is_not_blamed_for_its_container() -> None:
    texts: dict[str, Any] = {
        "view": {"/.dockerenv": ""},
        "spaces": f"path no /tmp\noverlay 9000 1 9 99% /\n{SHM}",
        "addresses": "2: eth0 inet 10.0.0.2/24 scope global",
    }
    of = alone(recording(NAMES, heard={"node2": heard(2, NAMES, **texts)}), "node2")
    report = judged(of)
    assert report.seen.inside
    assert (report.exit_code, {found[1] for found in told(report)}) == (0, {"warn"})


def test_a_job_may_run_where_only_root_writes() -> None:
    """A container with a /tmp of its own; and a missing /dev/shm has one check."""
    texts = {"spaces": f"gone /dev/shm\npath closed /tmp\n{DISK}"}
    done = reported(recording(NAMES, heard={"node2": heard(2, NAMES, **texts)}, command="preflight"))
    assert {(check, *hosts) for check, _, hosts in told(done)} == {("shm-small", "node2")}


def test_an_unreached_host_is_a_fault() -> None:
    why = UnreachedHost("node2", UnreachedKind.REFUSED, "Connection refused by 10.0.0.2:22.", "Start sshd.")
    of = recording(NAMES)
    of = replace(of, heard={n: a for n, a in of.heard.items() if n != "node2"}, unreached={"node2": why})
    report = judged(of)
    assert report.exit_code == 1
    assert ("host-unreachable", "fail", ("node2",)) in told(report)


@pytest.mark.parametrize("name", ["npu-healthy", "gpu-healthy"])
def test_sound_accelerators_are_sound_each_alone_and_all_together(name: str) -> None:
    of = sample(name)
    assert (judged(of).exit_code, told(judged(of))) == (0, set())
    for host in of.heard:
        assert judged(alone(of, host)).exit_code == 0


def test_a_driver_that_does_not_answer_is_certain_only_if_its_tool_cannot_be_killed() -> None:
    of = sample("gpu-healthy")
    slow = judged(odd(of, "node2", gpus="@ gpus hung 18\n"))
    assert {found for found in told(slow) if found[0] == "gpu-unhealthy"} == {
        ("gpu-unhealthy", "warn", ("node2",))
    }
    stuck = judged(odd(of, "node2", gpus="@ gpus stuck 18\n"))
    assert ("gpu-unhealthy", "fail", ("node2",)) in told(stuck)
    assert stuck.exit_code == 1


def fleet(**texts: Mapping[str, str]) -> Recording:
    """Copies of a sound GPU host, by name, each with what it printed otherwise."""
    of = sample("gpu-healthy")
    model, answer = of.hosts[0], of.heard["node1"]
    own = {"nameplate": as_read({f"{DMI}sys_vendor": "Supermicro", f"{DMI}product_name": "SYS-821GE"})}
    made = {
        name: replace(
            answer,
            host=name,
            captures={**answer.captures, **{k: Capture(k, 0, t) for k, t in {**own, **changed}.items()}},
        )
        for name, changed in texts.items()
    }
    return replace(of, hosts=tuple(replace(model, name=n, address=n) for n in made), heard=made, mesh=None)


DMI = "/sys/class/dmi/id/"
ANSWER = {name: each.stdout for name, each in sample("gpu-healthy").heard["node1"].captures.items()}
GPU = next(
    gpu.name for gpu in Facts(sample("gpu-healthy").heard).get("node1", GPUS).listed
)  # as nvidia-smi calls them
OLD = {"kernel": ANSWER["kernel"].replace("12 (bookworm)", "11 (bullseye)").replace("6.1.0", "5.10.0")}
OTHER = {name: ANSWER[name].replace(GPU, "NVIDIA L40S") for name in ("gpus", "gpu-health", "nvlinks")}
LOGIN = {"devices": "", "gpus": "", "gpu-health": "", "nvlinks": "", "gpu-topology": ""}
ODDLY = {"kernel": ANSWER["kernel"].replace("6.1.0-18", "6.1.0-17")}
DESK = {"nameplate": as_read({f"{DMI}sys_vendor": "Dell Inc.", f"{DMI}product_name": "PowerEdge R450"})}
VM = {"nameplate": as_read({f"{DMI}sys_vendor": "QEMU", f"{DMI}product_name": "Standard PC (Q35)"})}


def named(letter: str, count: int, **texts: str) -> dict[str, dict[str, str]]:
    return {f"{letter}{n}": texts for n in range(1, count + 1)}


MIXED = {
    "two kinds of GPUs": named("a", 3) | named("b", 3, **OTHER, **OLD),
    "old and new systems": named("a", 4) | named("b", 3, **OLD),
    "one of each system": named("a", 1) | named("b", 1, **OLD),
    "a login node": named("a", 4) | named("l", 1, **LOGIN, **OLD, **DESK),
    "login nodes of the same servers": named("a", 4) | named("l", 2, **LOGIN, **OLD),
    "a login node among virtual machines": named("a", 4, **VM) | named("l", 1, **LOGIN, **VM),
}


@pytest.mark.parametrize("fleet_of", MIXED)
def test_a_mixed_but_sound_fleet_is_silent(fleet_of: str) -> None:
    report = judged(fleet(**MIXED[fleet_of]))
    assert (report.exit_code, told(report)) == (0, set())


ONE_ODD = {
    "an older kernel": (named("a", 2) | named("o", 1, **ODDLY), "version-drift"),
    "an older system": (named("a", 4) | named("o", 1, **OLD), "version-drift"),
    "an older kernel, beside another kind": (
        named("a", 3) | named("b", 5, **OLD) | named("o", 1, **ODDLY),
        "version-drift",
    ),
    "no devices on the same server": (named("a", 3) | named("o", 1, **LOGIN), "gpu-missing"),
}


@pytest.mark.parametrize("case", ONE_ODD)
def test_the_odd_host_of_a_kind_is_a_warning(case: str) -> None:
    hosts, check = ONE_ODD[case]
    report = judged(fleet(**hosts))
    assert report.exit_code == 0
    assert {(found[0], *found[2]) for found in told(report)} == {(check, "o1")}
    assert {found[1] for found in told(report)} == {"warn"}


def test_two_odd_hosts_of_many_are_no_kind_of_their_own() -> None:
    report = judged(fleet(**named("a", 21), **named("o", 2, **LOGIN)))
    assert {(found[0], *found[2]) for found in told(report)} == {("gpu-missing", "o1", "o2")}


def test_clocks_are_compared_whatever_the_hosts_are() -> None:
    late = {"clock": str(float(ANSWER["clock"]) - 20), "clock-end": str(float(ANSWER["clock-end"]) - 20)}
    report = judged(fleet(**named("a", 3), **named("l", 1, **LOGIN, **DESK, **late)))
    assert told(report) == {("clock-skew", "warn", ("l1",))}


def test_fewer_devices_than_expected_are_a_fault() -> None:
    of = fleet(**named("a", 3), **named("o", 1, **LOGIN))
    assert ("gpu-missing", "fail", ("o1",)) in told(judged(replace(of, expect={"devices": "8"})))


def test_a_sweep_reads_each_answer_once() -> None:
    """Not all answers for each host: 1,250 hosts took over a minute."""
    reads: Counter[str] = Counter()

    class Counted(dict[str, Capture]):
        def __getitem__(self, key: str) -> Capture:
            reads[key] += 1
            return super().__getitem__(key)

    def count(hosts: int) -> int:
        reads.clear()
        of = fleet(**named("a", hosts))
        of = replace(of, heard={n: replace(a, captures=Counted(a.captures)) for n, a in of.heard.items()})
        judged(of)
        return reads["gpus"]

    assert count(20) <= 2 * count(10)


def test_a_link_that_is_down_beside_others_that_are_up() -> None:
    """On a host whose links are all down nothing may be plugged in."""
    of = sample("npu-healthy")
    links = of.heard["node2"].captures["npu-links"].stdout
    one = judged(alone(odd(of, "node2", npu_links=links.replace("UP", "DOWN", 1)), "node2"))
    assert told(one) == {("device-link-down", "fail", ("node2",))}
    assert {place.device for found in one.findings for place in found.where} == {0}
    none = judged(alone(odd(of, "node2", npu_links=links.replace("UP", "DOWN")), "node2"))
    assert (none.exit_code, told(none)) == (0, {("device-link-down", "warn", ("node2",))})


def test_the_page_says_why_each_check_may_fail_a_node() -> None:
    page = (ROOT / "docs" / "node.md").read_text()
    first, _, second = page.partition("## What may fail a node")[2].partition("Only warnings come from")
    listed = (ROOT / "playbooks" / "exams" / "node.yaml").read_text().partition("# Warnings in any case.")[0]
    fails = set(re.findall(r"^ +- ([a-z-]+)$", listed, re.MULTILINE))
    assert set(re.findall(r"`([a-z]+-[a-z-]+)`", second.partition("\n\n")[0])) == {*NODE.checks} - fails
    assert {
        id for row in re.findall(r"^\| (`.*?) \|", first, re.MULTILINE) for id in re.findall(r"`(.*?)`", row)
    } == fails
    assert f"`node/{NODE.version}`" in page
