"""Whether a log of a job was found on the hosts; if not, the lack of complaints is not an all-clear."""

from dataclasses import replace

import pytest

from doctor.logs.explanation import Explanation
from doctor.logs.model import Conclusion, Curve, Form, LogFile, LogLine, LogOutcome, Logs, Party
from doctor.logs.report_json import logs_report
from doctor.logs.search import LogSearch, read_a_job
from doctor.model import HostStatus
from tests.support.logs.conclusions import text

SEARCH = LogSearch(("~/ascend/log", "~/*.log"), since="2026-11-20 10:00 UTC")
KERNEL = LogFile("node1:kernel-log", lines=9000, forms=(Form.KERNEL,))
SYSTEM = LogFile("node1:/var/log/syslog", lines=700, forms=(Form.PYTHON, Form.TORCH))
PIP = LogFile("node1:/root/pip.log", lines=64, forms=(Form.PLAIN, Form.PYTHON))


@pytest.mark.parametrize("files", [(), (KERNEL,), (KERNEL, SYSTEM), (PIP, KERNEL)])
def test_what_is_not_of_a_job(files: tuple[LogFile, ...]) -> None:
    assert not read_a_job(Logs(files), SEARCH)


@pytest.mark.parametrize(
    "file",
    [
        LogFile("node1:/root/slurm-4711.out", lines=3),
        LogFile("/root/ascend/log/run/plog/plog-7_1.log", lines=3),
        LogFile("node1:/tmp/none_x1/attempt_0/0/stdout.log", lines=3),
        replace(PIP, ranks=(0, 1)),
        replace(PIP, who=Party(rank=3)),
        replace(PIP, progress=(LogLine("pip.log", 3, "step 3"),)),
        replace(PIP, forms=(Form.PLAIN, Form.NCCL)),
    ],
)
def test_what_is_of_a_job(file: LogFile) -> None:
    assert read_a_job(Logs((KERNEL, file)), SEARCH)


def test_losses_are_of_a_job() -> None:
    losses = Curve(PIP.name, Party(), (1, 2), (2.0, 1.9))
    assert read_a_job(Logs((PIP,), curves=(losses,)), SEARCH)


def test_the_report_says_where_it_looked_what_it_read_and_what_to_type() -> None:
    found = Conclusion(LogOutcome.UNKNOWN, read="2 files, the kernel, 9,064 lines")
    of = Explanation(
        found, Logs((KERNEL, PIP)), command="logs", fetched=("node1",), asked=("node1",), in_vain=SEARCH
    )
    said = " ".join(text(of, 100).split())
    assert of.exit_code == 3
    for words in (
        "No log of a job was found on node1",
        "~/ascend/log, ~/*.log, written since 2026-11-20 10:00 UTC",
        "the kernel's log: 9,000 lines",
        "node1:/root/pip.log: 64 lines",
        "doctor logs node1 --path '/data/run7/*.log'",
    ):
        assert words in said
    assert "node1:kernel-log" not in said
    assert "node1:kernel-log" in text(of, 100, verbose=True)
    (open_,) = logs_report(of).logs.open
    assert open_.startswith("No log of a job was found on node1: looked for ~/ascend/log")


def test_clean_logs_prove_no_host_healthy() -> None:
    file = LogFile("train.log", 900, 20, who=Party(host="node1"))
    made = logs_report(Explanation(Conclusion(LogOutcome.CLEAN), Logs((file,)), fetched=("node2",)))
    assert made.exit_code == 0
    assert {host.name: host.status for host in made.hosts} == dict.fromkeys(
        ("node2", "node1"), HostStatus.UNEXAMINED
    )
    assert made.summary.healthy == 0
