"""Where the script of a Slurm job writes, from squeue's output."""

import pytest

from doctor.transport.slurm.squeue import WIDTHS, SqueueRefusal, read_output
from tests.support.cases import cases, from_cases

JOB = from_cases(__file__, "JOB", dict[str, str])


def printed(**fields: str) -> bytes:
    """As squeue prints it: in bytes, and a long value loses its end."""
    row = {**JOB, **fields}
    return b"".join(row[name].encode()[:width].ljust(width) for name, width in WIDTHS.items()) + b"\n"


@cases
def test_a_pattern_is_filled_as_slurmd_fills_it(pattern: str, file: str) -> None:
    found = read_output("13", printed(StdOut=pattern, StdErr="N/A"))
    assert found
    assert (found.files, found.host, found.nodes, found.uid) == ((file,), "node1", 2, 1000)


def test_both_streams_are_often_one() -> None:
    one, two = read_output("13", printed()), read_output("13", printed(StdErr="/logs/b"))
    assert one
    assert two
    assert (one.files, two.files) == (("/logs/a",), ("/logs/a", "/logs/b"))


def test_a_job_without_an_array_has_no_task() -> None:
    found = read_output("13", printed(ArrayTaskID="N/A", StdOut="/%a", StdErr=""))
    assert found
    assert found.files == ("/4294967294",)


def test_the_shell_of_an_allocation_writes_nowhere() -> None:
    assert read_output("13", printed(BatchFlag="0", StdOut="/home/ann/slurm-13.out")) is None


def test_each_task_of_an_array_has_its_own() -> None:
    rows = printed(JobID="12", StdOut="/logs/last") + printed()
    found = read_output("13", rows)
    assert found
    assert found.files == ("/logs/a",)
    with pytest.raises(SqueueRefusal, match="knows no such job"):
        read_output("14", rows)


def test_a_name_that_looks_like_a_row_says_nothing() -> None:
    row = printed(UserID="0", StdOut="/etc/shadow").decode().strip()
    found = read_output("13", printed(Name=f"a\n{row}"))
    assert found
    assert (found.uid, found.files) == (1000, ("/logs/a",))
