"""What the control groups of a login leave to the ranks that it starts."""

from collections.abc import Iterator, Mapping

from doctor.api import EXPECT, RANKS, Damage, Evidence, Expect, Problem, Severity, Skip, check
from doctor.facts.groups import GroupLimit
from doctor.facts.memory import MB
from doctor.facts.software import ENVIRONMENT, Environment

THREADS, FEWEST = 128, 8
"""Processes and threads for each rank: fewer are a warning, and with this few no rank starts."""
SHARING = 4
"""With this many ranks on one processor the job is ruined; with fewer it is slow."""
_PROPERTIES: Mapping[str, str] = {
    "memory.max": "MemoryMax=infinity",
    "memory.limit_in_bytes": "MemoryLimit=infinity",
    "memory.high": "MemoryHigh=infinity",
    "pids.max": "TasksMax=infinity",
    "cpu.max": "CPUQuota=",
    "cpu.cfs_quota_us": "CPUQuota=",
}
_WHAT = {"memory": "memory", "pids": "processes and threads", "cpus": "processor time"}


@check("group-limited", ENVIRONMENT, RANKS, EXPECT, damage=Damage.LOAD, severity=Severity.WARN)
def group_limited(login: Environment, ranks: int, expect: Expect) -> Iterator[Problem]:
    """A control group of the login leaves too little to the ranks.

    Why it matters: ranks live in the group of the login that starts them, and every group above it counts.
    Beyond MemoryMax the kernel ends a rank although the host has memory left; beyond MemoryHigh and CPUQuota
    it slows all of them; beyond TasksMax no thread starts ("Resource temporarily unavailable").

    How it is known: from the files of the control groups of the login, both versions, on every level up to
    the root, and from what is in use there now. The memory of the root is left to memory-low.

    What to do: raise the limit of the slice or service that the finding names, or of the container.
    """
    if not login.groups:
        raise Skip("no control group of the login has a limit")
    memory = ranks * expect.memory_mb_per_rank * MB
    needs: Mapping[str, tuple[float, float]] = {
        "memory": (memory, memory // 4),
        "pids": (THREADS * ranks, FEWEST * ranks),
        "cpus": (ranks, ranks / SHARING),
    }
    for kind, (need, least) in needs.items():
        own = [each for each in login.groups if each.kind == kind and (kind != "memory" or each.path != "/")]
        tight = min(own, key=lambda each: each.room, default=None)
        if tight and tight.room < need:
            yield _problem(tight, need, ranks, ruined=tight.room <= least and tight.file != "memory.high")


def _problem(limit: GroupLimit, need: float, ranks: int, *, ruined: bool) -> Problem:
    unit = limit.path.rpartition("/")[2]
    of_systemd = unit.endswith((".slice", ".service", ".scope"))
    return Problem(
        f"the control group of the login leaves too little {_WHAT[limit.kind]} to the ranks",
        expected=f"{_amount(limit.kind, need)} for {ranks} ranks",
        actual=f"{_amount(limit.kind, max(limit.room, 0))} left by {limit.file} of {limit.path}",
        subject=f"{limit.file} of {limit.path}",
        severity=Severity.FAIL if ruined else None,
        evidence=(Evidence(f"{limit.file} of {limit.path}", _amount(limit.kind, max(limit.room, 0))),),
        commands=(
            f"sudo systemctl set-property {unit} {_PROPERTIES[limit.file]}"
            if of_systemd
            else f"# Raise {limit.file} of {limit.path}, or that of its container.",
        ),
    )


def _amount(kind: str, number: float) -> str:
    if kind == "memory":
        return f"{number / MB:.0f} MB"
    return f"{number:g} processors" if kind == "cpus" else f"{number:.0f} processes and threads"
