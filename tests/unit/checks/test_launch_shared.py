"""What all hosts of a launch must share, or each must have for itself; and sound scripts like it."""

from pathlib import Path
from typing import Any

import pytest

from doctor.facts.network import ResolvedNames
from doctor.facts.software import Environment
from doctor.model import Problem, Severity
from tests.support.cases import from_cases
from tests.support.launches import judged, read

FAULTS = from_cases(__file__, "FAULTS", dict[str, dict[str, Any]])
SOUND = from_cases(__file__, "SOUND", dict[str, dict[str, Any]])
HOSTS = ("node1", "node2")


def problems(case: dict[str, Any], folder: Path) -> list[Problem]:
    addresses = {host: {"eth0": (f"192.168.7.{n}",)} for n, host in enumerate(HOSTS, 1)}
    known = {host: addresses[host]["eth0"] for host in HOSTS}
    logins = zip(HOSTS, case.get("logins", [{}, {}]), strict=True)
    facts = {
        "addresses": addresses,
        "names": {host: ResolvedNames(known, host) for host in HOSTS},
        "identity": {host: host for host in HOSTS},
        "environment": {host: Environment(login) for host, login in logins},
        "view": {},
    }
    launch = read(folder, case["text"])
    return [
        each
        for id in ("launch-variables", "master-not-here")
        for each in judged(id, [launch], facts=facts)[0]
    ]


@pytest.mark.parametrize("name", FAULTS)
def test_hosts_that_do_not_meet(name: str, tmp_path: Path) -> None:
    (problem,) = problems(FAULTS[name], tmp_path)
    assert FAULTS[name]["says"] in problem.summary
    assert problem.severity is (Severity.WARN if FAULTS[name].get("warns") else None)
    assert problem.hosts == tuple(FAULTS[name].get("hosts", ()))


@pytest.mark.parametrize("name", SOUND)
def test_hosts_that_meet(name: str, tmp_path: Path) -> None:
    assert problems(SOUND[name], tmp_path) == []
