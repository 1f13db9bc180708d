"""Jobs that hang at their start: launchers of torchrun over hosts of the lab, and none has a rank yet."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.lab import Host, Lab
from tests.support.cases import cases_with
from tests.support.hang.named import culprits
from tests.support.hang.ranks import JOB
from tests.support.injob import Job, environment, torchrun_argv

pytestmark = pytest.mark.slow

PORT = 29655
PATIENCE = 90.0
NO_HOST = "198.18.0.99"
CUT = (
    f"table inet cut {{\n chain c {{\n type filter hook output priority 0; tcp dport {PORT} drop;\n }}\n}}\n"
)
Words = list[str]
Change = Callable[[int, Words, Sequence[Host]], Words]


def replaced(old: str, new: str) -> Callable[[Words], Words]:
    return lambda words: [word.replace(old, new) for word in words]


def of_node(node: int, change: Callable[[Words], Words]) -> Change:
    return lambda number, words, _: change(words) if number == node else words


def nobody_at(_: int, words: Words, hosts: Sequence[Host]) -> Words:
    return replaced(hosts[0].address, NO_HOST)(words)


def unnamed(number: int, words: Words, hosts: Sequence[Host]) -> Words:
    return replaced(hosts[0].address, "trainer-0.invalid")(words) if number == 1 else words


def usual(_: int, words: Words, __: Sequence[Host]) -> Words:
    return words


@contextmanager
def launchers(hosts: Sequence[Host], change: Change, without: Sequence[int] = ()) -> Iterator[Job]:
    """A torchrun on each host but those `without`, with its words changed."""
    job = Job()
    try:
        for number, host in enumerate(hosts):
            host.dirty = True
            if number not in without:
                words = change(number, torchrun_argv(hosts, 1, number, PORT), hosts)
                job.start(host.enter(["env", "-C", "/", *words, str(JOB)]), environment())
        yield job
    finally:
        job.close()


def hang(lab: Lab, job: Job, *, limit: str = "2", until: Callable[[Any], object] = culprits) -> Any:
    """The first answer of `doctor hang` that is as wanted: launchers need some seconds until they wait."""
    end = time.monotonic() + PATIENCE
    while True:
        done = lab.doctor("hang", "node[1-3]", "--limit", limit, "--for", "1", "--json", "-")
        said = json.loads(done.stdout)
        assert done.returncode == said["exit_code"], done.stderr
        if until(said) or time.monotonic() > end:
            return said
        assert all(start.poll() is None for start in job.starts), job.text


def waits(said: Any) -> bool:
    return any("waits on node" in note for note in said["hang"]["notes"])


def named(said: Any) -> list[str]:
    assert said["exit_code"] == 1, said
    return [each["host"] for each in culprits(said)]


def test_the_host_without_a_launcher_is_named(lab: Lab) -> None:
    hosts = [lab[f"node{number}"] for number in (1, 2, 3)]
    with launchers(hosts, usual, without=[2]) as job:
        said = hang(lab, job)
    assert named(said) == ["node3"]
    assert said["findings"][0]["summary"] == "has no torchrun: nobody has node rank 2"
    assert said["findings"][0]["confidence"] == "certain"
    assert "--node-rank=2" in said["hang"]["commands"][0]


@cases_with(nobody_at, of_node, replaced, unnamed)
def test_launchers_that_call_another_place(change: Change, guilty: list[str], summary: str, lab: Lab) -> None:
    hosts = [lab[f"node{number}"] for number in (1, 2, 3)]
    with launchers(hosts, change) as job:
        said = hang(lab, job)
    assert named(said) == guilty
    assert all(summary in each["summary"] for each in culprits(said))


def test_the_host_that_cannot_connect_is_named(lab: Lab) -> None:
    hosts = [lab[f"node{number}"] for number in (1, 2, 3)]
    hosts[2].nft(CUT)
    try:
        with launchers(hosts, usual) as job:
            said = hang(lab, job)
            assert named(said) == ["node3"]
            assert "SYN-SENT" in said["findings"][0]["summary"]
            young = hang(lab, job, limit="600", until=waits)
            assert (young["exit_code"], young["hang"]["state"]) == (0, "waits"), "a young job may still start"
    finally:
        hosts[2].do("nft delete table inet cut")
