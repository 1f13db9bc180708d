"""Memory and file systems: the room left for the ranks, as the job sees it."""

import re
from dataclasses import dataclass, replace

from doctor.api import Capture, Fact, Read, Run, UnreadableOutput, files
from doctor.text.hostprogram import host_program

MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes. `limited`: a container's limit is below the host's memory; `host` is what the host has left."""

    total: int
    available: int
    limited: bool
    host: int


def _memory(capture: Capture) -> Memory:
    found = files(capture)
    kilobytes = {
        name: int(number) * 1024
        for name, number in re.findall(
            r"^(\w+):\s+(\d{1,15}) kB", found.get("/proc/meminfo", ""), re.MULTILINE
        )
    }
    if "MemTotal" not in kilobytes:
        raise UnreadableOutput("/proc/meminfo has no line MemTotal")
    total = kilobytes["MemTotal"]
    available = kilobytes.get("MemAvailable", kilobytes.get("MemFree", 0))
    for limit, used, stat in _CGROUPS:
        text = found.get(limit, "").strip()
        if re.fullmatch(_BYTES, text) and int(text) < total:
            idle = dict(
                re.findall(rf"^((?:total_)?inactive_file) ({_BYTES})$", found.get(stat, ""), re.MULTILINE)
            )
            cache = int(idle.get("total_inactive_file") or idle.get("inactive_file") or 0)
            spent = found.get(used, "").strip()
            taken = (int(spent) if re.fullmatch(_BYTES, spent) else 0) - cache
            return Memory(int(text), min(available, int(text) - max(taken, 0)), True, available)
    return Memory(total, available, False, available)


_BYTES = r"\d{1,18}"
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)
MEMORY = Fact("memory", Read(("/proc/meminfo", *(path for paths in _CGROUPS for path in paths))), _memory)


@dataclass(frozen=True, slots=True)
class Swap:
    """Swap space and its use, in bytes; compressed memory (zram) does not count."""

    total: int
    used: int
    devices: tuple[str, ...]


def _swap(capture: Capture) -> Swap:
    rows = [
        (row[0], int(row[2]) * 1024, int(row[3]) * 1024)
        for row in (line.split() for line in files(capture).get("/proc/swaps", "").splitlines())
        if len(row) >= 5 and all(re.fullmatch(_BYTES, size) for size in row[2:4]) and "zram" not in row[0]
    ]
    return Swap(sum(r[1] for r in rows), sum(r[2] for r in rows), tuple(r[0] for r in rows))


SWAP = Fact("swap", Read(("/proc/swaps",)), _swap)


_CONTROLLERS = "/sys/devices/system/edac/mc/mc[0-9]*/ue_count"


def _lost_data(capture: Capture) -> tuple[int, ...]:
    counts = (text.strip() for text in files(capture).values())
    return tuple(int(count) for count in counts if re.fullmatch(r"\d{1,9}", count))


LOST_DATA = Fact("lost-data", Read((_CONTROLLERS,)), _lost_data)
"""Errors that were not corrected since the start, by each memory controller that counts them."""


@dataclass(frozen=True, slots=True)
class Space:
    """`closed`: root may write there, the mode does not let others. `inodes` is how many more files fit."""

    path: str
    mount: str
    total: int
    free: int
    writable: bool
    inodes: int | None = None
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Spaces:
    """`remote`: on network file systems; `forced`: made read-only by the kernel; `noexec`: no programs."""

    places: tuple[Space, ...]
    remote: tuple[str, ...]
    gone: tuple[str, ...]
    forced: tuple[str, ...] = ()
    noexec: tuple[str, ...] = ()

    def at(self, path: str) -> Space | None:
        return next((space for space in self.places if space.path == path), None)


_SPACES = host_program(__file__, "memory_spaces.sh")
"""The type is looked up first, because touching a path may hang. One `df` prints its lines in order.

`forced`: if an error makes the kernel stop writing to a disk, the mount stays "rw" while its superblock is
"ro", or says emergency_ro (since Linux 6.15, where even `test -w` believes the mount). If a file system is
read-only by design, its mount is "ro", or its device is.
"""


def _spaces(capture: Capture) -> Spaces:
    places: list[Space] = []
    told: dict[str, list[str]] = {"remote": [], "gone": [], "forced": [], "noexec": []}
    asked: list[tuple[str, str]] = []
    text, _, apart = capture.stdout.partition("\ninodes\n")
    inodes: list[tuple[str, str, str]] = _INODES.findall(apart)
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word in told:
            told[word].append(rest.partition(" ")[2] if word == "remote" else rest)
        elif word == "path":
            writable, _, path = rest.partition(" ")
            asked.append((path, writable))
        elif asked and not line.startswith("Filesystem "):
            row = _ROW.search(line)
            if not row:
                break
            path, writable = asked.pop(0)
            total, free, mount = int(row[3]) * 1024, int(row[4]) * 1024, row[5]
            places.append(Space(path, mount, total, free, writable != "no", closed=writable == "closed"))
            inodes += [(row[1], row[2], mount)] if row[1] else []
    if asked:
        raise UnreadableOutput(f"df printed no line for {asked[0][0][:80]}")
    if not (places or told["remote"] or told["gone"]):
        raise UnreadableOutput("df printed nothing that can be read")
    return Spaces(tuple(_with_inodes(places, inodes)), *map(tuple, told.values()))


_ROW = re.compile(
    r"\s(?:(\d{1,18}|-)\s+(-?\d{1,18}|-)\s+)?"  # inodes, free inodes
    r"(\d{1,18})\s+\d{1,18}\s+(-?\d{1,18})\s+(?:\d{1,3}%|-)\s+(/.*)$"
)
_INODES = re.compile(r"\s(\d{1,18}|-)\s+(?:\d{1,18}|-)\s+(-?\d{1,18}|-)\s+\S+\s+(/.*)$", re.MULTILINE)
"""A line of `df -i`: what cannot print both at once prints them one after the other."""


def _with_inodes(places: list[Space], rows: list[tuple[str, str, str]]) -> list[Space]:
    """The places with their free inodes. Without a total, or with a negative rest, there is no limit."""
    if [mount for *_, mount in rows] != [place.mount for place in places]:
        return places
    limited = (re.fullmatch(r"0*[1-9]\d*", total) and free.isdecimal() for total, free, _ in rows)
    return [
        replace(place, inodes=int(free)) if known else place
        for place, known, (_, free, _) in zip(places, limited, rows, strict=True)
    ]


SPACES = Fact("spaces", Run(_SPACES), _spaces, slow=True)


_FULL = host_program(__file__, "memory_full.sh")
"""Local, writable file systems only: others may hang. Full: less than 64 MB and at most a tenth free."""


def _full(capture: Capture) -> tuple[Space, ...]:
    head, *rows = capture.stdout.splitlines() or [""]
    if head != "full":
        raise UnreadableOutput("the list of full file systems has no head")
    found = (re.fullmatch(r"\S+\s+(\d{1,18})\s+\d{1,18}\s+(-?\d{1,18})\s+\S+\s+(/.*)", row) for row in rows)
    return tuple(Space(row[3], row[3], int(row[1]) * 1024, int(row[2]) * 1024, True) for row in found if row)


FULL = Fact("full-disks", Run(_FULL), _full, slow=True)
"""Local file systems without free space, whatever they are used for."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One file in /dev/shm."""

    name: str
    size: int
    owner: str


def _segments(capture: Capture) -> tuple[Segment, ...]:
    rows = re.findall(
        r"^-\S{9}\S?\s+\d+\s+(\S+)\s+\S+\s+(\d{1,18})\s+.*?\s([^\s/]+)$", capture.stdout, re.MULTILINE
    )
    found = [Segment(name, int(size), owner) for owner, size, name in rows]
    return tuple(sorted(found, key=lambda segment: -segment.size))


# One line per name: a line break in a name would fake files. If ls lacks this style, it prints `?`.
_LIST = "env QUOTING_STYLE=escape ls -l /dev/shm"
SEGMENTS = Fact("shm-segments", Run(_LIST, "/dev/shm/*"), _segments, cap=65536, partial=True, ends=True)
