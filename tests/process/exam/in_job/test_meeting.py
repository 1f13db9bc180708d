"""Ranks on one machine find each other with `--in-job`, and none of them waits for ever."""

import json
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from doctor.exam.in_job.rank_env import read_job_rank
from tests.support.cases import cases
from tests.support.injob import Ranks, await_true, make_ranks

__all__ = ["make_ranks"]
SOON = ("--connect-timeout", "6")


def check(ranks: Ranks, *more: str) -> list[str]:
    return ["check", "--exam", "host", "--only", "shm-*", "--json", str(ranks.report), *more]


def joined(make_ranks: Callable[..., Ranks]) -> Ranks:
    """Three ranks, of which 0 and 1 have met."""
    ranks = make_ranks(3)
    ranks.start(0, 1, argv=check(ranks, "-v"))
    ranks.await_joined(1)
    return ranks


def absent(ranks: Ranks) -> dict[str, Any]:
    """The only finding, which is about a missing rank."""
    report = json.loads(ranks.report.read_bytes())
    assert [found["check"] for found in report["findings"]] == ["host-unreachable"]
    found: dict[str, Any] = report["findings"][0]
    assert found["status"] == "fail"
    assert [host["status"] for host in report["hosts"]] == ["unexamined"]
    return found


def test_healthy_ranks_end_alike_and_only_the_first_one_prints(make_ranks: Callable[..., Ranks]) -> None:
    ranks = make_ranks(3)
    ranks.start(2, 0, 1)
    ends = ranks.ends(0, 1, 2)
    assert {rank: code for rank, (code, _, _) in ends.items()} == {0: 0, 1: 0, 2: 0}, ends
    assert "Healthy: " in ends[0][1]
    assert [ends[rank][1:] for rank in (1, 2)] == [("", "")] * 2
    report = json.loads(ranks.report.read_bytes())
    assert (report["run"]["transport"], report["findings"]) == ("in-job", [])
    assert report["plan"]["ranks"] == 3
    assert report["plan"]["master_port"]["value"] == ranks.port


def test_a_rank_that_is_stopped_before_it_joins_is_named(make_ranks: Callable[..., Ranks]) -> None:
    ranks = make_ranks(3)
    ranks.start_other(2, ["sleep", "600"])
    stopped = ranks.started[2].pid
    os.kill(stopped, signal.SIGSTOP)
    ranks.start(0, 1, argv=check(ranks, *SOON))
    ends = ranks.ends(0, 1)
    assert {code for code, _, _ in ends.values()} == {1}, ends
    found = absent(ranks)
    assert found["summary"] == f"rank 2 (pid {stopped}) never came within 6 s: it is stopped"
    assert (found["subject"], found["where"][0]["rank"]) == ("rank 2", 2)
    assert f"kill -CONT {stopped}" in found["remedy"]["commands"][0]
    assert ends[1][1:] == ("", "")


def test_a_rank_that_is_stopped_after_it_joined_is_named(make_ranks: Callable[..., Ranks]) -> None:
    ranks = joined(make_ranks)
    os.kill(ranks.started[1].pid, signal.SIGSTOP)
    ranks.start(2)
    ends = ranks.ends(0, 2)
    assert {code for code, _, _ in ends.values()} == {1}, ends
    assert absent(ranks)["summary"] == f"rank 1 (pid {ranks.started[1].pid}) is stopped"
    os.kill(ranks.started[1].pid, signal.SIGCONT)
    assert ranks.ends(1)[1][0] == 1, "it wakes to the same verdict, or to a rank 0 that is gone"


def test_a_rank_that_dies_after_it_joined_is_named(make_ranks: Callable[..., Ranks]) -> None:
    ranks = joined(make_ranks)
    ranks.started[1].kill()
    ranks.ends(1)
    ranks.start(2)
    ends = ranks.ends(0, 2)
    assert {code for code, _, _ in ends.values()} == {1}, ends
    assert absent(ranks)["summary"] == f"rank 1 (pid {ranks.started[1].pid}) is no longer there"


def test_two_processes_of_one_number_are_no_verdict(make_ranks: Callable[..., Ranks]) -> None:
    """It is unknown which of them is the rank, and whose host was examined."""
    ranks = joined(make_ranks)
    first = ranks.started[1]
    ranks.start(1)
    second = ranks.started[1]
    code, _, errors = ranks.ends(1)[1]
    assert (code, "another process has its number" in errors) == (2, True), errors
    ranks.started[1] = first
    ranks.start(2)
    ends = ranks.ends(0, 1, 2)
    assert {code for code, _, _ in ends.values()} == {1}, ends
    is_twice = f"is not alone: another process came with its number (pid {second.pid})"
    assert absent(ranks)["summary"] == f"rank 1 (pid {first.pid}) {is_twice}"


def test_without_rank_0_no_rank_waits_for_ever(make_ranks: Callable[..., Ranks]) -> None:
    ranks = make_ranks(2)
    ranks.start(1, argv=check(ranks, "--connect-timeout", "2"))
    code, out, err = ranks.ends(1)[1]
    assert (code, out) == (1, "")
    assert "rank 1: rank 0 was not found at localhost within 2 s: nothing listens there." in err


def test_when_rank_0_dies_the_others_report_it(make_ranks: Callable[..., Ranks]) -> None:
    ranks = joined(make_ranks)
    ranks.started[0].kill()
    code, out, err = ranks.ends(1)[1]
    assert (code, out) == (1, "")
    assert "rank 1: no verdict from rank 0" in err
    assert f"pid {ranks.started[0].pid}" in err


def test_when_rank_0_is_stopped_the_others_report_it(make_ranks: Callable[..., Ranks]) -> None:
    ranks = joined(make_ranks)
    os.kill(ranks.started[0].pid, signal.SIGSTOP)
    code, out, err = ranks.ends(1)[1]
    assert (code, out) == (1, "")
    assert f"pid {ranks.started[0].pid}): it is stopped." in err


def test_ports_of_other_programs_are_skipped(make_ranks: Callable[..., Ranks]) -> None:
    """One program answers with unknown data, and another connects to our port without the job's token."""
    ranks = make_ranks(3)
    first, second, *_ = read_job_rank(ranks.environment(1)).ports
    with socket.create_server(("", first)) as foreign:
        ranks.start(0)
        await_true(lambda: reaches(second))
        with socket.create_connection(("localhost", second)) as stranger:
            assert stranger.recv(100).startswith(b"cluster-doctor in-job")
            stranger.sendall(b"x" * 200)
            assert stranger.recv(100) == b""
        ranks.start(1, 2)
        heard, _ = foreign.accept()
        with heard:
            ends = ranks.ends(0, 1, 2)
            heard.settimeout(5)
            assert heard.recv(100) == b"", "a stranger hears nothing from us"
    assert {code for code, _, _ in ends.values()} == {0}, ends


def reaches(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) == 0


def test_a_mistake_of_the_command_line_ends_all_ranks_alike(make_ranks: Callable[..., Ranks]) -> None:
    ranks = make_ranks(2)
    ranks.start(0, 1, argv=["check", "--exam", "nonesuch"])
    ends = ranks.ends(0, 1)
    assert {code for code, _, _ in ends.values()} == {2}, ends
    assert "nonesuch" in ends[0][2]
    assert ends[1][2] == ""


@cases
def test_in_job_cannot_be_combined_with_named_hosts(
    argv: list[str], says: str, make_ranks: Callable[..., Ranks]
) -> None:
    ranks = make_ranks(2)
    ranks.start(1, argv=["check", *argv])
    code, out, err = ranks.ends(1)[1]
    assert (code, out) == (2, "")
    assert says in err
