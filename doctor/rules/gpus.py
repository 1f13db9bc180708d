"""GPUs of either vendor: those that the *_VISIBLE_DEVICES variables leave to the job, and their problems."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from doctor.api import AMD, NVIDIA, Confidence, Evidence, JobPlan, Problem, Severity, Undecided, grouped
from doctor.facts.amd.gpus import AmdProcess
from doctor.facts.gpus import Gpu, Gpus, LoggedTrouble, gpus_named, is_named
from doctor.facts.nvidia.gpus import GpuProcess
from doctor.rules.devices import alike, problem_of
from doctor.rules.kernel_log import KernelLog, when

SHOWN = 8


def gpu_problem(numbers: Sequence[int], summary: str, *evidence: Evidence, **more: Any) -> Problem:
    """A fault of GPUs; `more` is as in `problem_of`."""
    values = {"gpu": tuple(map(str, numbers))}
    return problem_of(numbers, summary, *evidence, **{"what": "GPU", "values": values} | more)


def cuda_gpus(gpus: Gpus, plan: JobPlan) -> tuple[Gpu, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES names; all of them if it is not set."""
    if gpus.silent:
        raise Undecided(gpus.silent)
    words = cuda_words(plan)
    return tuple(g for g in gpus.listed if words is None or any(is_named(g, word) for word in words))


def cuda_words(plan: JobPlan) -> tuple[str, ...] | None:
    """The words of CUDA_VISIBLE_DEVICES that the runtime reads."""
    (name,) = NVIDIA.visible
    text = plan.env.get(name)
    if text is None:
        return None
    return _words(text, r"[0-9]{1,4}|GPU-[0-9A-Fa-f-]{1,60}", "MIG-", f"{name} names MIG instances")


def hip_words(plan: JobPlan) -> tuple[str, ...] | None:
    """In HIP's numbers: ROCR_VISIBLE_DEVICES counts all GPUs, the other two those that it leaves."""
    hip, cuda, rocr = AMD.visible
    of_runtime = _hip_numbers(plan, rocr)
    of_hip = _hip_numbers(plan, hip if plan.env.get(hip) else cuda)
    if of_runtime is None or of_hip is None:
        return of_hip if of_runtime is None else of_runtime
    return tuple(of_runtime[int(word)] for word in of_hip if int(word) < len(of_runtime))


def _hip_numbers(plan: JobPlan, name: str) -> tuple[str, ...] | None:
    """The numbers in a variable; None if it is unset or empty, because an empty text chooses nothing."""
    if not (text := plan.env.get(name)):
        return None
    return tuple(str(int(word)) for word in _words(text, "[0-9]{1,4}", "GPU-", f"{name} names GPUs by UUID"))


def _words(text: str, known: str, unknown: str, complaint: str) -> tuple[str, ...]:
    """The words that the runtime reads: it stops at the first one that it does not know."""
    words = [word.strip() for word in text.split(",")]
    read = tuple(takewhile(lambda word: re.fullmatch(known, word), words))
    if any(word.startswith(unknown) for word in words[len(read) : len(read) + 1]):
        raise Undecided(f"{complaint}, which are not examined")
    return read


def busy_gpus(
    used_mb: Mapping[int, int | None],
    own: Mapping[int, Sequence[AmdProcess | GpuProcess]],
    idle_mb: int,
    source: str,
    hidden: Sequence[AmdProcess] = (),
) -> Iterator[Problem]:
    """GPUs that another job uses. `hidden` are processes whose GPU is unknown."""

    def seen(index: int) -> Evidence:
        processes = [f"; pid {p.pid} {p.name} {p.used_mb} MB" for p in (own[index] or hidden)[:SHOWN]]
        return Evidence(source, f"GPU {index}: {used_mb[index]} MB in use{''.join(processes)}")

    kinds = {
        index: (tuple(sorted({process.name for process in own[index]})), (mb or 0) > idle_mb)
        for index, mb in used_mb.items()
    }
    for (names, full), indices in alike(kinds):
        shown = ", ".join(filter(None, names))[:160]
        if names or full:
            yield gpu_problem(
                indices,
                "processes of another job are on it" if names else "its memory is in use",
                *map(seen, indices[:SHOWN]),
                expected="no process" if names else f"at most {idle_mb} MB of its memory in use",
                actual=shown or "of a process that is not visible from here",
                severity=None if full else Severity.WARN,
                confidence=Confidence.CERTAIN if shown else Confidence.STRONG,
            )


def memory_errors(indices: Sequence[int], summary: str, actual: str, source: str, **more: Any) -> Problem:
    """Errors of memory that the tool of the vendor counts; `more` is as in Problem."""
    evidence = Evidence(source, f"{gpus_named(indices)}: {actual}")
    return gpu_problem(indices, summary, evidence, expected="none", actual=actual, **more)


def logged(
    log: KernelLog,
    found: Iterable[LoggedTrouble],
    gpus: Gpus | None,
    mine: Sequence[Gpu],
    apart: float,
    expected: str,
) -> Iterator[Problem]:
    """Of GPUs of the job (`mine`) or unknown ones; lines about one within `apart` seconds are one event."""
    where = {gpu.bus: gpu.index for gpu in gpus.listed if gpu.bus} if gpus else {}
    ours = {None, *(gpu.index for gpu in mine)}
    kinds = grouped(((each.summary, each.fatal), each) for each in found if where.get(each.bus) in ours)
    for (summary, fatal), some in kinds.items():
        buses = list(dict.fromkeys(each.bus for each in some if each.bus))
        indices = sorted({where[bus] for bus in buses if bus in where})
        strange = [f"GPU at {bus}" for bus in buses if bus not in where]
        yield gpu_problem(
            indices,
            summary,
            *(Evidence("dmesg", when(each.line) + each.line.text[:300]) for each in some[-3:]),
            expected=expected,
            actual=log.times([(each.bus, each.line) for each in some], apart),
            subject=", ".join([gpus_named(indices)] * bool(indices) + strange[:SHOWN]) or None,
            severity=None if fatal else Severity.WARN,
        )
