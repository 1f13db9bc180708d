"""Real logs, from their text to the conclusion."""

from __future__ import annotations

from pathlib import Path

import pytest

from doctor.logs.judge import JobFacts, JobHost, conclude
from doctor.logs.model import Conclusion, LogOutcome, Role
from doctor.logs.read import read
from doctor.model import UNDECIDED, Confidence
from tests.support.cases import cases, from_cases
from tests.support.each import each
from tests.support.fault_logs import matcher
from tests.support.paths import ROOT

SAMPLES = ROOT / "tests" / "samples" / "logs"
NOW = 1_795_200_000.0
HEALTHY = from_cases(__file__, "HEALTHY", set[str])
"""Samples without any complaint, in addition to those in `healthy/`."""


def explained(*paths: Path, known: JobFacts | None = None) -> Conclusion:
    return conclude(read(paths, matcher(), now=NOW), known)


def of(*names: str) -> Conclusion:
    return explained(*(SAMPLES / name for name in names))


def ranks(found: Conclusion) -> list[int | None]:
    return [party.rank for party in found.charges[0].who]


OF_OTHER_TESTS = {"jobs", "exam", "exam2", "runs"}
"""Reported as whole jobs; judged in test_exam.py and test_runs.py."""
FILES = sorted(
    path
    for path in SAMPLES.rglob("*.*")
    if path.suffix in (".log", ".txt") and not OF_OTHER_TESTS.intersection(path.parts)
)


@each("path", FILES)
def test_no_sample_is_misread(path: Path) -> None:
    found = explained(path)
    healthy = path.parent.name == "healthy" or path.name in HEALTHY
    assert found.outcome is (LogOutcome.CLEAN if healthy else LogOutcome.NAMED)
    assert all(charge.confidence is not Confidence.CERTAIN for charge in found.charges)  # for one file alone
    assert not any("  " in charge.says or charge.says.endswith(".") for charge in found.charges)


def test_a_rank_that_did_not_come_to_the_barrier() -> None:
    found = of("torch_c10d/2.13_monitored_barrier_torchrun.log")
    assert (found.charges[0].symptom, ranks(found)) == ("torch-monitored-barrier", [1])


def test_the_rank_without_the_time_out() -> None:
    found = of("torch_c10d/2.13_gloo_allreduce_timeout_torchrun.log")
    assert ranks(found) == [1]
    assert found.charges[0].symptom is None
    assert found.charges[0].says == "rank 1 did not join what rank 0 waited for"


def test_the_rank_that_ended_first() -> None:
    found = of("torch_c10d/2.13_worker_died_torchrun.log")
    assert ranks(found) == [1]
    assert "rank 0" in " ".join(each.says for each in found.charges[1:])


@cases
def test_a_start_that_failed(name: str, symptom: str) -> None:
    assert of(f"torch_c10d/{name}").charges[0].symptom == symptom


def test_a_heartbeat_names_a_device_that_nothing_maps() -> None:
    found = of("ascend/plog/heartbeat_cluster_exception_lost.log")
    party = found.charges[0].who[0]
    assert (party.rank, party.address, party.device) == (None, "192.0.2.86", 1)
    assert found.charges[0].says.startswith("device 1 of 192.0.2.86: ")
    assert found.hosts == ()


def test_the_plan_makes_a_rank_of_it() -> None:
    known = JobFacts(hosts=(JobHost("node1", ("192.0.2.86",), 4),))
    found = explained(SAMPLES / "ascend/plog/heartbeat_cluster_exception_lost.log", known=known)
    assert (ranks(found), found.hosts) == ([1], ("node1",))


def test_ranks_that_never_came_are_named_by_the_list() -> None:
    assert ranks(of("ascend/plog/topo_exchange_base_timeout_tail.log")) == [1, 3, 5, 7]


def test_a_chain_over_several_processes_leads_to_its_end() -> None:
    names = ("client_side_plog-114654", "p2p_plog-114650", "run_plog-114654")
    found = of(*(f"ascend/plog/connect_timeout_A2_{name}.log" for name in names))
    assert [party.device for party in found.charges[0].who] == [1]
    assert found.charges[0].confidence is Confidence.SUSPECT
    assert found.charges[0].role is Role.ROOT


def test_a_pair_is_named_from_both_ends() -> None:
    found = of("ascend/plog/EI0006_A3_link_timeout_with_tlsstatus_2026.log")
    assert len(found.charges[0].who) == 2
    assert found.charges[0].says.endswith(UNDECIDED)


TORCHRUN = from_cases(__file__, "TORCHRUN", str)
LOST = from_cases(__file__, "LOST", str)
OOM = from_cases(__file__, "OOM", str)


def torchrun(host: str, first: int, code: int, said: str = "", agent: int = 5347) -> str:
    pid = 5350 if first == 0 else 6350
    return TORCHRUN.format(
        a=first, b=first + 1, host=host, code=code, said=said, agent=agent, pid_a=pid, pid_b=pid + 1,
        stops=f"Sending process {pid + 1} closing signal SIGTERM",
        failed=f"failed (exitcode: {code}) local_rank: 0 (pid: {pid}) of binary: /usr/bin/python3",
    )  # fmt: skip


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Two hosts; the kernel killed rank 2 on node2."""
    for host in ("node1", "node2"):
        (tmp_path / host).mkdir()
    (tmp_path / "node1" / "torchrun.log").write_text(torchrun("node1", 0, 1, LOST))
    (tmp_path / "node2" / "torchrun.log").write_text(torchrun("node2", 2, -9, agent=6347))
    (tmp_path / "node2" / "dmesg.txt").write_text(OOM)
    return tmp_path


def test_the_kernel_and_torchrun_agree(job: Path) -> None:
    found = explained(job)
    first = found.charges[0]
    assert (ranks(found), first.symptom, first.confidence) == ([2], "kernel-oom", Confidence.CERTAIN)
    assert first.says == (
        "rank 2 on node2 was killed by the kernel for lack of memory (oom-kill); rank 0 lost its connection"
    )
    assert found.hosts == ("node2",)
    assert {"kernel-log", "memory-low"} <= {*found.checks}


def test_without_the_kernel_the_launcher_names_it(job: Path) -> None:
    (job / "node2" / "dmesg.txt").unlink()
    found = explained(job)
    assert (ranks(found), found.charges[0].confidence) == ([2], Confidence.STRONG)
    assert any("the kernel's log of node2 was not given" in each for each in found.open)


def test_the_victims_log_alone_names_nobody(job: Path) -> None:
    found = explained(job / "node1")
    assert found.charges[0].who == ()
    assert found.charges[0].role is Role.CONSEQUENCE
    assert any("look at 10.0.0.2" in each for each in found.open)


def test_a_container_numbers_its_processes_otherwise(job: Path) -> None:
    dmesg = job / "node2" / "dmesg.txt"
    dmesg.write_text(dmesg.read_text().replace("6350", "99350"))
    found = explained(job)
    first = found.charges[0]
    assert (ranks(found), first.symptom, first.confidence) == ([2], "kernel-oom", Confidence.STRONG)
    assert any("their pids differ, as in a container" in each for each in first.how)
    assert "Killed process 99350" in first.lines[0].text
