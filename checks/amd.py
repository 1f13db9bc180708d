"""AMD GPUs of a host: whether they answer, have no memory errors, and are free for the job."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from doctor.api import (
    AMD,
    EXPECT,
    PLAN,
    Confidence,
    Damage,
    Evidence,
    Expect,
    JobPlan,
    Problem,
    Severity,
    Undecided,
    check,
    maybe,
)
from doctor.facts.amd.gpus import (
    AMD_GPUS,
    AMD_HEALTH,
    AMD_ORDER,
    AMD_PROCESSES,
    AmdHealth,
    AmdProcess,
)
from doctor.facts.amd.smi import GROUP
from doctor.facts.gpus import Gpu, Gpus, LoggedTrouble, bus_id, gpus_named
from doctor.facts.processes import KERNEL_LOG, KernelLine
from doctor.rules.devices import alike
from doctor.rules.gpus import busy_gpus, hip_words, logged, memory_errors
from doctor.rules.kernel_log import read_log

SERVICES = re.compile(r"rdcd|gpuagent|X(org|wayland)|gnome-shell|kwin_\w+")
"""Processes that use a GPU although no job runs there."""
_WHERE = re.compile(r"\bamdgpu (?P<bus>[0-9A-Fa-f:.]{4,20}):")
_KINDS = (
    (
        r"(?<!\d)[1-9]\d{0,17} (?:new )?uncorrectable hardware errors detected",
        "hardware errors that could not be corrected",
        True,
    ),
    (r"GPU reset(?:\(\d{1,9}\))? failed", "the GPU could not be reset", True),
    (r"GPU reset begin", "the GPU was reset", False),
)
"""Pattern, meaning, and whether it accuses the hardware: a program alone can cause a reset."""


@check(
    "amd-unhealthy",
    AMD_GPUS,
    damage=Damage.GONE,
    causes=("amd-ras", "amd-reset"),
    remedy="wake-amd-smi",
    vendor=AMD,
    tools=(GROUP,),
)
def amd_unhealthy(gpus: Gpus) -> Iterator[Problem]:
    """The tools that report the AMD GPUs do not answer, or list none of them.

    Why it matters: amd-smi asks the driver. If it does not answer, the ranks hang at their first call or fail
    with "No HIP GPUs are available", and all others wait for them.

    How it is known: amd-smi is called, or rocm-smi if amd-smi is missing or refuses. Without both the check
    is undecided.

    What to do: call amd-smi by hand and read the kernel log. A driver that hangs recovers with a restart of
    the host. If only this login is refused, add it to the groups that own /dev/kfd and /dev/dri.
    """
    if gpus.silent:
        yield Problem(
            f"{gpus.tool} does not answer",
            expected="an answer within seconds",
            actual=gpus.silent,
            severity=Severity.WARN,
            confidence=Confidence.SUSPECT,
            evidence=(Evidence(gpus.source, gpus.silent),),
        )
    elif not gpus.listed and not gpus.denied:
        yield Problem(
            f"{gpus.tool} lists no GPU",
            expected="every GPU of the host",
            actual="; ".join(gpus.said) or "none",
            evidence=tuple(Evidence(gpus.source, line) for line in gpus.said),
        )


@check(
    "amd-ras",
    AMD_HEALTH,
    AMD_GPUS,
    maybe(AMD_ORDER),
    PLAN,
    damage=Damage.WRONG,
    remedy="reset-amd",
    vendor=AMD,
)
def amd_ras(
    health: Mapping[int, AmdHealth], gpus: Gpus, order: tuple[str, ...] | None, plan: JobPlan
) -> Iterator[Problem]:
    """An AMD GPU counted errors that it could not correct (RAS), or has memory pages to be replaced.

    Why it matters: such an error ends the process that used the memory, and all ranks with it; the driver may
    reset the GPU under a job. Pages that wait to be retired get worse until then.

    How it is known: `amd-smi metric --ecc` counts the errors of all blocks since the driver was loaded,
    `amd-smi bad-pages` lists pages. rocm-smi prints neither in a machine-readable form: with it alone the
    check is undecided.

    What to do: end the processes on the GPU and reset it, or restart the host. A GPU whose bad pages could
    not be retired must be exchanged, and so must one whose errors come back.
    """
    mine = {gpu.index: health[gpu.index] for gpu in hip_gpus(gpus, order, plan) if gpu.index in health}
    for count, indices in alike({i: own.stuck for i, own in mine.items() if own.stuck}):
        summary = "bad pages of its memory could not be retired"
        yield memory_errors(indices, summary, str(count), "amd-smi bad-pages", remedy="replace-amd")
    for errors, indices in alike({i: own.uncorrected for i, own in mine.items() if own.uncorrected}):
        summary = "its hardware had errors that could not be corrected"
        yield memory_errors(indices, summary, str(errors), "amd-smi metric --ecc")
    for count, indices in alike({i: own.pending for i, own in mine.items() if own.pending}):
        summary = "bad pages of its memory will be retired at the next reset"
        yield memory_errors(indices, summary, str(count), "amd-smi bad-pages", severity=Severity.WARN)
    untold = [index for index, own in mine.items() if own.uncorrected is None]
    if untold:
        raise Undecided(f"{gpus_named(untold)}: {gpus.tool} does not report the errors")


@check(
    "amd-busy",
    AMD_GPUS,
    maybe(AMD_PROCESSES),
    maybe(AMD_HEALTH),
    maybe(AMD_ORDER),
    PLAN,
    EXPECT,
    damage=Damage.BLOCKED,
    remedy="free-amd",
    vendor=AMD,
)
def amd_busy(
    gpus: Gpus,
    processes: tuple[AmdProcess, ...] | None,
    health: Mapping[int, AmdHealth] | None,
    order: tuple[str, ...] | None,
    plan: JobPlan,
    expect: Expect,
) -> Iterator[Problem]:
    """An AMD GPU is in use by another job, or keeps the memory of one.

    Why it matters: two jobs on one GPU run out of its memory, or slow each other down; a leftover process
    holds the memory until it is ended.

    How it is known: the processes with GPU memory that amd-smi lists, and more memory in use than on an idle
    GPU (1024 MB; gpu_idle_mb). Without root only the login's own processes are listed, and rocm-smi does not
    show which GPU a process uses: then the memory decides.

    What to do: find the owners of these processes, and end the leftovers. If they are the job's own, run the
    examination before it starts.
    """
    mine = hip_gpus(gpus, order, plan)
    if not mine and not gpus.denied:
        raise Undecided(f"{gpus.tool} lists no GPU of the job")
    others = [process for process in processes or () if not SERVICES.fullmatch(process.name)]
    own = {gpu.index: [process for process in others if process.gpu == gpu.index] for gpu in mine}
    used = {gpu.index: _used(gpu, health) for gpu in mine}
    hidden = [process for process in others if process.gpu is None]
    yield from busy_gpus(used, own, expect.gpu_idle_mb, "amd-smi process", hidden)
    if processes is None and all(mb is None for mb in used.values()):
        raise Undecided(f"{gpus.tool} reports neither processes nor memory")


def _used(gpu: Gpu, health: Mapping[int, AmdHealth] | None) -> int | None:
    told = health.get(gpu.index) if health else None
    return told.used_mb if told and told.used_mb is not None else gpu.used_mb


@check(
    "amd-reset",
    KERNEL_LOG,
    maybe(AMD_GPUS),
    maybe(AMD_ORDER),
    PLAN,
    EXPECT,
    damage=Damage.LOAD,
    remedy="look-into-amd",
    vendor=AMD,
)
def amd_reset(
    lines: tuple[KernelLine, ...],
    gpus: Gpus | None,
    order: tuple[str, ...] | None,
    plan: JobPlan,
    expect: Expect,
) -> Iterator[Problem]:
    """The kernel log of the last 24 hours holds resets of an AMD GPU, or errors that it could not correct.

    Why it matters: a reset ends every process on the GPU, and a job that ran there died of it. Errors that
    could not be corrected come back.

    How it is known: by the lines of the amdgpu driver. A reset alone is a warning, since a program can cause
    it; one that failed, and hardware errors, are faults.

    What to do: look at what came before the reset (`dmesg -T`): a ring that timed out points to a program,
    RAS errors point to the GPU. If it comes back, have the GPU examined.
    """
    log = read_log(lines, expect)
    mine = hip_gpus(gpus, order, plan) if gpus and not gpus.silent else ()
    yield from logged(log, troubles(log.lines), gpus, mine, 1, "nothing of the kind")


def hip_gpus(gpus: Gpus, order: Sequence[str] | None, plan: JobPlan) -> tuple[Gpu, ...]:
    """The GPUs of the job. HIP and amd-smi may count GPUs in different orders; `order` is that of HIP."""
    if gpus.silent:
        raise Undecided(gpus.silent)
    words = hip_words(plan)
    known = [gpu for bus in dict.fromkeys(order or ()) for gpu in gpus.listed if gpu.bus == bus]
    mine = known if order and all(gpu.bus for gpu in gpus.listed) else list(gpus.listed)
    return tuple(mine if words is None else (mine[i] for i in map(int, words) if i < len(mine)))


def troubles(lines: Iterable[KernelLine]) -> tuple[LoggedTrouble, ...]:
    """The lines that accuse a GPU, in the order of the log."""
    return tuple(trouble for line in lines if (trouble := _trouble(line)))


def _trouble(line: KernelLine) -> LoggedTrouble | None:
    if "amdgpu" not in line.text:
        return None
    for pattern, meaning, fatal in _KINDS:
        if re.search(pattern, line.text):
            where = _WHERE.search(line.text)
            return LoggedTrouble(f"kernel log: {meaning}", fatal, bus_id(where["bus"]) if where else "", line)
    return None
