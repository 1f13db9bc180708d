"""The tables, in Markdown that is readable as plain text; the conditions of the measurement come first."""

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version as installed_version
from statistics import median

from benchmarks.contenders import Contender, installed, version
from benchmarks.meter import Sample
from doctor import __version__

MEGA = 1e6


def conditions(hosts: int) -> str:
    """The conditions without which the numbers mean little."""
    libraries = ", ".join(f"{name} {installed_version(name)}" for name in ("paramiko", "cryptography"))
    programs = "; ".join(version(program) for program in ("clush", "pdsh", "ansible", "ssh"))
    field = f"{hosts} hosts (namespaces, each with its own sshd) and the controller."
    return f"{field} {machine(libraries)}\n{programs}."


def machine(*libraries: str) -> str:
    """All hosts are on this one."""
    versions = (f"cluster-doctor {__version__}", f"Python {platform.python_version()}", *libraries)
    return (
        f"One machine with {os.cpu_count()} cores, {kernel()}; load before: {os.getloadavg()[0]:.1f}.\n"
        f"{', '.join(versions)}."
    )


def peers_table(
    peers: Sequence[Contender],
    ours: Sequence[Contender],
    taken: Mapping[str, Sequence[Sample]],
    hosts: int,
) -> str:
    """Medians; the ratios are of wall times, the work is per host. A login costs a host the same whatever is
    asked: the CPU time beyond that is the cost of the question, and that of `cat` is close to zero.
    """
    clush, *_, ansible = (_wall(taken.get(peer.name, ())) for peer in peers)
    login = min((_hosts_cpu(taken[peer.name]) for peer in peers[:-1] if peer.name in taken), default=0.0)
    lines = []
    for contender in (*peers, *ours):
        name = f"`{contender.name}`"
        if not installed(contender):
            lines.append([name, "not installed", *[""] * 8])
            continue
        samples = taken[contender.name]
        wall = _wall(samples)
        assert wall is not None
        walls = [s.wall for s in samples]
        lines.append(
            [
                name,
                f"{wall:.2f} s",
                f"{min(walls):.2f}-{max(walls):.2f}",
                str(len(samples)),
                f"{wall / clush:.2f}" if clush else "",
                f"{ansible / wall:.1f}" if ansible else "",
                f"{1000 * median(s.cpu for s in samples) / hosts:.0f} ms",
                f"{1000 * _hosts_cpu(samples) / hosts:.0f} ms",
                f"{1000 * (_hosts_cpu(samples) - login) / hosts:.0f} ms",
                f"{median(s.hosts_processes for s in samples) / hosts:.0f}",
            ]
        )
    head = [
        "",
        "wall",
        "range",
        "runs",
        "of clush",
        "ansible is … times slower",
        "controller CPU a host",
        "host's CPU",
        "… beyond logging in",
        "host's processes",
    ]
    return columns(head, lines)


def _wall(samples: Sequence[Sample]) -> float | None:
    return median(s.wall for s in samples) if samples else None


def _hosts_cpu(samples: Sequence[Sample]) -> float:
    return median(s.hosts_cpu for s in samples)


def rows(title: str, lines: Sequence[tuple[str, str, str]]) -> str:
    """The measured quantity, its value and its target."""
    return columns([title, "measured", "target"], [list(line) for line in lines])


def kernel() -> str:
    """The kernel's version, without the distribution's suffix."""
    return f"{platform.system()} {platform.release().partition('-')[0]}"


def columns(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        first, *rest = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
        return f"| {' | '.join(padded)} |"

    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(head), line(rule), *map(line, lines)])
