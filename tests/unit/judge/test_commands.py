"""The commands that findings suggest fit the run that made them."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from doctor import cli
from doctor.judge.commands import fitting
from doctor.judge.engine import Facts
from doctor.judge.verdict import Report
from doctor.model import Finding, Host, Remedy
from doctor.transport.way import Way
from tests.support.cases import cases
from tests.support.recordings import heard, mesh, recording
from tests.support.reports import NAMES, SMALL_SHM, report, smoke_runs
from tests.support.tampered import SAMPLES

LAB = Way(reached=(("--user", "root"), ("--ssh-config", "/tmp/lab/config"), ("--sudo",)))
OFFERED = ["sudo hccn_tool -i 3 -ip -s address 10.20.2.13 netmask 255.255.0.0"]
"""The other devices of its host have 10.20.2.10 to .17."""
REACH = "--user root --ssh-config /tmp/lab/config --sudo"
SMALL = replace(recording(NAMES, heard={"node2": heard(2, NAMES, spaces=SMALL_SHM)}))


def typed(made: Report, check: str) -> list[str]:
    remedies = [each.remedy for each in made.findings if each.check == check]
    return [command for remedy in remedies if remedy for command in remedy.commands]


def fitted(*commands: str, way: Way | None = LAB, hosts: Sequence[str] = NAMES, **run: Any) -> list[str]:
    """The commands of a finding after fitting them to the run."""
    (sick,) = (each for each in report(SMALL).findings if each.check == "shm-small")
    said = run.pop("hosts_said", None) or recording(hosts).hosts
    of = replace(recording(hosts), hosts=said, way=way, **run)
    finding: Finding = replace(sick, remedy=Remedy("x", commands))
    made = fitting([finding], of, "preflight", ("version-drift", "torch-missing", "mtu-mismatch"), Facts({}))
    return list(made[0].remedy.commands) if made[0].remedy else []


def test_they_reach_the_hosts_as_the_run_did() -> None:
    hung = recording(NAMES, smoke_wanted=True, smoke=(smoke_runs()["hung"],))
    (old,) = (line for line in typed(report(hung), "smoke-hang") if line.startswith("doctor"))
    (new,) = (
        line for line in typed(report(replace(hung, way=LAB)), "smoke-hang") if line.startswith("doctor")
    )
    assert old.startswith("doctor smoke node3")
    assert new == f"{old.removesuffix(' --python python3')} {REACH}"


@cases
def test_each_form_of_command(command: str, made: str) -> None:
    assert fitted(command) == [made]
    assert fitted(command, way=None) == [command], "older recordings replay as they did"


def test_the_job_is_the_same() -> None:
    way = Way(
        reached=(("--sudo",),), asked=(("--backend", "gloo"), ("--only", "shm-*"), ("--need-hosts", "4"))
    )
    assert fitted("doctor smoke node3", way=way) == ["doctor smoke node3 --backend gloo --sudo"]


def test_this_machine_is_not_named() -> None:
    local = Way(reached=(("--local",),))
    assert fitted("doctor check vm --exam full", way=local, hosts=["vm"]) == [
        "doctor check --exam full --local"
    ]


@cases
def test_what_was_just_run_is_not_suggested(run: str, command: str, hosts: Sequence[str]) -> None:
    assert fitted("uptime", command, hosts=hosts, command=run) == ["uptime"]
    assert fitted("# in words", command, hosts=hosts, command=run) == [], "words alone are nothing to type"
    assert fitted("uptime", command, hosts=hosts, command=run, way=None) == ["uptime", command]


@cases
def test_what_asks_for_more_is(run: str, command: str) -> None:
    assert len(fitted("uptime", command, command=run)) == 2


def test_ssh_reaches_the_hosts_as_the_run_did() -> None:
    closed = recording(NAMES, mesh=mesh(NAMES, *((name, "node3") for name in NAMES if name != "node3")))
    (old,) = (line for line in typed(report(closed), "port-unreachable") if line.startswith("ssh"))
    (new,) = (
        line for line in typed(report(replace(closed, way=LAB)), "port-unreachable") if line.startswith("ssh")
    )
    assert new == old.replace("ssh node3 ", "ssh -F /tmp/lab/config root@10.0.0.3 ")
    own = (Host("node1", "10.9.9.9", user="me", port=2222, jump="gate"),)
    found = fitted(
        "ssh node1 uptime", "ssh gate uptime", "ssh -v node1 true", hosts=["node1"], hosts_said=own
    )
    assert found == [
        "ssh -F /tmp/lab/config -p 2222 -J gate me@10.9.9.9 uptime",
        "ssh gate uptime",
        "ssh -v node1 true",
    ]

    theirs = (Host("node1", "-oProxyCommand=evil"),)
    assert fitted("ssh node1 uptime", hosts_said=theirs) == ["ssh node1 uptime"]


def test_a_device_without_an_address_is_offered_the_free_one_of_its_rail(tmp_path: Path) -> None:
    sample, file, json = SAMPLES / "npu-no-address.run.json.gz", tmp_path / "run", tmp_path / "report"
    for way, offered in ((None, []), (msgspec.to_builtins(LAB), OFFERED)):
        recorded = msgspec.json.decode(gzip.decompress(sample.read_bytes()))
        file.write_bytes(msgspec.json.encode({**recorded, "way": way}))
        assert cli.run(["check", "--replay", str(file), "--json", str(json), "-q"]) == 1
        found = msgspec.json.decode(json.read_bytes())["findings"]
        (commands,) = (f["remedy"]["commands"] for f in found if f["check"] == "device-ip-missing")
        assert [command for command in commands if " -s " in command and command[0] != "#"] == offered
