"""Reports of small clusters, one for each kind of outcome, and how they look."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console

from doctor.model import Missing, Reach, Unreached
from doctor.report.text import print_report
from doctor.verdict import Report
from tests.recordings import HEALTHY, heard, mesh, recording, report

NAMES = [f"node{n}" for n in range(1, 5)]
SMALL_SHM = HEALTHY["spaces"].replace("tmpfs 12342040 0 12342040", "shm 65536 0 65536")
REFUSED = ("connection refused on port 22", "Start sshd.", ("ssh node4",), "Connection refused")


def lost(*names: str) -> dict[str, Unreached]:
    return {name: Unreached(name, Reach.REFUSED, *REFUSED) for name in names}


def answering(*names: str, **more: Any) -> Any:
    """A recording of which only some hosts answered."""
    whole = recording(NAMES, **more)
    return replace(whole, heard={name: whole.heard[name] for name in names})


def reports() -> dict[str, Report]:
    small = {"node2": heard(2, NAMES, spaces=SMALL_SHM), "node3": heard(3, NAMES, spaces=SMALL_SHM)}
    sick = {
        "node2": heard(2, NAMES, spaces=SMALL_SHM, view={"/run/.containerenv": "x"}),
        "node3": heard(
            3,
            NAMES,
            names="? node3\n127.0.1.1 STREAM node3\n? node1\n10.0.0.1 STREAM",
            swap={"/proc/swaps": "Filename Type Size Used Priority\n/dev/vdb partition 2048000 1024000 -2"},
        ),
    }
    closed = mesh(NAMES, *((name, "node3") for name in NAMES if name != "node3"))
    no_root = {
        n: heard(i, NAMES, kernel_log=Missing("kernel-log", "needs root")) for i, n in enumerate(NAMES, 1)
    }
    no_disks = {"node2": heard(2, NAMES, spaces=Missing("spaces", "its command did not end within 5 s"))}
    return {
        "healthy": report(recording(NAMES)),
        "one-host": report(recording(NAMES[:1])),
        "no-root": report(recording(NAMES, heard=no_root)),
        "same-fault-twice": report(recording(NAMES, heard=small)),
        "sick-hosts": report(recording(NAMES, heard=sick, mesh=closed)),
        "essential-unknown": report(recording(NAMES, heard=no_disks)),
        "unreachable": report(answering("node1", "node2", "node3", unreached=lost("node4"))),
        "all-unreachable": report(answering(unreached=lost(*NAMES), mesh=None)),
        "need-three-hosts": report(recording(NAMES, heard={"node2": small["node2"]}), need_hosts=3),
        "need-four-hosts": report(recording(NAMES, heard={"node2": small["node2"]}), need_hosts=4),
        "interrupted": report(answering("node1", unfinished=tuple(NAMES[1:]), mesh=None), stopped_by=2),
    }


def text(of: Report, width: int, **options: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    print_report(of, console, **options)
    return out.getvalue()
