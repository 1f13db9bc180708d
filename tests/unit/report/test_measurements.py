"""The green lines: a tick with values only if checks passed on all hosts; and what was not tried."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from doctor.job.wishes import JobWishes
from doctor.judge.examine import build_report
from doctor.judge.fact_table import FactRow
from doctor.judge.playbook import load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import ExaminedChecks, Report
from doctor.mesh import pairs_of
from doctor.model import Backend, MissingFact, SourcedValue, Verdict
from doctor.report.page.areas import AREAS
from doctor.report.page.examination import unexamined
from doctor.report.page.facts import spread
from doctor.report.page.measurements import NOT_FOR_THIS, measured, passed_lines
from tests.support.cases import cases
from tests.support.recordings import FILES, HEALTHY, NOW, answered, heard, mesh, recording, report, syllabus
from tests.support.reports import seated, smoke_runs
from tests.support.smoke.results import healthy

NAMES = [f"node{n}" for n in range(1, 5)]
KNOWN = answered(recording(NAMES))
ROOM = HEALTHY["spaces"].replace("tmpfs 12342040 0 12342040", "tmpfs {0} 0 {0}")


def made(changed: Mapping[int, Mapping[str, Any]] | None = None, **more: Any) -> Report:
    answers = {f"node{n}": heard(n, NAMES, **captures) for n, captures in (changed or {}).items()}
    of = recording(NAMES, heard=answers, **more)
    return build_report(read_recording(of), syllabus(KNOWN, smoke=of.smoke_wanted), load_remedies())


def ticked(of: Report) -> dict[str, str]:
    return {line.area: line.text for line in measured(of).ticked}


def doubtful(of: Report) -> dict[str, str]:
    return {line.area: line.text for line in measured(of).doubtful}


def left(of: Report) -> dict[str, str]:
    return {line.area: line.text for line in measured(of).left}


def test_an_area_whose_line_measures_none_of_the_checks_that_were_chosen_names_them() -> None:
    of = recording(NAMES)
    chosen = tuple(check for check in KNOWN if check.id in ("swap-active", "nproc-low"))
    report = build_report(read_recording(of), syllabus(chosen), load_remedies())
    assert set(ticked(report)["memory"].split(", ")) == {"swap-active", "nproc-low"}


def test_a_healthy_report_says_what_was_measured() -> None:
    healthy = made()
    assert healthy.verdict is Verdict.HEALTHY
    assert ticked(healthy) == {
        "reach": "4 hosts over SSH, clocks within 1 ms, names agree",
        "ports": "somaxconn 4096, syn backlog 2048, ephemeral 32768-60999, none reserved, port 29500 free",
        "memory": "/dev/shm 11.8 GB, 23.0 GB free of 23.5 GB, nofile 20000, memlock unlimited",
        "firewall": "no rule stops the job's connections",
        "network": (
            "12 of 12 connections work both ways (ephemeral), gloo takes the same addresses, MTU 1500, "
            "10 Gb/s, on eth0"
        ),
        "software": "Debian GNU/Linux 12 (bookworm), Linux 6.1.0-18-amd64, Python 3.11.2, no torch",
    }
    assert left(healthy) == {"devices": "none found", "training": "doctor smoke"}


@pytest.mark.parametrize(
    ("ahead", "behind", "says"),
    [(0.1, 0, "within 100 ms"), (0.6, 0.399, "within 999 ms"), (0.7, 0.7, "within 1.4 s")],
)
def test_how_far_clocks_are_apart(ahead: float, behind: float, says: str) -> None:
    def off(by: float) -> dict[str, str]:
        return {"clock": f"{NOW + by:.3f}", "clock_end": f"{NOW + 0.5 + by:.3f}"}

    assert says in ticked(made({2: off(ahead), 3: off(-behind)}))["reach"]


def test_a_value_that_no_check_judged_is_not_ticked() -> None:
    """It may be bad: a limit on open files that is far too low, beside a /dev/shm that was examined."""
    asked = [check for check in find_checks().checks if check.id in ("shm-small", "host-unreachable")]
    of = build_report(read_recording(recording(NAMES)), syllabus(asked), load_remedies())
    assert ticked(of)["memory"] == "/dev/shm 11.8 GB"


def test_lines_come_in_the_order_of_the_areas() -> None:
    areas = list(ticked(made()))
    assert areas == [area for area in AREAS if area in areas]


def test_values_that_differ_are_a_range() -> None:
    lines = ticked(made({2: {"spaces": ROOM.format(13421772)}}))
    assert lines["memory"].startswith("/dev/shm 11.8-12.8 GB, ")


@pytest.mark.parametrize(
    ("changed", "area"),
    [
        ({"spaces": ROOM.format(65536)}, "memory"),
        ({"ports": {**FILES["ports"], "/proc/sys/net/core/somaxconn": "4"}}, "ports"),
        ({"links": {"/sys/class/net/eth0/mtu": "9000"}}, "network"),
        ({"spaces": MissingFact("spaces", "no answer")}, "memory"),
        ({"firewall": MissingFact("firewall", "needs root")}, "firewall"),
        ({"clock": "1795167575.0", "clock-end": "1795167575.5"}, "reach"),
    ],
)
def test_a_fault_or_doubt_on_one_host_takes_the_tick_of_its_area_alone(changed: Any, area: str) -> None:
    """It is not called untried either, because the report mentions the finding elsewhere."""
    sick = made({3: {key.replace("-", "_"): value for key, value in changed.items()}})
    assert ticked(made()).keys() - ticked(sick).keys() == {area}
    assert area not in left(sick)


def test_what_is_undecided_leaves_the_rest_of_its_area_to_be_seen() -> None:
    """The area does not vanish from a green report; an area with a fault has no such line."""
    unread = made({3: {"spaces": MissingFact("spaces", "no answer")}})
    assert doubtful(made()) == {}
    line = doubtful(unread)["memory"]
    assert "/dev/shm 11.8 GB (not reported by 1 of 4 hosts)" in line
    assert line.endswith("; not decided: no answer")
    assert "memory" not in doubtful(made({3: {"spaces": ROOM.format(65536)}}))


def test_a_torch_that_cannot_run_on_npus_is_not_ticked_for_hccl() -> None:
    """A torch without torch_npu suffices for a job over gloo; a host without torch is reported separately."""
    plain = "python 3.11.2 /usr/bin/python3\npackage torch 2.5.1+cpu\n"
    able = plain + "package torch-npu 2.5.1\nhccl True\n"

    def told(python: str, backend: str) -> Report:
        answers = {name: heard(n, NAMES, python=python) for n, name in enumerate(NAMES, 1)}
        whole = replace(
            recording(NAMES, heard=answers),
            wishes=JobWishes(backend=SourcedValue(Backend(backend), "--backend")),
        )
        return build_report(read_recording(whole), syllabus(KNOWN), load_remedies())

    said = doubtful(told(plain, "hccl"))["software"]
    assert "torch 2.5.1+cpu" in said
    assert said.endswith("; not decided: the job runs over hccl, and torch has no torch_npu")
    assert "software" in ticked(told(plain, "gloo"))
    assert "software" in ticked(told(able, "hccl"))
    assert "software" in ticked(told("python 3.11.2 /usr/bin/python3\n", "hccl"))


def test_a_kernel_log_that_may_not_be_read_is_said_and_leaves_the_versions_ticked() -> None:
    unread = made({n: {"kernel_log": MissingFact("kernel-log", "needs root")} for n in range(1, 5)})
    assert "software" in ticked(unread)
    assert left(unread)["kernel log"] == "undecided"


def test_trouble_in_the_kernel_log_takes_the_tick() -> None:
    assert "software" not in ticked(
        made({1: {"kernel_log": "uptime 90000.0\n[89990.0] Out of memory: Killed process 1 (x)"}})
    )


def test_hosts_that_did_not_answer_leave_no_tick() -> None:
    """A tick is for all hosts."""
    whole = recording(NAMES)
    partial = replace(whole, heard={"node1": whole.heard["node1"]}, unfinished=tuple(NAMES[1:]), mesh=None)
    assert ticked(report(partial, stopped_by=2)) == {}


def test_connections_that_were_not_tried_are_said() -> None:
    """As with --mesh none."""
    whole, checks = made(mesh=None), ("port-unreachable", "large-packets-lost")
    alone = replace(
        whole,
        results=tuple(result for result in whole.results if result.check not in checks),
        findings=tuple(finding for finding in whole.findings if finding.check not in checks),
        checks=ExaminedChecks({id: scope for id, scope in whole.checks.scopes.items() if id not in checks}),
    )
    assert ticked(alone)["network"] == "MTU 1500, 10 Gb/s, on eth0"
    assert left(alone)["connections"] == "left out"


def test_one_connection_that_fails_takes_the_tick() -> None:
    assert "network" not in ticked(made(mesh=mesh(NAMES, ("node1", "node2"))))


def test_a_mesh_of_some_pairs_says_how_many_there_could_be() -> None:
    full = mesh(NAMES)
    near = pairs_of(NAMES, "ring")
    some = tuple(link for link in full.links if (link.source, link.target) in near)
    line = ticked(made(mesh=replace(full, shape="ring", links=some)))["network"]
    assert line.startswith("8 of 8 connections work both ways (ephemeral; of 12 that there can be)")


@pytest.mark.parametrize("hosts", [2, 4])
def test_a_rate_that_nothing_was_compared_with_is_not_ticked(hosts: int) -> None:
    names = NAMES[:hosts]
    of = report(recording(names, smoke_wanted=True, smoke=(healthy(seated(names, each=2, tp=2)),)))
    said = {line.area: line for line in measured(of).left}
    assert ("slowest link" in ticked(of)["training"]) == (hosts == 4)
    assert ("link rates" in said) == (hosts == 2)
    if hosts == 2:
        assert said["link rates"].left == "not judged"
        assert said["link rates"].text.endswith("only the two directions between two hosts could be compared")


@cases
def test_rates_that_were_not_judged_are_said_also_beside_a_fault(hosts: int, backend: Any, why: str) -> None:
    names = NAMES[:hosts]
    plan = replace(seated(names, each=2, tp=2), backend=backend)
    broken = mesh(names, ("node1", "node2"))
    of = report(recording(names, mesh=broken, smoke_wanted=True, smoke=(healthy(plan),)))
    assert of.verdict is not Verdict.HEALTHY
    assert dict(unexamined(of).pairs)["link rates"].startswith("not judged: ")
    assert why in dict(unexamined(of).pairs)["link rates"]
    assert "link rates" not in {line.area for line in measured(of).left}


def test_a_training_that_passed_tells_its_loss() -> None:
    trained = made(smoke_wanted=True, smoke=(smoke_runs()["passed"],))
    line = ticked(trained)["training"]
    assert line.startswith("8 ranks, ")
    assert re.search(r", loss \d\.\d\d → \d\.\d\d", line)
    assert "training" not in left(trained)


@pytest.mark.parametrize("run", ["hung", "fewer", "interrupted"])
def test_a_training_that_failed_or_left_hosts_out_is_not_ticked(run: str) -> None:
    assert "training" not in ticked(made(smoke_wanted=True, smoke=(smoke_runs()[run],)))


def test_a_training_that_was_not_made_says_why() -> None:
    assert left(made(smoke_wanted=True, no_smoke="no host passed the checks"))["training"] == (
        "no host passed the checks"
    )


def row(**values: Any) -> FactRow:
    return FactRow("key", "title", "ports", values, {host: str(value) for host, value in values.items()})


@cases
def test_spread(values: tuple[Any, ...], shown: tuple[str, ...], said: str) -> None:
    told = {f"node{n}": value for n, value in enumerate(values)}
    words = {f"node{n}": text for n, text in enumerate(shown)}
    assert spread(FactRow("key", "title", "ports", told, words), [*told, "silent"]) == said


def test_what_passed_is_a_line_an_area() -> None:
    lines = {line.area: line.text for line in passed_lines(made({2: {"spaces": ROOM.format(65536)}}))}
    assert list(lines) == [area for area in (*AREAS, NOT_FOR_THIS) if area in lines]
    assert "node[1,3-4]: shm-small" in lines["memory"]
    assert "memory-low" in lines["memory"].split(";")[0]
    assert len(lines) <= len(AREAS) + 1


def test_what_does_not_apply_is_one_line() -> None:
    line = next(line for line in passed_lines(made()) if line.area == NOT_FOR_THIS)
    count = int(line.text.partition(" checks: ")[0])
    applies = {result.check for result in made().results if result.status.value != "skip"}
    assert count == len(made().checks.scopes) - len(applies)
    assert "(only for hccl jobs)" in line.text
    assert line.text.endswith("for other reasons")
