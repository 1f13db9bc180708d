"""Finds out who wrote a file, by its name and folders."""

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from doctor.text.hostprogram import table

_RANK, _PLOG, _DEVICE, _ATTEMPT, _HOST, _ADDRESS, _TOKEN = (
    re.compile("|".join(rows)) for _, *rows in table(__file__, "names.txt")
)


@dataclass(frozen=True, slots=True)
class NameFacts:
    """The values in a path. `local` is the rank within its host: torchrun's folders, Paddle's workerlog.N."""

    rank: int | None = None
    local: int | None = None
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    attempt: int | None = None
    """The number in the name of torchrun's folder."""

    @property
    def of_one(self) -> bool:
        """Whether the file is that of one rank."""
        return self.rank is not None or self.local is not None


def named(path: str) -> NameFacts:
    """The values in a path such as `node1/attempt_0/3/stderr.log` or `debug/plog/plog-123_20250101.log`."""
    parts = PurePosixPath(path.replace("\\", "/")).parts[-8:]
    if not parts:
        return NameFacts()
    name = parts[-1]
    rank = local = device = attempt = None
    for part in reversed(parts):
        found = _RANK.search(part)
        if found and (part is name or not found["worker"]) and not (part is name and found["script"]):
            rank = int(found[found.lastgroup or 0])
            break
    if rank is not None and name.startswith("workerlog."):
        rank, local = None, rank
    for before, part in pairwise(parts):
        if _ATTEMPT.match(before) and part.isdecimal() and len(part) < 6:
            local, attempt = int(part), int(before.rpartition("_")[2])
    plog = _PLOG.match(name)
    for part in parts[:-1]:
        of_device = _DEVICE.match(part)
        if plog and of_device:
            device = int(of_device["device"])
    return NameFacts(rank, local, _host(parts), int(plog["pid"]) if plog else None, device, attempt)


def _host(parts: tuple[str, ...]) -> str | None:
    for part in reversed(parts[:-1]):
        if (_HOST.match(part.lower()) and not _RANK.search(part)) or _ADDRESS.match(part):
            return part
    stem = parts[-1].partition(".")[0]
    numbered = all(re.search(r"\d", word) for word in stem.split("-")[1:])  # `n1-oom.log` names what happened
    if numbered and _HOST.match(stem.lower()) and not stem.lower().startswith("worker"):
        return stem
    token = _TOKEN.search(parts[-1])
    return token[1] if token else None
