"""GPUs, as their vendor's tool lists them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.api import fold
from doctor.facts.processes import KernelLine


@dataclass(frozen=True, slots=True)
class Gpu:
    """One line of the list. `trouble` is the text in place of its values: "GPU requires reset"."""

    index: int
    uuid: str
    name: str
    bus: str
    used_mb: int | None = None
    trouble: str = ""
    serial: str = ""


@dataclass(frozen=True, slots=True)
class Gpus:
    """`denied` counts files that this login may not open: others' GPUs. `silent`: why there is no answer."""

    listed: tuple[Gpu, ...]
    said: tuple[str, ...] = ()
    denied: int = 0
    silent: str = ""
    tool: str = "nvidia-smi"
    source: str = "nvidia-smi --query-gpu"
    """The call itself, as evidence."""


@dataclass(frozen=True, slots=True)
class LoggedTrouble:
    """A line of a driver in the kernel log that accuses a GPU; `bus` is empty if the line names none."""

    summary: str
    fatal: bool
    bus: str
    line: KernelLine


def gpus_named(numbers: Sequence[int]) -> str:
    """ "GPU 3", "GPUs 0-3,6" """
    return f"GPU{'s' if len(numbers) > 1 else ''} {fold([str(n) for n in numbers]).strip('[]')}"


def is_named(gpu: Gpu, word: str) -> bool:
    """Whether the word is the GPU's number, its UUID or the beginning of its UUID."""
    return gpu.uuid.startswith(word) if word.startswith("GPU-") else gpu.index == int(word)


def bus_id(text: str) -> str:
    """00000000:8A:00.0 and PCI:0000:8a:00 -> 0000:8a:00; empty if there is no bus ID."""
    match = re.search(r"\b(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.[0-7])?\b", text)
    return f"{int(match[1] or '0', 16):04x}:{match[2]}:{match[3]}".lower() if match else ""
