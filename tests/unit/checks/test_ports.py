"""The ports of a job: who may hold them, and which of them can be kept free."""

from pathlib import Path
from typing import Any

import pytest

from doctor.job.launch.files import read_launch_files
from doctor.job.launch.process_env import Launch
from doctor.job.wishes import JobWishes
from doctor.judge.examine import build_report
from doctor.judge.playbook import load_remedies
from doctor.judge.reading import read_recording
from doctor.model import Backend, Finding, SourcedValue, Status
from tests.support.cases import cases_with
from tests.support.launches import CHECKS, dump
from tests.support.recordings import FILES, heard, recording, syllabus

HOSTS = ["node1"]
PORT = 29500
IN_USE, NOT_RESERVED = "port-in-use", "ports-not-reserved"
RANK: dict[str, str | int] = {"WORLD_SIZE": 2, "MASTER_ADDR": "10.0.0.1"}


def bound(*pids: int, port: int = PORT) -> str:
    """One port of the job is bound by the first process, which was started by the second one."""
    row = (
        f"   0: 00000000:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 46"
    )
    owner = f"owner 46 {pids[0]} python3\n" if pids else ""
    parent = f"parent {pids[0]} {pids[1]}\n" if pids[1:] else ""
    return f"listeners\n{row} 1 00000000 100 0 0 10 0\n{owner}{parent}"


def runs(*words: str, port: int = PORT, first: int = 20) -> str:
    """Two ranks of a job, as a host prints them."""
    program = "\t".join(words or ("python3", "train.py"))
    env = f"e WORLD_SIZE=2\ne MASTER_ADDR=10.0.0.1\ne MASTER_PORT={port}\n"
    ranks = (f"p {first + rank} 7 0\ne RANK={rank}\n{env}a\t{program}\n" for rank in range(2))
    return "jobs\n" + "".join(ranks)


def found(
    check: str, exam: str = "host", launch: Launch | None = None, live: bool = False, **said: Any
) -> list[Finding]:
    port = None if launch else SourcedValue(PORT, "--master-port")
    wishes = JobWishes(launch=launch, master_port=port, live=live)
    run = recording(HOSTS, exam=exam, wishes=wishes, heard={"node1": heard(1, HOSTS, **said)})
    return list(build_report(read_recording(run), syllabus([CHECKS[check]]), load_remedies()).findings)


def given(folder: Path, *texts: str) -> Launch:
    for number, text in enumerate(texts):
        (folder / f"env{number}").write_text(text)
    return read_launch_files([folder / f"env{number}" for number in range(len(texts))])


def dumps(folder: Path, **more: str | int) -> Launch:
    return given(folder, *(dump({**RANK, "MASTER_PORT": PORT, "RANK": r, **more}, "node1") for r in (0, 1)))


SCRIPT = "export MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 WORLD_SIZE=2\nRANK=0 python {} &\nRANK=1 python {}\n"


def script(folder: Path, program: str = "train.py") -> Launch:
    return given(folder, SCRIPT.format(program, program))


@pytest.mark.parametrize("pids", [(20, 7), (300, 20)], ids=["rank 0", "a child of its launcher"])
@pytest.mark.parametrize("exam", ["host", "preflight"])
def test_a_job_that_is_named_while_it_runs_holds_its_own_port(pids: tuple[int, int], exam: str) -> None:
    assert found(IN_USE, exam, live=True, listeners=bound(*pids), job_processes=runs()) == []
    (finding,) = found(IN_USE, exam, listeners=bound(*pids), job_processes=runs())
    assert finding.status is Status.FAIL, "it holds the port of another job, which was named"


@cases_with(bound, runs)
@pytest.mark.parametrize("exam", ["host", "preflight"])
@pytest.mark.parametrize("how", [dumps, script])
def test_whoever_holds_the_port_of_a_job_to_start_is_named(
    how: Any, exam: str, listeners: str, jobs: str, tmp_path: Path
) -> None:
    (finding,) = found(IN_USE, exam, how(tmp_path), listeners=listeners, job_processes=jobs)
    assert (finding.status, finding.hosts) == (Status.FAIL, ("node1",))
    assert "port 29500, which the job will bind, is taken" in finding.summary


HCCL = JobWishes(backend=SourcedValue(Backend.HCCL, "--backend"))
RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"


def connected(port: int, *pids: int, state: str = "01", own: str = "0100000A") -> str:
    """A program of the host is connected to 10.0.0.9:443 from this port."""
    row = f"   0: {own}:{port:04X} 0900000A:01BB {state} 0:0 00:0 0     0        0 47"
    owner = "".join(f"owner 47 {pid} curl\n" for pid in pids[:1])
    return f"listeners\n{row} 1 00000000 20 4 30 10 -1\n{owner}"


def hccl_findings(check: str, listeners: str, **more: Any) -> list[Finding]:
    answer = heard(1, HOSTS, listeners=listeners, **more)
    of = build_report(
        read_recording(recording(HOSTS, exam="preflight", wishes=HCCL, heard={"node1": answer})),
        syllabus([CHECKS[check]]),
        load_remedies(),
    )
    return list(of.findings)


def test_a_port_of_the_job_that_the_kernel_gave_to_a_connection_is_a_fault() -> None:
    """The kernel then refuses HCCL's listener with error 98. That it may be given away is a warning."""
    (finding,) = hccl_findings(IN_USE, connected(60003, 55))
    assert (finding.status, finding.hosts) == (Status.FAIL, ("node1",))
    assert finding.summary == "port 60003, which the job will bind, is taken by curl (pid 55)"
    assert finding.actual == "the kernel gave it to curl (pid 55), connected to 10.0.0.9:443"
    (risk,) = hccl_findings(NOT_RESERVED, connected(60003, 55))
    assert risk.status is Status.WARN


@pytest.mark.parametrize(
    ("listeners", "more"),
    [
        (connected(60032, 55), {}),
        (connected(59999, 55), {}),
        (connected(60003, 55, state="06"), {}),
        (connected(60003, 55, own="0100007F"), {}),
        (connected(60003, 55), {"ports": {**FILES["ports"], RESERVED: "60000-60031"}}),
        (connected(60003, 55) + "ours 55\n", {}),
    ],
    ids=["above", "below", "time-wait", "of the loopback", "the end of a server", "of doctor itself"],
)
def test_a_connection_that_does_not_hold_a_port_of_the_job(listeners: str, more: dict[str, Any]) -> None:
    assert hccl_findings(IN_USE, listeners, **more) == []


def test_a_port_that_is_listened_on_and_connected_from_is_told_once() -> None:
    both = connected(60003, 55) + bound(20, port=60003).removeprefix("listeners\n")
    (finding,) = hccl_findings(IN_USE, both)
    assert finding.actual == "0.0.0.0:60003 is bound by python3 (pid 20)"


def drawn(folder: Path) -> dict[str, Launch]:
    return {
        "ranks of a rendezvous": dumps(folder, MASTER_PORT=43211, TORCHELASTIC_RUN_ID="job7"),
        "--standalone": given(folder, "torchrun --standalone --nproc_per_node=2 train.py\n"),
        "port 0": given(
            folder, "torchrun --rdzv-backend=c10d --rdzv-endpoint=localhost:0 --nproc_per_node=2 t.py\n"
        ),
    }


@pytest.mark.parametrize("how", ["ranks of a rendezvous", "--standalone", "port 0"])
def test_a_port_that_is_drawn_at_random_is_neither_reserved_nor_kept_free(how: str, tmp_path: Path) -> None:
    launch = drawn(tmp_path)[how]
    port = 43211 if "ranks" in how else PORT
    for exam in ("host", "preflight"):
        assert found(NOT_RESERVED, exam, launch) == []
        assert found(IN_USE, exam, launch, listeners=bound(55, 7, port=port)) == []


@pytest.mark.parametrize(
    "how",
    [
        lambda folder: dumps(folder, MASTER_PORT=43211),
        lambda folder: dumps(folder, MASTER_PORT=43211, TORCHELASTIC_RUN_ID="none"),
        lambda folder: given(
            folder, "torchrun --rdzv-backend=c10d --rdzv-endpoint=10.0.0.1:43211 --nproc_per_node=2 t.py\n"
        ),
        lambda folder: given(folder, "torchrun --master_port=43211 --nproc_per_node=2 train.py\n"),
    ],
)
def test_a_port_that_somebody_chose_in_the_ephemeral_range(how: Any, tmp_path: Path) -> None:
    (finding,) = found(NOT_RESERVED, launch=how(tmp_path))
    assert (finding.status, finding.hosts) == (Status.WARN, ("node1",))
    assert "43211" in finding.expected


def test_an_endpoint_outside_of_the_ephemeral_range_is_kept_free(tmp_path: Path) -> None:
    """If only the ranks show that there is a rendezvous, its port may have been chosen automatically."""
    launch = dumps(tmp_path, MASTER_PORT=29400, TORCHELASTIC_RUN_ID="job7")
    (finding,) = found(IN_USE, "preflight", launch, listeners=bound(55, 7, port=29400))
    assert finding.status is Status.FAIL


def test_without_the_ephemeral_range_the_port_counts(tmp_path: Path) -> None:
    gone = {**FILES["ports"], "/proc/sys/net/ipv4/ip_local_port_range": ""}
    launch = dumps(tmp_path, MASTER_PORT=43211, TORCHELASTIC_RUN_ID="job7")
    assert found(IN_USE, "preflight", launch, listeners=bound(55, 7, port=43211), ports=gone)
