"""Which of several hosts that NVLink joins is not ready for it."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.gpu_imex import IMEX, Imex, imex_not_ready
from doctor.api import Skip
from doctor.errors import UnreadableOutput
from doctor.facts.nvidia.gpus import NvidiaHealth
from doctor.facts.software import Environment
from tests.support.captures import printed
from tests.support.cases import cases
from tests.support.number_rows.devices import job

ZEROS = "00000000-0000-0000-0000-000000000000"


def gpus(cluster: str, clique: str) -> dict[int, NvidiaHealth]:
    said = {"fabric.clusterUuid": cluster, "fabric.cliqueId": clique}
    return {number: NvidiaHealth(said=said) for number in range(4)}


def judged(hosts: Mapping[str, tuple[Any, ...]], logins: Mapping[str, Any], view: str = "host") -> list[str]:
    """Each host: cluster, clique, whether it has a channel, whether its service runs, and its list."""
    found = {
        name: Imex(channel, runs, frozenset(nodes)) for name, (_, _, channel, runs, nodes) in hosts.items()
    }
    health = {name: gpus(own[0], own[1]) for name, own in hosts.items()}
    views = dict.fromkeys(hosts, view)
    problems = imex_not_ready.run(found, health, views, logins, job())
    return [f"{','.join(each.hosts)}: {each.summary} ({each.confidence.value})" for each in problems]


@cases
def test_hosts_of_a_domain(hosts: dict[str, list[Any]], found: list[str], view: str) -> None:
    own = {name: (each[0] * 8, *each[1:]) for name, each in hosts.items()}
    assert judged(own, {}, view) == found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((ZEROS, "0"), (ZEROS, "0")),
        (("ab", "1"), ("ab", "2")),
        (("ab", ""), ("ab", "")),
        (("N/A", "N/A"),) * 2,
    ],
)
def test_hosts_that_nothing_joins(one: tuple[str, str], other: tuple[str, str]) -> None:
    with pytest.raises(Skip, match="NVLink joins no two hosts"):
        judged({"a": (*one, False, False, ()), "b": (*other, False, False, ())}, {})


def test_a_login_that_does_without() -> None:
    off = {"a": Environment({"NCCL_MNNVL_ENABLE": "0"})}
    with pytest.raises(Skip):
        judged(dict.fromkeys("ab", ("ab", "1", False, False, ())), off)


def test_what_a_host_shows() -> None:
    text = "channel\nnode 10.0.0.1\nnode 10.0.0.2 # first tray\n/proc/4711/comm\n"
    assert printed(IMEX, text) == Imex(True, True, frozenset({"10.0.0.1", "10.0.0.2"}))
    assert printed(IMEX, "hidden\n") == Imex(False, None, frozenset())
    assert printed(IMEX, "") == Imex(False, False, frozenset())


@given(st.text(alphabet="chanel node/proc1m#. \n", max_size=200))
def test_anything_may_be_printed(text: str) -> None:
    with suppress(UnreadableOutput):
        printed(IMEX, text)
