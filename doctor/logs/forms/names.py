"""Finds out who wrote a file, by its name and folders."""

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

_RANK = re.compile(
    r"(?:^|[._-])(?:global)?rank[._-]?(?P<rank>\d{1,6})(?:[._-]|$)"
    r"|^worker[_-](?P<worker>\d{1,6})\.(?:log|txt|out|err)"
    r"|^(?:train_parallel|device_?)(?P<script>\d{1,4})$|^workerlog\.(?P<paddle>\d{1,4})$",
    re.IGNORECASE,
)
_PLOG = re.compile(r"^(?:plog|device)-(?P<pid>\d{1,9})_\d{8,20}\.log")
_DEVICE = re.compile(r"^device-(?P<device>\d{1,3})$")
_ATTEMPT = re.compile(r"^attempt_\d{1,4}$")
_STEMS = "node|host|gpu|npu|server|compute|master|worker|cn|gn|dgx|hgx|atlas|ecs|pod|vm|h|n"
_HOST = re.compile(
    rf"^(?:{_STEMS})[a-z]{{0,8}}[_-]?\d{{1,6}}(?:[.-][a-z0-9.-]{{1,60}})?$|^ip-\d{{1,3}}(?:-\d{{1,3}}){{3}}$"
)
_ADDRESS = re.compile(r"^\d{1,3}(?:\.\d{1,3}){3}$")
_TOKEN = re.compile(r"(?:^|[._])((?:node|host|gpu|npu|server|compute|cn|gn|dgx)-?\d{1,6})(?=[._-]|$)")


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
