"""Which GPUs of a host are the job's: those that the *_VISIBLE_DEVICES variables leave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from doctor.api import AMD, NVIDIA, JobPlan, Undecided
from doctor.facts.gpus import Gpu, Gpus, is_named


def cuda_gpus(gpus: Gpus, plan: JobPlan) -> tuple[Gpu, ...]:
    """Those that CUDA_VISIBLE_DEVICES names; all where it is not set."""
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


def hip_gpus(gpus: Gpus, order: Sequence[str] | None, plan: JobPlan) -> tuple[Gpu, ...]:
    """HIP and amd-smi may count GPUs in different orders; `order` is that of HIP."""
    if gpus.silent:
        raise Undecided(gpus.silent)
    words = hip_words(plan)
    known = [gpu for bus in dict.fromkeys(order or ()) for gpu in gpus.listed if gpu.bus == bus]
    mine = known if order and all(gpu.bus for gpu in gpus.listed) else list(gpus.listed)
    return tuple(mine if words is None else (mine[i] for i in map(int, words) if i < len(mine)))


def hip_words(plan: JobPlan) -> tuple[str, ...] | None:
    """The numbers that the variables leave, as HIP counts all GPUs.

    ROCR_VISIBLE_DEVICES counts all of them, the others count what it leaves. HIP_VISIBLE_DEVICES overrides
    CUDA_VISIBLE_DEVICES.
    """
    hip, cuda, rocr = AMD.visible
    of_runtime = _hip_numbers(plan, rocr)
    of_hip = _hip_numbers(plan, hip if plan.env.get(hip) else cuda)
    if of_runtime is None or of_hip is None:
        return of_hip if of_runtime is None else of_runtime
    return tuple(of_runtime[int(word)] for word in of_hip if int(word) < len(of_runtime))


def _hip_numbers(plan: JobPlan, name: str) -> tuple[str, ...] | None:
    """An empty text chooses nothing."""
    if not (text := plan.env.get(name)):
        return None
    return tuple(str(int(word)) for word in _words(text, "[0-9]{1,4}", "GPU-", f"{name} names GPUs by UUID"))


def _words(text: str, known: str, unknown: str, complaint: str) -> tuple[str, ...]:
    """The runtime stops reading at the first word that it does not know."""
    words = [word.strip() for word in text.split(",")]
    read = tuple(takewhile(lambda word: re.fullmatch(known, word), words))
    if any(word.startswith(unknown) for word in words[len(read) : len(read) + 1]):
        raise Undecided(f"{complaint}, which are not looked at")
    return read
