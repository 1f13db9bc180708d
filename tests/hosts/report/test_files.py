"""The files that a run leaves for scripts: host lists, recordings, and whether enough hosts are healthy."""

import json
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.support.faults import ALONE, Examiner, Outcome, replay


@pytest.fixture
def two_of_four(lab: Lab, examine: Examiner) -> Outcome:
    """One host is faulty, one is out of reach, one has a warning."""
    lab["node2"].shm("64m")
    lab["node3"].kill_sshd()
    lab["node4"].limits(nofile=512)
    return examine(*ALONE, *lists(examine.folder))


def lists(folder: Path) -> tuple[str, ...]:
    return ("--healthy-hosts", str(folder / "healthy"), "--faulty-hosts", str(folder / "faulty"))


def test_lists_of_hosts(two_of_four: Outcome, tmp_path: Path) -> None:
    assert two_of_four.code == 1
    assert (tmp_path / "healthy").read_text() == "node1\nnode4\n"
    assert (tmp_path / "faulty").read_text() == "node2\nnode3\n"
    assert (
        two_of_four.report["summary"] | {"healthy": 2, "faulty": 1, "unexamined": 1, "fail": 2, "warn": 1}
        == (two_of_four.report["summary"])
    )


def test_enough_healthy_hosts(two_of_four: Outcome) -> None:
    """The recording is judged again under another rule."""
    codes = {needed: replay(two_of_four, "--need-hosts", str(needed))[0] for needed in (1, 2, 3, 4)}
    assert codes == {1: 0, 2: 0, 3: 1, 4: 1}
    _, report = replay(two_of_four, "--need-hosts", "2")
    assert report["verdict"] == "faulty"


def test_a_fault_of_all_hosts_leaves_no_healthy_host(lab: Lab, examine: Examiner) -> None:
    for host in lab:
        host.kill_sshd()
    outcome = examine(*ALONE, "--need-hosts", "1", *lists(examine.folder))
    assert outcome.code == 1
    assert (examine.folder / "healthy").read_text() == ""
    assert (examine.folder / "faulty").read_text() == "node1\nnode2\nnode3\nnode4\n"


def test_a_recording_can_be_judged_with_other_expectations(lab: Lab, examine: Examiner) -> None:
    lab["node2"].limits(nofile=4096)
    outcome = examine(*ALONE)
    assert outcome.code == 0
    code, report = replay(outcome, "--expect", "nofile=8192")
    assert code == 0
    (found,) = report["findings"]
    assert (found["check"], found["status"], found["hosts"]) == ("nofile-low", "warn", ["node2"])
    chosen = {row["check"] for row in replay(outcome, "--only", "shm-*")[1]["results"]}
    assert chosen == {"shm-small", "shm-full", "host-unreachable", "probe-incomplete"}


def test_a_recording_is_private_and_gives_the_same_bytes(lab: Lab, examine: Examiner) -> None:
    """Whatever a host printed: an unreadable answer, unusual characters, secrets."""
    lab["node4"].shell("cut", after=3000)
    lab["node2"].sshd(SetEnv="NCCL_NOTE=\"caf\u00e9 \u2028 'quoted'\"")
    outcome = examine()
    assert outcome.recording.stat().st_mode & 0o077 == 0
    replay(outcome)
    first, again = (
        (outcome.recording.with_name(name)).read_bytes() for name in ("report.json", "replayed.json")
    )
    assert first.partition(b'"plan":')[2] == again.partition(b'"plan":')[2]


def test_the_text_goes_to_stderr_when_json_goes_to_stdout(lab: Lab) -> None:
    done = lab.doctor("check", "node1", *ALONE, "--json", "-")
    assert json.loads(done.stdout)["verdict"] == "healthy"
    assert "Healthy: " in done.stderr
