"""Kernel settings and limits: sysctls, ulimits, neighbour table, CPU governor, NUMA balancing."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from doctor.api import Capture, Fact, Read, UnreadableOutput, files

INFINITE = 1 << 62
"""The number that stands for "unlimited"."""


@dataclass(frozen=True, slots=True)
class Ports:
    """How the kernel treats TCP ports and queues of new connections."""

    somaxconn: int
    syn_backlog: int
    ephemeral: range
    reserved: tuple[range, ...]

    def is_reserved(self, port: int) -> bool:
        return any(port in ports for ports in self.reserved)

    def may_give_away(self, port: int) -> bool:
        """Whether the kernel may give the port to any program that connects somewhere."""
        return port in self.ephemeral and not self.is_reserved(port)


def port_list(ranges: Iterable[range]) -> str:
    """The ranges as the kernel writes them, sorted and with neighbours merged: `29500,60000-60031`."""
    joined: list[range] = []
    for each in sorted((each for each in ranges if each), key=lambda each: each.start):
        if joined and each.start <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, each.stop))
        else:
            joined.append(each)
    return ",".join(f"{each[0]}-{each[-1]}" if len(each) > 1 else str(each[0]) for each in joined)


def ranges(text: str) -> tuple[range, ...]:
    """The ranges in a text such as `60000-60031,29500`, as the kernel writes it."""
    parts = re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", text)
    return tuple(range(int(first), int(last or first) + 1) for first, last in parts)


def _ports(capture: Capture) -> Ports:
    found = files(capture)

    def number(path: str) -> int:
        text = found.get(path, "").strip()
        if not re.fullmatch(r"\d{1,10}", text):
            raise UnreadableOutput(
                f"{path} holds {text[:40]!r} instead of a number" if text else f"{path} is not there"
            )
        return int(text)

    span = re.fullmatch(r"(\d{1,5})\s+(\d{1,5})", found.get(_RANGE, "").strip())
    if not span:
        raise UnreadableOutput(f"{_RANGE} is not there or does not hold two numbers")
    return Ports(
        number("/proc/sys/net/core/somaxconn"),
        number("/proc/sys/net/ipv4/tcp_max_syn_backlog"),
        range(int(span[1]), int(span[2]) + 1),
        ranges(found.get(_RESERVED, "")),
    )


_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
_RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
PORTS = Fact(
    "ports",
    Read(("/proc/sys/net/core/somaxconn", "/proc/sys/net/ipv4/tcp_max_syn_backlog", _RANGE, _RESERVED)),
    _ports,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Soft limits of a non-interactive login, for memory and files in bytes; `INFINITE` means unlimited."""

    nofile: int
    nproc: int
    memlock: int
    address_space: int | None = None
    file_size: int | None = None
    cpu_seconds: int | None = None
    data: int | None = None
    """None if the kernel does not list it."""
    most_files: int | None = None
    """The hard limit of open files."""


def _limits(capture: Capture) -> Limits:
    text = files(capture).get("/proc/self/limits", "")

    def listed(name: str, before: str = "") -> int | None:
        match = re.search(rf"^{name}{before}\s+(unlimited|\d{{1,20}})\s", text, re.MULTILINE)
        return match and (INFINITE if match[1] == "unlimited" else int(match[1]))

    def soft(name: str) -> int:
        if (limit := listed(name)) is None:
            raise UnreadableOutput(f"/proc/self/limits has no line {name!r}")
        return limit

    return Limits(
        soft("Max open files"),
        soft("Max processes"),
        soft("Max locked memory"),
        listed("Max address space"),
        listed("Max file size"),
        listed("Max cpu time"),
        listed("Max data size"),
        listed("Max open files", r"\s+\S+"),
    )


LIMITS = Fact("limits", Read(("/proc/self/limits",)), _limits)


def _neighbours(capture: Capture) -> int | None:
    text = next(iter(files(capture).values()), "").strip()
    return int(text) if re.fullmatch(r"\d{1,10}", text) else None


NEIGHBOURS = Fact("neighbours", Read(("/proc/sys/net/ipv4/neigh/default/gc_thresh3",)), _neighbours)
"""The largest size of the IPv4 neighbour (ARP) table; None if the namespace does not show it."""


@dataclass(frozen=True, slots=True)
class Cpus:
    """CPUs that the login may use, and those not kept for programs that ask for them (isolcpus)."""

    allowed: int
    shared: int


def _cpus(capture: Capture) -> Cpus:
    found = files(capture)
    allowed = re.search(r"^Cpus_allowed_list:\s*([\d,-]+)$", found.get("/proc/self/status", ""), re.MULTILINE)
    online = found.get(f"{_CPUS}/online", "")
    if not allowed or not online:
        raise UnreadableOutput("the kernel does not list the CPUs")
    isolated = _numbers(found.get(f"{_CPUS}/isolated", ""))
    return Cpus(len(_numbers(allowed[1])), len(_numbers(online) - isolated))


def _numbers(text: str) -> set[int]:
    return {number for numbers in ranges(text) for number in numbers}


_CPUS = "/sys/devices/system/cpu"
CPUS = Fact("cpus", Read(("/proc/self/status", f"{_CPUS}/online", f"{_CPUS}/isolated")), _cpus)


def _rdma(capture: Capture) -> tuple[str, ...]:
    places = (re.fullmatch(r"/sys/class/infiniband/([^/]+)/node_type", path) for path in files(capture))
    return tuple(sorted({place[1] for place in places if place}))


RDMA = Fact("rdma", Read(("/sys/class/infiniband/*/node_type",)), _rdma)
"""InfiniBand and RoCE devices of the host."""
