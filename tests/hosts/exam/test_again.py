"""`doctor check --again` on real hosts: fixed, still there, or not decided, while faults are repaired one by
one.
"""

import json
from pathlib import Path

import pytest

from tests.lab import Lab
from tests.support.cases import from_cases
from tests.support.faults import HOSTS

CLOSED = from_cases(__file__, "CLOSED", str)
JOB = ("--backend", "gloo", "--ranks-per-host", "8", "--master-port", "29511", "--expect", "shm_mb=100")


@pytest.mark.parametrize("form", ["--save", pytest.param("--json", marks=pytest.mark.long)])
def test_one_after_the_other_is_repaired(form: str, lab: Lab, tmp_path: Path) -> None:
    then, now = tmp_path / "then.json", tmp_path / "now.json"
    lab["node1"].sysctl("net.core.somaxconn", 16)
    lab["node2"].shm("64m")
    lab["node3"].nft(CLOSED)
    assert lab.doctor("check", HOSTS, *JOB, "--need-hosts", "1", form, str(then)).returncode == 0

    def again(*options: str) -> tuple[int, dict[str, str]]:
        done = lab.doctor("check", "--again", str(then), "--json", str(now), *options)
        assert "--master-port 29511 --ranks-per-host 8" in done.stderr
        found = json.loads(now.read_bytes())["again"]
        return done.returncode, {each["check"]: each["now"] for each in found}

    everything = ("somaxconn-low", "shm-small", "firewall-blocks", "port-unreachable")
    assert again() == (1, dict.fromkeys(everything, "still there"))
    lab["node1"].sysctl("net.core.somaxconn", 65535)
    lab["node2"].shm("256m")
    fixed = {"somaxconn-low": "fixed", "shm-small": "fixed"}
    left = {"firewall-blocks": "still there", "port-unreachable": "still there"}
    assert again() == (1, fixed | left)
    lab["node3"].do("nft flush ruleset")
    assert again() == (0, dict.fromkeys(everything, "fixed"))
    lab["node2"].program("df", "exit 1")
    assert again() == (3, dict.fromkeys(everything, "fixed") | {"shm-small": "not decided"})
