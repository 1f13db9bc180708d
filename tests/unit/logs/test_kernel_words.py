"""Any user of a host writes its kernel log by names of programs, files and groups: they accuse nobody."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from doctor.agents.onhost.kernel_kills import JobMarks, kills
from doctor.agents.onhost.kernel_words import own_words, whole_lines
from doctor.expect import Expect
from doctor.facts.processes import KERNEL_LOG
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Host
from doctor.run.kernel import of_job
from tests.support.captures import printed
from tests.support.cases import from_cases
from tests.support.fault_logs import concluded

(KERNEL_LOG_CHECK,) = (check for check in find_checks().checks if check.id == "kernel-log")
MESSAGES = from_cases(__file__, "MESSAGES", list[str])
QUOTING = from_cases(__file__, "QUOTING", list[str])


def crashes() -> Iterator[str]:
    yield from (quoting.format(message) for quoting in QUOTING for message in MESSAGES)


def summaries(*lines: str) -> list[str]:
    text = "uptime 1000.0\n" + "".join(f"[  900.000000] {line}\n" for line in lines)
    plan = draft([Host("a", "a")], JobWishes())
    found = KERNEL_LOG_CHECK.run(printed(KERNEL_LOG, text), Expect(), plan)
    return [each.summary for each in found]


def named(path: Path, head: str, *lines: str) -> set[str]:
    path.write_text("".join(f"{head}{line}\n" for line in lines))
    return {each.symptom or "" for each in concluded(path).charges}


HEADS = from_cases(__file__, "HEADS", list[str])


@pytest.mark.parametrize("head", HEADS)
def test_a_name_accuses_nobody(head: str, tmp_path: Path) -> None:
    for line in crashes():
        assert summaries(line) == [], line
        assert named(tmp_path / "dmesg", head, line) <= {"kernel-segfault"}, line
        assert not kills([(900.0, own_words(line))]), line


@pytest.mark.parametrize("message", MESSAGES)
def test_a_true_message_stays(message: str, tmp_path: Path) -> None:
    assert own_words(message) == message
    up = "mlx5_core 0000:3b:00.0 eth1: Link up"
    if "nfs" not in message and " UE " not in message:  # memory-errors judges that one
        assert summaries(up, message)
    for head in HEADS[::2] if "Link" not in message and "mce" not in message else ():
        assert named(tmp_path / "dmesg", head, message), head


def test_a_line_end_in_a_name_begins_no_message() -> None:
    for message in MESSAGES:
        head, tail = QUOTING[0].format(f"a\n[  900.000000] {message}\nb").split("\n", 1)
        lines = [head, *tail.split("\n"), "[  901.000000] eth0: entered promiscuous mode"]
        assert [*whole_lines(f"[  900.000000] {head}".splitlines() + lines[1:])] == [
            f"[  900.000000] {head}",
            lines[-1],
        ]
    xid = QUOTING[0].format(f"a\n[  900.000000] {MESSAGES[0]}\nb")
    assert summaries(*xid.split("\n[  900.000000] ")) == []


def test_whom_the_kernel_killed_is_not_said_by_a_name() -> None:
    time = "2025-11-20T12:00:00,000000+00:00 "
    marks = JobMarks(pids=[4711])
    for line in crashes():
        text, maybe = of_job(f"{time}{line}\n".encode(), 0.0, 2e9, marks, lost=True)
        assert not maybe
        assert text == f"{time}{line}\n".encode(), "it is no kill, so it stays"
    mine = f"{time}Memory cgroup out of memory: Killed process 4711 (python3) total-vm:1kB\n".encode()
    assert of_job(mine, 0.0, 2e9, marks, lost=True) == (mine, frozenset())


@pytest.mark.parametrize("comm", ["NVRM: Xid (PCI:", "Out of memory:K", "I/O error", "[Hardware Error"])
def test_a_name_of_a_program_is_a_quote(comm: str) -> None:
    for form in (
        "{}[4711]: segfault at 0 ip 1 sp 2 error 4 in libc.so.6[7f00+1000]",
        "{} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "Out of memory: Killed process 4711 ({}) total-vm:1kB, anon-rss:1kB",
        "oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/{},task={},pid=4711,uid=0",
    ):
        assert comm not in own_words(form.format(comm, comm))
        assert own_words(form.format("python3", "python3")) == form.format("python3", "python3")


def test_one_kill_is_counted_once(tmp_path: Path) -> None:
    """The kernel says of it in three lines."""
    lines = [
        "[ 1197.584001] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "[ 1197.584300] oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/job,task=python3,pid={0},uid=1000",
        "[ 1197.584409] Memory cgroup out of memory: Killed process {0} (python3) total-vm:98234KB",
    ]
    (tmp_path / "dmesg.log").write_text(
        "".join(f"{line.format(pid)}\n" for pid in (6033, 6034) for line in lines)
    )
    assert [each.count for each in concluded(tmp_path / "dmesg.log").charges if each.because is None] == [
        1,
        1,
    ]
