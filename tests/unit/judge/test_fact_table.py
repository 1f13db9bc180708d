"""The table of hosts and facts: plain values, words for people, and the odd one out."""

from collections.abc import Mapping
from typing import Any

import pytest

from doctor.judge.fact_table import COLUMNS, FactRow, fact_table, facts_of_host
from doctor.judge.fact_values import rate, sized
from doctor.judge.reading import read_recording
from doctor.model import MissingFact, UnreachedHost, UnreachedKind
from tests.support.cases import cases
from tests.support.recordings import FILES, NOW, heard, recording

NAMES = [f"node{n}" for n in range(1, 5)]
TORCH = "python 3.11.2 /usr/bin/python3\npackage torch {}\n"


def rows(changed: Mapping[int, Mapping[str, Any]] | None = None, **more: Any) -> tuple[FactRow, ...]:
    """The rows of four hosts, some of which have other captures than the healthy ones."""
    answers = {f"node{n}": heard(n, NAMES, **captures) for n, captures in (changed or {}).items()}
    return fact_table(read_recording(recording(NAMES, **{"heard": answers} | more)))


def row(key: str, *args: Any, **more: Any) -> FactRow:
    return next(found for found in rows(*args, **more) if found.key == key)


def test_a_healthy_host_tells_plain_values() -> None:
    assert facts_of_host(rows(), "node1") == {
        "reached_by": "ssh",
        "host_name": "node1",
        "clock_offset_seconds": 0.0,
        "clock_uncertainty_seconds": 0.0,
        "product": "cpu",
        "devices": 0,
        "somaxconn": 4096,
        "tcp_max_syn_backlog": 2048,
        "reserved_ports": "",
        "ephemeral_ports": "32768-60999",
        "memory_bytes": 24684084 * 1024,
        "memory_free_bytes": 24081708 * 1024,
        "shm_bytes": 12342040 * 1024,
        "shm_free_bytes": 12342040 * 1024,
        "nofile": 20000,
        "memlock_bytes": "unlimited",
        "data_address": "10.0.0.1",
        "interface": "eth0",
        "rank_address": "10.0.0.1",
        "mtu": 1500,
        "speed_mbps": 10000,
        "kernel": "6.1.0-18-amd64",
        "os": "Debian GNU/Linux 12 (bookworm)",
        "python": "3.11.2",
        "python_path": "/usr/bin/python3",
        "torch": "",
    }


def test_what_a_host_did_not_tell_is_absent() -> None:
    memory = row("memory_bytes", {2: {"memory": MissingFact("memory", "no answer")}})
    assert set(memory.values) == set(memory.shown) == {"node1", "node3", "node4"}
    assert not memory.odd


def test_a_host_that_did_not_answer_tells_nothing() -> None:
    lost = UnreachedHost("node4", UnreachedKind.REFUSED, "connection refused", "Start sshd.")
    told = rows(unreached={"node4": lost})
    assert facts_of_host(told, "node4") == {}
    assert facts_of_host(told, "node1")


def test_what_was_not_asked_has_no_row() -> None:
    answer = heard(1, NAMES)
    captures = {name: capture for name, capture in answer.captures.items() if name == "identity"}
    only = {name: type(answer)(name, captures, {}, True, NOW, NOW + 0.5) for name in NAMES}
    assert [found.key for found in rows(heard=only)] == ["reached_by", "host_name"]


def test_the_one_that_differs_is_odd() -> None:
    ports = {**FILES["ports"], "/proc/sys/net/core/somaxconn": "128"}
    found = row("somaxconn", {3: {"ports": ports}})
    assert found.odd == {"node3"}
    assert found.shown["node3"] == "128"


@pytest.mark.parametrize(
    ("text", "word"), [("always [madvise] never", "madvise"), ("always", "always"), ("", "")]
)
def test_the_setting_in_brackets_is_told(text: str, word: str) -> None:
    """The kernel lists all that there are, and marks one."""
    usual = {"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}
    other = dict.fromkeys(usual, text)
    answers = {n: {"pace": usual} for n in (1, 2, 4)} | {3: {"pace": other}}
    found = row("huge_pages", answers)
    assert found.shown == dict.fromkeys(("node1", "node2", "node4"), "never") | (
        {"node3": word} if word else {}
    )
    assert found.odd == ({"node3"} if word else set())


def test_without_a_majority_nobody_is_odd() -> None:
    ports = {**FILES["ports"], "/proc/sys/net/core/somaxconn": "128"}
    assert not row("somaxconn", {3: {"ports": ports}, 4: {"ports": ports}}).odd


def infiniband(*states: str) -> dict[str, Any]:
    base = "/sys/class/infiniband/mlx5_0/ports/"
    files = {f"{base}{n}/state": state for n, state in enumerate(states, 1)}
    files |= {f"{base}{n}/link_layer": "InfiniBand" for n, _ in enumerate(states, 1)}
    return {"ib_ports": files}


def test_without_a_majority_the_host_that_lacks_a_part_is_odd() -> None:
    up, half, down = (
        infiniband("4: ACTIVE", "4: ACTIVE"),
        infiniband("4: ACTIVE", "1: DOWN"),
        infiniband("1: DOWN"),
    )
    assert row("ib_ports_up", {1: up, 2: half, 3: half, 4: up}).odd == {"node2", "node3"}
    assert row("ib_ports_up", {1: up, 2: up, 3: half, 4: half}).odd == {"node3", "node4"}
    assert row("ib_ports_up", {1: half, 2: half, 3: down, 4: down}).odd == set()


def test_a_host_without_torch_is_odd_among_those_that_have_it() -> None:
    torch = {"python": TORCH.format("2.7.0")}
    found = row("torch", {1: torch, 2: torch, 3: torch})
    assert found.odd == {"node4"}
    assert (found.values["node4"], found.shown["node4"]) == ("", "not installed")


@pytest.mark.parametrize(("kilobytes", "odd"), [(24684000, set()), (24000000, set()), (12000000, {"node2"})])
def test_memory_is_odd_where_much_of_it_is_missing(kilobytes: int, odd: set[str]) -> None:
    memory = {"/proc/meminfo": f"MemTotal: {kilobytes} kB\nMemAvailable: 5000000 kB"}
    assert row("memory_bytes", {2: {"memory": memory}}).odd == odd


def test_what_each_host_has_of_its_own_is_never_odd() -> None:
    memory = {"/proc/meminfo": "MemTotal: 24684084 kB\nMemAvailable: 5000000 kB"}
    assert not row("memory_free_bytes", {2: {"memory": memory}}).odd
    assert not row("data_address").odd


@pytest.mark.parametrize(("seconds", "odd"), [(0.5, set()), (90.0, {"node2"})])
def test_a_clock_is_odd_by_seconds(seconds: float, odd: set[str]) -> None:
    clock = {"clock": f"{NOW + seconds:.3f}", "clock-end": f"{NOW + seconds + 0.5:.3f}"}
    found = row("clock_offset_seconds", {2: clock})
    assert found.odd == odd
    assert found.values["node2"] == pytest.approx(seconds)


def test_hosts_of_another_product_are_not_compared() -> None:
    """The only host with another product may have another kernel; only its product is odd."""
    devices = {f"/dev/davinci{n}": "" for n in range(8)}
    kernel = {**FILES["kernel"], "/proc/sys/kernel/osrelease": "5.10.0-60.oe2203"}
    changed = {4: {"devices": devices, "kernel": kernel}}
    assert row("kernel", changed).odd == set()
    assert row("product", changed).odd == {"node4"}


def test_keys_are_unique() -> None:
    assert len({column.key for column in COLUMNS}) == len(COLUMNS)


@cases
def test_sizes_in_words(count: int, shown: str) -> None:
    assert sized(count) == (count, shown)


def test_rates_in_words() -> None:
    assert [rate(speed)[1] for speed in (100, 2500, 25000)] == ["100 Mb/s", "2.5 Gb/s", "25 Gb/s"]
