"""Processes of an ordinary user that claim to be ranks: their claims neither accuse nor clear a rank."""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.hosts.hang.test_torchrun import FOLDER, step, until
from tests.lab import Host, Lab
from tests.support.cases import from_cases
from tests.support.hang.named import culprits
from tests.support.hang.ranks import JOB
from tests.support.injob import Job, environment

pytestmark = pytest.mark.slow

PORT = "29544"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
CLAIM = from_cases(__file__, "CLAIM", str)


@contextmanager
def plain_ranks(hosts: Sequence[Host], **env: str) -> Iterator[Job]:
    """Two ranks on each host, as a loop starts them: there is no launcher above them."""
    job = Job()
    try:
        for rank in range(2 * len(hosts)):
            host = hosts[rank // 2]
            host.dirty = True
            told = {"RANK": str(rank), "WORLD_SIZE": str(2 * len(hosts)), "LOCAL_RANK": str(rank % 2)}
            script = f'mkdir -p {FOLDER}; cd /; exec "$@"'
            job.start(
                host.enter(["sh", "-c", script, "job", sys.executable, str(JOB)]),
                environment(FOLDER=FOLDER, MASTER_ADDR=hosts[0].address, MASTER_PORT=PORT, **told, **env),
            )
        yield job
    finally:
        job.close()


@contextmanager
def claims(*told: tuple[Host, str, Mapping[str, str]]) -> Iterator[list[int]]:
    """Processes of user nobody, which stop or sleep and have these variables; returns their numbers."""
    made = [
        host.spawn([*NOBODY, "env", *(f"{k}={v}" for k, v in env.items()), sys.executable, "-c", CLAIM, does])
        for host, does, env in told
    ]
    time.sleep(1.0)
    try:
        yield [each.pid for each in made]
    finally:
        for each in made:
            each.stop()


def hang(lab: Lab, *words: str) -> tuple[int, dict[str, Any]]:
    done = lab.doctor("hang", "node[1-2]", "--for", "1", "--limit", "2", "--json", "-", *words)
    assert done.stdout, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, said


def test_who_keeps_the_job_waiting_stays_accused(lab: Lab) -> None:
    hosts = one, two = lab["node1"], lab["node2"]
    own = {"MASTER_ADDR": one.address, "MASTER_PORT": PORT}
    false = [
        (two, "stop", {**own, "RANK": "4", "WORLD_SIZE": "5"}),
        (two, "sleep", {**own, "RANK": "1", "WORLD_SIZE": "4"}),
        (two, "sleep", {**own, "RANK": "70", "WORLD_SIZE": "100"}),
        (one, "stop", {**own, "RANK": "3", "WORLD_SIZE": "4"}),
    ]
    with plain_ranks(hosts, FAULT="sleep", VICTIM="1") as job:
        until(lambda: step(hosts, 1, "hit") == 1, job)
        time.sleep(2.5)
        real = hang(lab)[1]["hang"]["job"]["pids"]  # those of two hosts may have equal numbers
        for planted in (*([each] for each in false), false):
            with claims(*planted) as pids:
                code, said = hang(lab)
            assert (code, said["hang"]["state"]) == (1, "hang"), said
            (culprit,) = culprits(said)
            assert (culprit["rank"], culprit["host"], culprit["cause"]) == (1, "node1", "sleeps")
            assert (said["hang"]["job"]["ranks"], said["hang"]["job"]["found"]) == (4, 4)
            assert said["hang"]["job"]["pids"] == real
            assert "CONT" not in " ".join(said["hang"]["commands"])
            notes = " ".join(said["hang"]["notes"])
            users = f"two users have ranks of {one.address}:{PORT}: root (4) and nobody ({len(pids)})"
            assert users in notes
            assert any(str(pid) in notes for pid in pids)


def test_a_job_that_moves_is_said_to_move_whatever_others_say(lab: Lab) -> None:
    hosts = one, two = lab["node1"], lab["node2"]
    own = {"MASTER_ADDR": one.address, "MASTER_PORT": PORT}
    with plain_ranks(hosts, FAULT="") as job:
        until(lambda: min(step(hosts, rank) for rank in range(4)) >= 3, job)
        told = [
            (one, "stop", {"MASTER_PORT": "1", "RANK": "0", "WORLD_SIZE": "2"}),
            (two, "stop", {"MASTER_PORT": "1", "RANK": "1", "WORLD_SIZE": "2"}),
            (two, "stop", {**own, "RANK": "4", "WORLD_SIZE": "5"}),
            (two, "sleep", {**own, "RANK": "0", "WORLD_SIZE": "4"}),
        ]
        with claims(*told) as pids:
            code, said = hang(lab)
            assert (code, said["hang"]["state"], said["hang"]["job"]["user"]) == (0, "moves", "root"), said
            assert sum("not count" in note for note in said["hang"]["notes"]) == 2, said["hang"]["notes"]
            shown = lab.doctor("hang", "node[1-2]", "--for", "1").stdout
            assert "Two users have ranks of" in shown
            chosen, alone = hang(lab, "--pid", str(pids[0]))
            assert (chosen, alone["hang"]["job"]["user"]) == (3, "nobody"), "who asks for it sees it"
