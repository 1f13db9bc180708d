"""How many devices the job is to have on a host, from variables of its container, launch or scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from doctor.devices import VENDORS
from doctor.job.wishes import GPUS_OF_SLURM, JOB_GPUS, UNEVEN
from doctor.model import Backend, SourcedValue

SHORT = 20
"""The most characters of a value that is shown: longer ones differ from host to host."""
_PART = re.compile(r"mig|[0-9]+:[0-9]|.*\dg\.\d+gb", re.IGNORECASE)
"""Part of a device: several parts may be on the same one."""


def wanted_devices(env: Mapping[str, str], backend: Backend) -> SourcedValue[int] | None:
    """At least that many devices; 0 if the job is to use none; None if nothing says so."""
    vendors = [vendor for vendor in VENDORS if vendor.backend is backend]
    chosen = [_chosen(env[name], name) for v in vendors for name in v.visible if name in env]
    given = [_given(env[name], name) for v in vendors for name in v.given if name in env]
    slurm = _of_slurm(env) if backend is Backend.NCCL else ()
    none = next((each for each in chosen if not each.value), None)
    said = [each for each in (*chosen, *given, *slurm) if each]
    return none or max(said, key=lambda each: each.value, default=None)


def _chosen(text: str, name: str) -> SourcedValue[int]:
    """It chooses among devices that are there; the runtimes stop reading at the first bad word."""
    return SourcedValue(int(re.match(r"\s*(\d|[A-Z]+-\w)", text) is not None), _shown(name, text))


def _given(text: str, name: str) -> SourcedValue[int] | None:
    """What a runtime is to give to the container. `void` is left to other ways, such as CDI; images for CUDA
    have `all`.
    """
    words = {word.strip().lower() for word in text.split(",")} - {""}
    if not words or words == {"void"}:
        return None
    if words == {"none"}:
        return SourcedValue(0, _shown(name, text))
    parts = "all" in words or any(_PART.match(word) for word in words)
    return SourcedValue(1 if parts else sum(map(_span, words)), _shown(name, text))


def _span(word: str) -> int:
    ends = re.fullmatch(r"(\d{1,4})-(\d{1,4})", word)
    return max(int(ends[2]) - int(ends[1]) + 1, 1) if ends else 1


def _of_slurm(env: Mapping[str, str]) -> Iterator[SourcedValue[int]]:
    """The GPUs on each host: as many everywhere, or at least one if they were requested in another way."""
    name = next((name for name in GPUS_OF_SLURM if re.search(r"\d", env.get(name, ""))), None)
    if name is None:
        return
    text = env[name]
    numbers = re.findall(r"(?:^|[:=,])(\d{1,4})(?=,|$)", text)
    count = sum(map(_span, text.split(","))) if name == JOB_GPUS else sum(map(int, numbers))
    parts = name in UNEVEN or any(_PART.match(env.get(each, "")) for each in (name, "CUDA_VISIBLE_DEVICES"))
    yield SourcedValue(min(count, 1) if parts else count, _shown(name, text))


def _shown(name: str, text: str) -> str:
    return f"{name}={text}" if len(text) <= SHORT else name
