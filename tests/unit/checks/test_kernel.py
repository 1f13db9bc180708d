"""Kernel settings against the job: facts in, findings out."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.facts.limits import port_list
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.parallel import read_layout
from doctor.job.wishes import JobWishes
from doctor.model import Finding, SourcedValue, Status, TableFile
from tests.support.captures import sample
from tests.support.cases import cases_with, from_cases
from tests.support.recordings import FILES, heard, recording, report

NAMES = ["a", "b"]
HCCL = from_cases(__file__, "HCCL", JobWishes)
GUIDE = from_cases(__file__, "GUIDE", dict[str, str])
RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
INSTALLED = "/usr/local/Ascend/ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info"


def found(
    check: str, wishes: JobWishes = HCCL, ports: dict[str, str] | None = None, **answers: Any
) -> list[Finding]:
    """The check's findings about the first host, whose kernel settings are changed."""
    answer = heard(1, NAMES, ports={**FILES["ports"], **(ports or {})}, **answers)
    of = report(recording(NAMES, wishes=wishes, heard={NAMES[0]: answer}))
    return [f for f in of.findings if f.check == check and NAMES[0] in f.hosts]


def cann(version: str) -> dict[str, str]:
    """The file of a toolkit of this version, made from the file of another version."""
    return {INSTALLED: sample("version/ascend_toolkit_install_8.5.0.info").replace("8.5.0", version)}


@pytest.mark.parametrize("version", ["7.0.T10", "8.0.RC3", "8.0.0", "8.0.1"])
def test_the_ports_that_guides_reserve_suffice_up_to_8_0(version: str) -> None:
    for check in ("ports-not-reserved", "somaxconn-low", "syn-backlog-low", "ephemeral-ports-few"):
        assert found(check, ports=GUIDE, versions=cann(version)) == []


@pytest.mark.parametrize("version", ["8.1.RC1", "8.3.RC2", "9.0.0", "10.0.0"])
def test_a_later_version_takes_32_ports(version: str) -> None:
    (one,) = found("ports-not-reserved", ports=GUIDE, versions=cann(version))
    assert one.status is Status.WARN
    assert one.expected == "60000-60031 in net.ipv4.ip_local_reserved_ports"


def test_ports_of_later_versions_are_named_where_the_version_is_not_known() -> None:
    (one,) = found("ports-not-reserved", ports=GUIDE)
    assert one.expected == "60016-60031 in net.ipv4.ip_local_reserved_ports"
    assert "its version is not known" in one.summary


@cases_with(cann)
def test_the_stock_kernel_is_a_warning_with_every_version(versions: dict[str, str], wanted: str) -> None:
    """A port that may be given away is a risk; every host has the stock kernel on its first day."""
    (one,) = found("ports-not-reserved", versions=versions)
    assert (one.status, one.expected) == (Status.WARN, f"{wanted} in net.ipv4.ip_local_reserved_ports")


def test_the_remedies_keep_what_is_reserved_and_ask_for_one_list() -> None:
    """Whichever of the two commands is typed last, everything that the other one reserved stays reserved."""
    changed = {RANGE: "20000 60999", RESERVED: "9601-9602,59990-60003,60005"}
    both = found("ports-not-reserved", ports=changed, versions=cann("8.0.0"))
    assert len(both) == 2
    for one in both:
        assert one.remedy is not None
        assert one.remedy.commands[0].endswith("=9601-9602,29500,59990-60015")


MINDSPORE = from_cases(__file__, "MINDSPORE", JobWishes)


def test_ports_of_mindspore_s_ranks_that_the_kernel_may_give_away_are_a_warning() -> None:
    wide = {RANGE: "1024 65535", RESERVED: "8200"}
    assert found("ports-not-reserved", MINDSPORE) == []
    (one,) = found("ports-not-reserved", MINDSPORE, wide)
    assert (one.status, one.summary) == (
        Status.WARN,
        "the kernel may give MindSpore's ports to any other program",
    )
    assert one.expected == "8118,8374 in net.ipv4.ip_local_reserved_ports"
    assert found("ports-not-reserved", MINDSPORE, wide | {RESERVED: "8118,8200,8374"}) == []


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 30)), max_size=8))
def test_a_list_of_ports_holds_the_same_ports_in_the_fewest_ranges(spans: Sequence[tuple[int, int]]) -> None:
    ranges = [range(first, first + more) for first, more in spans]
    text = port_list(ranges)
    ends = [[int(end) for end in part.split("-")] for part in text.split(",") if part]
    listed = {port for end in ends for port in range(end[0], end[-1] + 1)}
    assert listed == {port for each in ranges for port in each}
    assert all(before[-1] + 1 < after[0] for before, after in itertools.pairwise(ends))


def launched(**env: str) -> JobWishes:
    return JobWishes(launch=Launch("job.sh", (ProcessEnv("job.sh", None, env),), complete=False))


SAID = from_cases(__file__, "SAID", dict[str, JobWishes], launched, JobWishes, SourcedValue, read_layout)


@pytest.mark.parametrize("source", SAID)
def test_a_queue_must_hold_every_rank_of_the_job_wherever_its_size_is_said(source: str) -> None:
    queues = {"somaxconn-low": "net.core.somaxconn", "syn-backlog-low": "net.ipv4.tcp_max_syn_backlog"}
    for check, setting in queues.items():
        (one,) = found(check, SAID[source], ports=GUIDE)
        assert one.status is Status.FAIL
        assert one.expected == f"{setting} of 70000 or more, for 70000 ranks ({source})"
        assert one.remedy is not None
        assert one.remedy.commands[0].endswith(f"{setting}=70000")


def test_the_rank_table_says_how_large_the_job_is() -> None:
    """It has twice as many ranks as the examined hosts."""
    table = TableFile("table.json", sample("rank_table/v1.0_two_servers.json"), "")
    small = {**GUIDE, "/proc/sys/net/core/somaxconn": "3"}
    (one,) = found(
        "somaxconn-low",
        JobWishes(table=table, ranks_per_host=SourcedValue(1, "--ranks-per-host")),
        ports=small,
    )
    assert one.expected == "net.core.somaxconn of 4 or more, for 4 ranks (the rank table)"


SWEPT = from_cases(__file__, "SWEPT", dict[str, JobWishes])
KNOWN = from_cases(__file__, "KNOWN", dict[str, JobWishes], JobWishes, SourcedValue, launched)
QUEUES = {"somaxconn-low": "net/core/somaxconn", "syn-backlog-low": "net/ipv4/tcp_max_syn_backlog"}


@pytest.mark.parametrize("source", [*SWEPT, *KNOWN])
@pytest.mark.parametrize("check", QUEUES)
def test_a_queue_is_a_fault_if_the_ranks_are_those_of_a_job(source: str, check: str) -> None:
    """A sweep of 1,250 hosts with 8 devices each is not a job of 10,000 ranks."""

    def found(length: int) -> dict[str, Status]:
        ports = {**FILES["ports"], f"/proc/sys/{QUEUES[check]}": str(length)}
        devices = {f"/dev/davinci{number}": "" for number in range(8)}
        answers = {name: heard(n, NAMES, ports=ports, devices=devices) for n, name in enumerate(NAMES, 1)}
        of = report(recording(NAMES, wishes={**SWEPT, **KNOWN}[source], heard=answers))
        return {host: each.status for each in of.findings if each.check == check for host in each.hosts}

    assert found(15) == {"a": Status.FAIL if source in KNOWN else Status.WARN, "b": Status.WARN}
    assert found(16) == {}


def test_a_smaller_world_than_is_examined_counts_for_nothing() -> None:
    small = {**GUIDE, "/proc/sys/net/core/somaxconn": "3"}
    two_each = replace(launched(WORLD_SIZE="2", RANK="0"), ranks_per_host=SourcedValue(2, "--ranks-per-host"))
    (one,) = found("somaxconn-low", two_each, ports=small)
    assert one.expected == "net.core.somaxconn of 4 or more, for 4 ranks (on the examined hosts)"


def test_the_arp_table_must_hold_every_host_of_the_job() -> None:
    wishes = JobWishes(
        launch=launched(WORLD_SIZE="16384", RANK="0").launch,
        ranks_per_host=SourcedValue(8, "--ranks-per-host"),
    )
    (one,) = found("arp-table-small", wishes)
    assert one.expected == (
        "net.ipv4.neigh.default.gc_thresh3 of 2048 or more, "
        "for 2048 hosts (16384 ranks, WORLD_SIZE of job.sh, at 8 on each host)"
    )


def test_a_range_of_ten_ports_is_too_small() -> None:
    (one,) = found("ephemeral-ports-few", ports={RANGE: "60990 60999"})
    assert one.status is Status.FAIL
    assert one.expected == "at least 64 ports: 8 ranks here, 8 for each"
    assert one.actual == "10 ports: 60990-60999 is 10"


def test_reserved_ports_are_not_given_away() -> None:
    changed = {RANGE: "59980 60079", RESERVED: "60000-60049,60040-60059,1"}
    (one,) = found("ephemeral-ports-few", ports=changed)
    assert one.actual == "40 ports: 59980-60079 is 100, less 60 reserved"


@pytest.mark.parametrize("ranks", [1, 8, 16, 1024])
def test_the_usual_range_is_large_enough(ranks: int) -> None:
    wishes = JobWishes(ranks_per_host=SourcedValue(ranks, "--ranks-per-host"))
    assert found("ephemeral-ports-few", wishes, ports={RESERVED: "60000-60031,29500"}) == []
