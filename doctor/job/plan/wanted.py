"""How many devices the job is to have on a host, from variables of its container, launch or scheduler."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from doctor.devices import VENDORS, Vendor
from doctor.job.wishes import GPUS_OF_SLURM, JOB_GPUS, OF_ONE_NODE, UNEVEN
from doctor.model import Backend, SourcedValue

SHORT = 20
"""The most characters of a value that is shown: longer ones differ from host to host."""
_PART = re.compile(r"mig|[0-9]+:[0-9]|.*\dg\.\d+gb", re.IGNORECASE)
"""Part of a device: several parts may be on the same one."""


@dataclass(frozen=True, slots=True)
class Wanted(SourcedValue[int]):
    """At least that many devices; 0 if the job is to use none."""

    certain: bool = True
    """False if images and start files set the variable in this way, whatever runs there."""

    @property
    def strength(self) -> tuple[bool, int]:
        return self.certain and self.value > 0, self.value


def wanted_devices(
    env: Mapping[str, str], backend: Backend, of_job: Collection[str] = (), *, here: bool = True
) -> Wanted | None:
    """None if nothing says it. `of_job` are the variables that somebody set for this job, and not for all;
    `here`: whether the scheduler set them on this node.
    """
    slurm = tuple(_of_slurm(env, here=here)) if backend is Backend.NCCL else ()
    vendors = (vendor for vendor in VENDORS if vendor.backend is backend)
    return _strongest(_of_vendor(vendor, env, of_job, slurm) for vendor in vendors)


def _strongest(said: Iterable[Wanted | None]) -> Wanted | None:
    return max((each for each in said if each), key=lambda each: each.strength, default=None)


def _of_vendor(
    vendor: Vendor, env: Mapping[str, str], of_job: Collection[str], slurm: Iterable[Wanted]
) -> Wanted | None:
    chosen = [_chosen(env[name], name, name in of_job) for name in vendor.visible if name in env]
    given = (_given(env[name], name) for name in vendor.given if name in env)
    return next((each for each in chosen if not each.value), None) or _strongest((*chosen, *given, *slurm))


def _chosen(text: str, name: str, certain: bool) -> Wanted:
    """It chooses among devices that are there; the runtimes stop reading at the first bad word."""
    return Wanted(int(re.match(r"\s*(\d|[A-Z]+-\w)", text) is not None), _shown(name, text), certain)


def _given(text: str, name: str) -> Wanted | None:
    """What a runtime is to give to the container. `void` is left to other ways, such as CDI; images for CUDA
    have `all`.
    """
    words = {word.strip().lower() for word in text.split(",")} - {""}
    if not words or words == {"void"}:
        return None
    if words == {"none"}:
        return Wanted(0, _shown(name, text))
    parts = "all" in words or any(_PART.match(word) for word in words)
    return Wanted(1 if parts else sum(map(_span, words)), _shown(name, text), "all" not in words)


def _span(word: str) -> int:
    ends = re.fullmatch(r"(\d{1,4})-(\d{1,4})", word)
    return max(int(ends[2]) - int(ends[1]) + 1, 1) if ends else 1


def _of_slurm(env: Mapping[str, str], *, here: bool) -> Iterator[Wanted]:
    """The GPUs on each host: as many everywhere, or at least one if they were requested in another way, or
    counted on another node.
    """
    name = next((name for name in GPUS_OF_SLURM if re.search(r"\d", env.get(name, ""))), None)
    if name is None:
        return
    text = env[name]
    numbers = re.findall(r"(?:^|[:=,])(\d{1,4})(?=,|$)", text)
    count = sum(map(_span, text.split(","))) if name == JOB_GPUS else sum(map(int, numbers))
    uneven = name in UNEVEN or (name in OF_ONE_NODE and not here)
    parts = uneven or any(_PART.match(env.get(each, "")) for each in (name, "CUDA_VISIBLE_DEVICES"))
    yield Wanted(min(count, 1) if parts else count, _shown(name, text))


def _shown(name: str, text: str) -> str:
    return f"{name}={text}" if len(text) <= SHORT else name
