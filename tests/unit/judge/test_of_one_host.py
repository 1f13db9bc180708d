"""Which checks find the same on a host whatever other hosts are examined: only then does `verify` name that
host alone.

It follows from what a check needs. Nobody lists the checks, so nobody can forget one.
"""

from dataclasses import replace
from typing import Any

import pytest

from doctor.api import EXPECT, EXPECTS, HERE, PLAN, RANKS, Check, Fact, Read, Run, RunValue, check, maybe
from doctor.exam.demo import DEMOS, load_demo
from doctor.facts.network import LISTENERS, NAMES
from doctor.facts.run import MESH
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.model import Backend, Scope
from doctor.recording import Recording
from tests.support.recordings import HEALTHY, answered, heard, recording, syllabus
from tests.support.reports import SMALL_SHM

CHECKS = find_checks().checks
OF_ONE = [each for each in CHECKS if each.of_one_host]
OWN = Fact("own", Run("true"), str)
FOUR = [f"node{n}" for n in range(1, 5)]
SICK = recording(
    FOUR,
    heard={
        "node2": heard(
            2, FOUR, spaces=SMALL_SHM, memory={"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 9 kB"}
        ),
        "node4": heard(
            4,
            FOUR,
            limits={"/proc/self/limits": "Max processes 99 99 processes\nMax open files 9 9 files"},
            spaces=HEALTHY["spaces"].replace("83035188 1% /\n", "83035 99% /\n"),
        ),
    },
)


@pytest.mark.parametrize(
    ("needs", "options", "alone"),
    [
        ((OWN, EXPECT, RANKS), {}, True),
        ((maybe(OWN), Fact("file", Read(("/etc/fstab",)), str)), {}, True),
        ((OWN, PLAN), {}, False),
        ((OWN, HERE), {}, False),
        ((OWN, maybe(MESH)), {}, False),
        ((OWN, EXPECTS), {}, False),
        ((OWN, RunValue("of tomorrow")), {}, False),
        ((replace(OWN, later=True),), {}, False),
        ((Fact("asks about the job", Run(lambda ask: " ".join(ask.names)), str),), {}, False),
        ((NAMES,), {}, False),
        ((LISTENERS,), {}, False),
        ((OWN,), {"scope": Scope.CLUSTER}, False),
        ((OWN,), {"several_hosts": True}, False),
        ((OWN,), {"backends": (Backend.NCCL,)}, False),
    ],
)
def test_it_follows_from_what_a_check_needs(needs: Any, options: Any, alone: bool) -> None:
    make: Any = check("made-up", *needs, **options)
    assert make(lambda *_: iter(())).of_one_host is alone


def test_what_a_host_has_alone_and_what_is_judged_against_the_job() -> None:
    alone = {each.id for each in OF_ONE}
    assert alone >= {"shm-small", "shm-full", "memory-low", "disk-full", "nproc-low", "memlock-low"}
    job = ("firewall-blocks", "route-leads-nowhere", "somaxconn-low", "syn-backlog-low", "hostname-loopback")
    assert not alone & {*job, "port-in-use", "nofile-low", "arp-table-small", "interface-missing"}


@pytest.mark.parametrize("name", ["sick", *DEMOS])
def test_they_find_the_same_on_a_host_alone(name: str) -> None:
    whole = SICK if name == "sick" else load_demo(name)
    held = {each.id for each in answered(whole)}
    checks = [each for each in OF_ONE if each.id in held]
    together = _results(whole, checks)
    found = 0
    for host in whole.hosts:
        hosts = {host.name: whole.heard[host.name]} if host.name in whole.heard else {}
        alone = replace(whole, hosts=(host,), heard=hosts, mesh=None, smoke=(), unreached={}, unfinished=())
        own = [each for each in together if host.name in each[0]]
        assert _results(alone, checks) == own
        found += sum(each[3] is not None for each in own)
    assert found >= 3 or name != "sick"


def _results(of: Recording, checks: list[Check]) -> list[Any]:
    made = build_report(read_recording(of), syllabus(checks), load_remedies())
    return [(each.hosts, each.check, each.status, each.problem) for each in made.results]
