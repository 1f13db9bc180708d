"""A job over hosts of the lab: `doctor slow` names the rank, the host or the link, and leaves nothing."""

import json
from typing import Any

import pytest

from tests.lab import Lab
from tests.support.slow.hosts import training

pytestmark = pytest.mark.slow

SECONDS = "5"
"""On a slow machine too few, if only connections are seen."""


def slow(lab: Lab, *words: str, seconds: str = SECONDS, **more: Any) -> tuple[int, dict[str, Any]]:
    done = lab.doctor("slow", *words, "--for", seconds, "--json", "-", **more)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def decided(lab: Lab, *words: str) -> tuple[int, dict[str, Any]]:
    """The first look that decides: on a slow machine short ones do not, and accuse nobody."""
    for seconds in (SECONDS, "10", "20", "40"):
        code, said = slow(lab, *words, seconds=seconds)
        if code != 3:
            break
        assert said["findings"] == [], said["headline"]
    return code, said


def the_one(said: dict[str, Any]) -> dict[str, Any]:
    """The only finding."""
    assert len(said["findings"]) == 1, (said["headline"], said["slow"])
    found: dict[str, Any] = said["findings"][0]
    return found


@pytest.mark.main
def test_a_job_over_three_hosts(lab: Lab) -> None:
    """A late rank, nobody, a slow link; another user is told that nothing shows who is late."""
    hosts = [lab["node1"], lab["node2"], lab["node3"]]
    with training(hosts, 1) as job:
        before = [host.snapshot() for host in hosts]
        job.fault("loader", 1)
        code, said = decided(lab, "node[1-3]")
        found = the_one(said)
        assert (code, found["rank"], found["host"], found["cause"]) == (1, 1, "node2", "data loader"), said
        code, said = slow(lab, "node[1-3]", seconds="12", user="trainee")
        assert (code, said["findings"]) == (3, []), said
        assert "may not be read" in said["headline"], said
        job.fault("none")
        code, said = decided(lab, "node[1-3]")
        assert (code, said["findings"]) == (0, []), said["headline"]
        assert said["slow"]["state"] == "nobody", said["slow"]
        job.hosts[2].slow_link("8mbit")
        job.runs()
        code, said = decided(lab, "node[1-3]")
        found = the_one(said)
        assert (code, found["hosts"][0], found["slow"]["lag"]) == (1, "node3", "slow link"), said
        assert len(found["hosts"]) == 2, "each sends to one other: either end may be at fault"
        for host, was in zip(hosts, before, strict=True):
            host.await_that(lambda host=host, was=was: not host.leftovers(was), "clean end")  # type: ignore[misc]
