"""Reports about links in the kernel log, in the messages of many drivers: facts in, problems out."""

from doctor.expect import Expect
from doctor.facts.processes import KernelLine
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Backend, Host, Problem, SourcedValue
from tests.support.cases import cases

(KERNEL_LOG_CHECK,) = (check for check in find_checks().checks if check.id == "kernel-log")
QUIET = ("ata1: SATA link up 6.0 Gbps", "ata3: SATA link down (SStatus 0)", "EDAC MC: Ver: 3.0.0")


XID = "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def found(*lines: str, backend: Backend = Backend.GLOO) -> list[Problem]:
    plan = draft([Host("a", "a")], JobWishes(backend=SourcedValue(backend, "test")))
    return list(KERNEL_LOG_CHECK.run(tuple(KernelLine(60.0, line) for line in lines), Expect(), plan))


@cases
def test_a_link_that_went_down(up: str, down: str) -> None:
    (problem,) = found(*QUIET, up, down)
    assert "link went down" in problem.summary
    assert found(*QUIET, down) == [], "it was never up: a port without a cable"


@cases
def test_a_disk_that_fails(line: str) -> None:
    (problem,) = found(line)
    assert problem.summary == "kernel log: a disk or file system reported errors"


@cases
def test_a_sound_disk(line: str) -> None:
    assert found(line) == []


def test_an_xid_is_reported_once() -> None:
    (problem,) = found(XID)
    assert "a GPU reported a fault" in problem.summary
    assert found(XID, backend=Backend.NCCL) == [], "gpu-xid tells it"
