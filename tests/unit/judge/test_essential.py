"""Facts that only some jobs need: if such a fact is undecided, the host is not proved healthy."""

from dataclasses import replace
from typing import Any

from doctor.job.launch.files import read_launch_files
from doctor.job.wishes import JobWishes
from doctor.judge.verdict import Report
from doctor.model import Host, HostStatus, MissingFact, Status
from tests.support.cases import cases
from tests.support.recordings import HEALTHY, heard, recording, report
from tests.support.reports import seated
from tests.support.smoke.results import healthy

NAMES = ["node1", "node2", "node3"]
TORCH = HEALTHY["python"] + "package torch 2.13.0\n"
BROKEN = MissingFact("python", "it ended with 1: Fatal Python error: init_fs_encoding")
SAVED = "== iptables-legacy\n*filter\n:INPUT ACCEPT [0:0]\n-A INPUT %s\nCOMMIT\n== end 0\n"


def judged(one: dict[str, Any], others: dict[str, Any] | None = None, **changed: Any) -> Report:
    """Three hosts; `one` replaces parts of node2's answer."""
    said = {name: heard(n, NAMES, **(one if n == 2 else others or {})) for n, name in enumerate(NAMES, 1)}
    return report(recording(NAMES, heard=said, **changed))


def unproved(of: Report) -> set[str]:
    return {host.name for host in of.hosts if host.status is HostStatus.UNEXAMINED}


@cases
def test_a_rule_that_the_traffic_decides_is_not_proved_harmless(rule: str) -> None:
    made = judged({"firewall": SAVED % rule})
    assert (made.exit_code, unproved(made)) == (3, {"node2"})
    (warned,) = [found for found in made.findings if found.status is Status.WARN]
    assert (warned.check, warned.hosts) == ("firewall-blocks", ("node2",))
    assert warned.remedy
    assert any("-j ACCEPT" in line for line in warned.remedy.commands)
    assert any("--skip firewall-blocks" in found.summary for found in made.findings)


@cases
def test_a_rule_that_connections_pass_or_that_is_not_about_them_is_none(rule: str) -> None:
    made = judged({"firewall": SAVED % rule})
    assert made.exit_code == 0
    assert not [found for found in made.findings if found.status is Status.WARN]


def test_a_python_that_does_not_start_where_the_other_hosts_have_torch() -> None:
    made = judged({"python": BROKEN}, {"python": TORCH})
    assert (made.exit_code, unproved(made)) == (3, {"node2"})
    (reason,) = [host.reason or "" for host in made.hosts if host.name == "node2"]
    assert "the job's Python could not be examined (it ended with 1" in reason
    assert "--python" in reason


def test_a_python_that_was_named() -> None:
    hosts = tuple(Host(name, f"10.0.0.{n}", python="/opt/py") for n, name in enumerate(NAMES, 1))
    assert unproved(judged({"python": BROKEN}, hosts=hosts)) == {"node2"}


@cases
def test_the_launch_says_whether_python_is_needed(line: str, code: int, tmp_path: Any) -> None:
    path = tmp_path / "run.sh"
    path.write_text(f"{line}\n")
    made = judged({"python": BROKEN}, wishes=JobWishes(launch=read_launch_files([path])))
    assert made.exit_code == code


def test_hosts_without_any_torch_need_no_python() -> None:
    assert judged({"python": BROKEN}).exit_code == 0


def test_a_training_that_ran_there_proves_it() -> None:
    run = healthy(seated(NAMES, each=2, tp=2))
    made = judged({"python": BROKEN}, {"python": TORCH}, smoke_wanted=True, smoke=(run,))
    assert "torch-missing" not in {found.check for found in made.findings if found.essential}


def test_nothing_is_essential_yet_where_a_training_follows() -> None:
    of = recording(NAMES)
    limited = heard(2, NAMES, firewall=SAVED % "-p tcp -m connlimit --connlimit-above 4 -j REJECT")
    made = report(replace(of, heard={**of.heard, "node2": limited}), tentative=True)
    assert made.healthy_hosts == tuple(NAMES)
