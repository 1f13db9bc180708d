"""A job over hosts of the lab: `doctor slow` names the rank, the host or the link, and leaves nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.hang.test_torchrun import until
from tests.lab import Host, Lab
from tests.support.injob import Job, environment, torchrun_argv
from tests.support.slow.ranks import JOB, truth

pytestmark = pytest.mark.slow

FOLDER = "/tmp/slow-job"
SECONDS = "5"


class LabJob:
    def __init__(self, hosts: Sequence[Host], job: Job, world: int) -> None:
        self.hosts, self.job, self.world = hosts, job, world

    def fault(self, name: str, rank: int = -1, ms: float = 50) -> None:
        for host in self.hosts:
            folder = place(host)
            (folder / "fault.new").write_text(f"{name} {rank} {ms}")
            (folder / "fault.new").rename(folder / "fault")

    def steps(self, rank: int) -> int:
        return max(len(truth(place(host) / f"truth.{rank}")) for host in self.hosts)

    def runs(self) -> None:
        """Wait until every rank has made some more steps."""
        before = [self.steps(rank) for rank in range(self.world)]
        until(lambda: all(self.steps(rank) >= before[rank] + 5 for rank in range(self.world)), self.job)


def place(host: Host) -> Path:
    return Path(f"/proc/{host.pid}/root{FOLDER}")


@contextmanager
def training(hosts: Sequence[Host], ranks: int, **env: str) -> Iterator[LabJob]:
    job = Job()
    try:
        for number, host in enumerate(hosts):
            host.dirty = True
            words = [*torchrun_argv(hosts, ranks, number), str(JOB)]
            script = (
                f'mkdir -p {FOLDER}; echo none -1 0 > {FOLDER}/fault; mkfifo {FOLDER}/shard; cd /; exec "$@"'
            )
            job.start(host.enter(["sh", "-c", script, "job", *words]), environment(FOLDER=FOLDER, **env))
        made = LabJob(hosts, job, ranks * len(hosts))
        made.runs()
        yield made
    finally:
        job.close()


def slow(lab: Lab, *words: str, **more: Any) -> tuple[int, dict[str, Any]]:
    done = lab.doctor("slow", *words, "--for", SECONDS, "--json", "-", **more)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def the_one(said: dict[str, Any]) -> dict[str, Any]:
    """The only finding."""
    assert len(said["findings"]) == 1, (said["headline"], said["slow"])
    found: dict[str, Any] = said["findings"][0]
    return found


def test_a_job_over_three_hosts(lab: Lab) -> None:
    """A late rank, nobody, a slow link; as another user, by sockets alone."""
    hosts = [lab["node1"], lab["node2"], lab["node3"]]
    with training(hosts, 1) as job:
        before = [host.snapshot() for host in hosts]
        job.fault("loader", 1)
        code, said = slow(lab, "node[1-3]")
        found = the_one(said)
        assert (code, found["rank"], found["host"], found["cause"]) == (1, 1, "node2", "data loader"), said
        code, said = slow(lab, "node[1-3]", user="trainee")
        found = the_one(said)
        assert (code, found["host"]) == (1, "node2"), said
        assert said["slow"]["known_by"] == "sockets"
        job.fault("none")
        code, said = slow(lab, "node[1-3]")
        assert (code, said["findings"], said["slow"]["state"]) == (0, [], "nobody"), said
        job.hosts[2].slow_link("8mbit")
        job.runs()
        code, said = slow(lab, "node[1-3]")
        found = the_one(said)
        assert (code, found["host"], found["slow"]["lag"]) == (1, "node3", "slow link"), said
        for host, was in zip(hosts, before, strict=True):
            host.await_that(lambda host=host, was=was: not host.leftovers(was), "clean end")  # type: ignore[misc]
