"""The numbers that findings about the kernel's log and processes tell: events, whatever number of lines each
has. Halved and doubled input changes them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from doctor.agents.onhost.kernel_kills import kills
from doctor.api import Undecided
from doctor.expect import Expect, read_value, with_log_since
from doctor.facts.processes import KERNEL_LOG, MOST_LINES, PROCESSES
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Backend, Host, Problem, SourcedValue
from tests.support.captures import printed
from tests.support.cases import from_cases
from tests.support.each import each

CHECKS = {check.id: check for check in find_checks().checks}
UPTIME = 900_000.0
HOUR = 3600.0
Block = Callable[[int], tuple[str, ...]]
"""The lines of one event, the Nth of its kind."""


def killed(pid: int, group: str = "", constraint: str = "MEMCG") -> tuple[str, ...]:
    """As Linux 6.1 prints it; the lines between are dumps."""
    limit = f",oom_memcg={group}" if group else ""
    head = "Memory cgroup out of memory" if group else "Out of memory"
    return (
        "python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        f"oom-kill:constraint=CONSTRAINT_{constraint},nodemask=(null),cpuset=job,mems_allowed=0{limit}"
        f",task_memcg={group or '/'},task=python,pid={pid},uid=1000",
        f"{head}: Killed process {pid} (python) total-vm:98234kB, anon-rss:80000kB, file-rss:0kB, UID:1000",
    )


def log(block: Block, number: int, apart: float = HOUR, first: float = 1000.0, head: bool = True) -> str:
    """As dmesg prints so many events."""
    lines = [f"uptime {UPTIME}"] if head else []
    for n in range(number):
        at = UPTIME - first - (number - 1 - n) * apart
        lines += [f"[{at + 0.0001 * k:.6f}] {text}" for k, text in enumerate(block(n))]
    return "\n".join(lines) + "\n"


def found(check: str, text: str, expect: Expect | None = None) -> list[Problem]:
    backend = {"gpu-xid": Backend.NCCL, "amd-reset": Backend.NCCL}.get(check, Backend.GLOO)
    plan = draft([Host("a", "a")], JobWishes(backend=SourcedValue(backend, "test")))
    lines, expect = printed(KERNEL_LOG, text), expect or Expect()
    more = {"gpu-xid": (None, None), "amd-reset": (None, None)}
    values = (*more[check], plan, expect) if check in more else (expect, plan)
    return list(CHECKS[check].run(lines, *values))


JOB = "/slurm/uid_1000/job_42"


@dataclass(frozen=True)
class Event:
    check: str
    lines: str
    """Of the event with the number `n`; `next` is one more."""
    apart: float = HOUR

    def block(self, n: int) -> tuple[str, ...]:
        return tuple(self.lines.format(n=n, next=n + 1).splitlines())


EVENTS = from_cases(__file__, "EVENTS", dict[str, Event])


@pytest.mark.parametrize("kind", EVENTS)
def test_events_are_counted_and_not_their_lines(kind: str) -> None:
    event = EVENTS[kind]
    unit = "kill" if "killed" in kind else "time"
    for number in (1, 2, 4, 8):
        (problem,) = found(event.check, log(event.block, number, event.apart))
        told = problem.actual.partition(":")[0]
        one = "1 kill" if unit == "kill" else "once"
        assert told == (one if number == 1 else f"{number} {unit}s"), (number, problem.actual)


def test_a_cpu_that_stays_stuck_is_stuck_once() -> None:
    (problem,) = found("kernel-log", log(EVENTS["a CPU"].block, 8, apart=22.0))
    assert problem.actual == "once"
    hung: Block = lambda n: (f"INFO: task python3:6033 blocked for more than {120 * (n + 1)} seconds.",)  # noqa: E731
    (problem,) = found("kernel-log", log(hung, 8, apart=121.0))
    assert problem.actual == "once"


def test_the_limit_of_a_control_group_is_not_the_host() -> None:
    """Seven kills of a group were 21 times for lack of memory of the host."""
    (problem,) = found("kernel-log", log(lambda n: killed(6000 + n, JOB), 7))
    assert problem.summary == "kernel log: the kernel ended processes: a cgroup was at its memory limit"
    assert problem.actual == f"7 kills: '{JOB}' (7)"
    assert all("pid=600" in text.text or "process 600" in text.text for text in problem.evidence)
    (problem,) = found("kernel-log", log(lambda n: killed(6000 + n, "", "NONE"), 7))
    assert problem.summary == "kernel log: the kernel ended processes: the host had no memory left"
    (problem,) = found("kernel-log", log(lambda n: killed(6000 + n, "", "MEMORY_POLICY"), 7))
    assert problem.summary == "kernel log: the kernel ended processes: their memory nodes were full"
    both: Block = lambda n: killed(6000 + n, *(("/a",) if n else ("", "NONE")))  # noqa: E731
    assert [each.actual for each in found("kernel-log", log(both, 3))] == ["1 kill", "2 kills: '/a' (2)"]


NAMES = from_cases(__file__, "NAMES", tuple[str, ...])


@each("name", NAMES)
def test_a_name_of_a_group_adds_no_kill(name: str) -> None:
    """A user chooses it, with blanks and commas."""
    (problem,) = found("kernel-log", log(lambda n: killed(6000 + n, name), 2))
    assert problem.actual.partition(":")[0] == "2 kills"
    assert problem.summary.endswith("a cgroup was at its memory limit")


def test_a_group_that_is_killed_as_a_whole_and_kills_whose_announcement_was_left_out() -> None:
    """The kernel announces ten kills in five seconds, and the first of a group."""
    rest = [(n + 1.0, f"Memory cgroup out of memory: Killed process {n} (x)") for n in range(3)]
    first = [(0.0, text) for text in killed(9, JOB)]
    assert [kill.limit for kill in kills([*first, *rest])] == [JOB] * 4
    assert [kill.limit for kill in kills(rest)] == [""] * 3
    late = (95.0, "Memory cgroup out of memory: Killed process 8 (x)")
    assert [kill.limit for kill in kills([*first, late])] == [JOB, ""]


def test_what_only_looks_like_a_kill() -> None:
    quiet = (
        "NVRM: nvAssertOkFailedNoLog: Assertion failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)",
        "python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        "oom_reaper: reaped process 6033 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    )
    assert found("kernel-log", log(lambda _: quiet, 3)) == []


def test_a_log_that_was_cut_says_at_least() -> None:
    one = log(lambda n: (killed(n, "", "NONE")[-1],), MOST_LINES, apart=1.0)
    (problem,) = found("kernel-log", one)
    assert problem.actual == f"at least {MOST_LINES} kills"
    (problem,) = found("kernel-log", log(lambda n: (killed(n, "", "NONE")[-1],), MOST_LINES, apart=HOUR / 2))
    assert problem.actual == "48 kills", "what is older is known to be older"


def test_without_times_only_lines_are_counted() -> None:
    plain = "".join(
        f"{line.partition('] ')[2]}\n"
        for line in log(EVENTS["an error of the hardware"].block, 2, head=False).splitlines()
    )
    (problem,) = found("kernel-log", plain)
    assert problem.actual == "8 lines without a time"


# What verifies a repair


def since(text: str, asked: float) -> Expect:
    return with_log_since(Expect(kernel_log_since=text), asked)


@pytest.mark.parametrize("kind", EVENTS)
def test_what_is_older_than_the_report_is_not_counted_again_and_what_is_newer_is(kind: str) -> None:
    event = EVENTS[kind]
    text, now = log(event.block, 2, event.apart, first=1000.0), 1_795_167_475.0
    at = "2026-11-20T08:37:55Z"
    assert read_value("kernel_log_since", at) == at
    assert found(event.check, text, since(at, now)), "the report is an hour old, and it came again since"
    assert found(event.check, text, since("2026-11-20T09:30:00Z", now)) == []


def test_a_log_without_times_is_undecided_then() -> None:
    with pytest.raises(Undecided, match="have no time"):
        found(
            "kernel-log",
            "Out of memory: Killed process 1 (x)\n",
            Expect(kernel_log_since="2026-11-20T09:30:00Z"),
        )
    assert found("kernel-log", "uptime 5.0\n", Expect(kernel_log_since="2026-11-20T09:30:00Z")) == []


# Processes


@each("number", [1, 2, 4, 8])
def test_stuck_processes_are_counted(number: int) -> None:
    rows = "".join(f"{100 + n} 7 D root 7200 python\n" for n in range(number))
    processes = printed(PROCESSES, f"1 0 Ss root 90000 /sbin/init\n{rows}")
    (problem,) = CHECKS["stuck-process"].run(processes, Expect())
    assert problem.actual.startswith(f"{number}: pid 100 (root)")
