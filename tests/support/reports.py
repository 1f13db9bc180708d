"""Reports of small clusters, one for each kind of outcome, and their text.

They use a fixed dozen of the checks, so that a new check or fact changes none of them.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
from rich.console import Console

from doctor.judge.examine import build_report
from doctor.judge.playbook import load_exam, load_remedies
from doctor.judge.reading import read_recording
from doctor.judge.registry import find_checks
from doctor.judge.verdict import Report
from doctor.mesh.result import OmittedHost
from doctor.model import MissingFact, UnreachedHost, UnreachedKind
from doctor.recording import Recording
from doctor.report.page.card import Medium
from doctor.report.page.examination import page_of
from doctor.report.terminal.cards import print_page
from doctor.smoke.onhost.schedule import schedule
from doctor.smoke.result import Injection, SmokePlan, SmokeResult
from tests.support.cases import from_cases
from tests.support.recordings import HEALTHY, heard, mesh, recording, syllabus
from tests.support.smoke.frozen import at, frozen, stuck
from tests.support.smoke.results import healthy, plan_of, with_end

NAMES = [f"node{n}" for n in range(1, 5)]
SMALL_SHM = HEALTHY["spaces"].replace("tmpfs 12342040 0 12342040", "shm 65536 0 65536")
REFUSED = ("connection refused on port 22", "Start sshd.", ("ssh node4",), "Connection refused")

DOZEN = from_cases(__file__, "DOZEN", tuple[str, ...])
"""Checks about hosts and about pairs, essential or not, one for another backend, and two for a smoke run."""

SICK = {"node2": "faulty: shm-small", "node4": "busy: device 0 is at work for another job"}


def report(of: Recording, *, stopped_by: int | None = None, **rules: Any) -> Report:
    """A report of the preflight exam with only the dozen."""
    bundled = find_checks().checks
    dozen = [check for check in bundled if check.id in DOZEN]
    exam = load_exam("preflight", bundled)
    made = syllabus(dozen, exam, smoke=of.smoke_wanted, **rules)
    return build_report(read_recording(replace(of, stopped_by=stopped_by)), made, load_remedies())


def lost(*names: str) -> dict[str, UnreachedHost]:
    return {name: UnreachedHost(name, UnreachedKind.REFUSED, *REFUSED) for name in names}


def answering(*names: str, **more: Any) -> Any:
    """A recording in which only some hosts answered."""
    whole = recording(NAMES, **more)
    return replace(whole, heard={name: whole.heard[name] for name in names})


def seated(names: Sequence[str], **shape: Any) -> SmokePlan:
    """A plan of a smoke run on these hosts."""
    plan = plan_of(len(names), **shape)
    known = dict(zip(plan.hosts, names, strict=True))
    return replace(
        plan,
        hosts=tuple(names),
        seats=tuple(replace(seat, host=known[seat.host]) for seat in plan.seats),
        head=names[0],
        addresses={name: f"10.0.0.{NAMES.index(name) + 1}" for name in names},
    )


def with_mindspore(rank: int, step: int) -> SmokeResult:
    """The same with MindSpore, whose collectives on CPUs are fewer."""
    plan = replace(seated(NAMES, each=2, tp=2, backend="mccl"), framework="mindspore")
    entries = schedule(plan.shape(0), plan.seat(rank).place)
    result = frozen(plan, {rank: stuck(at(entries, "train", step=step))})
    versions = {"python": "3.11.2", "mindspore": "2.10.0"}
    ranks = []
    for seen in result.ranks:
        assert seen.started is not None
        ranks.append(replace(seen, started=msgspec.structs.replace(seen.started, versions=versions)))
    return with_end(replace(result, ranks=tuple(ranks)), "still", 2.5, cell=0, limit=1.0, latency=1.04)


def hung(rank: int, step: int) -> SmokeResult:
    """Two ranks on each of the hosts; one of them stops at a step, as the injection asks."""
    plan = replace(seated(NAMES, each=2, tp=2), injected=(Injection("stuck", rank, step),))
    entries = schedule(plan.shape(0), plan.seat(rank).place)
    result = frozen(plan, {rank: stuck(at(entries, "train", step=step))})
    return with_end(result, "still", 2.5, cell=0, limit=1.0, latency=1.04)


@cache
def smoke_runs() -> dict[str, SmokeResult]:
    """Smoke runs by their outcome; in two of them, some of the hosts did not take part."""
    repeated = healthy(seated(["node1", "node2", "node4"], each=2, tp=2))
    fewer = healthy(seated(["node1", "node3"], each=2, tp=2))
    sick = tuple(OmittedHost(name, why) for name, why in SICK.items())
    return {
        "passed": healthy(seated(NAMES, each=2, tp=2)),
        "hung": hung(5, 10),
        "repeated": replace(repeated, left_out=(OmittedHost("node3", "an earlier smoke run named it"),)),
        "fewer": replace(fewer, left_out=sick),
        "interrupted": with_end(hung(5, 10), "interrupted", 2.5),
        "mindspore": with_mindspore(5, 10),
    }


def rehearsed(*runs: SmokeResult, **more: Any) -> Report:
    stopped_by = more.pop("stopped_by", None)
    return report(recording(NAMES, smoke_wanted=True, smoke=runs, **more), stopped_by=stopped_by)


def shm_of(kilobytes: int) -> str:
    return SMALL_SHM.replace("65536", str(kilobytes))


def eight_servers() -> Report:
    """Six faults and a warning, some of them on several hosts."""
    names = [f"node{n}" for n in range(1, 9)]
    full = HEALTHY["spaces"].replace("83035188 1% /\n", "83035 99% /\n")
    swap = {"/proc/swaps": "Filename Type Size Used Priority\n/dev/vdb partition 2048000 1024000 -2"}
    own = "? node7\n127.0.1.1 STREAM node7\n? node1\n10.0.0.1 STREAM"
    oom = "uptime 90000.0\n[89000.0] Out of memory: Killed process 4711 (python)"
    sick = {name: heard(n, names, spaces=shm_of(51200 + 1024 * n)) for n, name in enumerate(names[:4], 1)}
    sick["node2"] = heard(2, names, spaces=shm_of(53248), kernel_log=oom)
    sick["node5"] = heard(5, names, swap=swap)
    sick["node6"] = heard(6, names, spaces=full)
    sick["node7"] = heard(7, names, names=own)
    closed = mesh(names, *((name, "node3") for name in names if name != "node3"))
    lost = {"node8": UnreachedHost("node8", UnreachedKind.REFUSED, *REFUSED)}
    whole = recording(names, heard=sick, mesh=closed, unreached=lost)
    return report(replace(whole, heard={name: whole.heard[name] for name in names[:7]}))


def sixty_four_servers() -> Report:
    """All of them have too little in /dev/shm, each a little more than the one before."""
    names = [f"node{n}" for n in range(1, 65)]
    answers = {name: heard(n, names, spaces=shm_of(51200 + 64 * n)) for n, name in enumerate(names, 1)}
    return report(recording(names, heard=answers))


class Made(Mapping[str, Report]):
    """Reports by name."""

    def __init__(self, makers: Mapping[str, Callable[[], Report]]) -> None:
        self._makers = {name: cache(make) for name, make in makers.items()}

    def __getitem__(self, name: str) -> Report:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@cache
def reports() -> Mapping[str, Report]:
    """Each is made when it is used: collecting a test only needs its name."""
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
        n: heard(i, NAMES, kernel_log=MissingFact("kernel-log", "needs root")) for i, n in enumerate(NAMES, 1)
    }
    no_disks = {"node2": heard(2, NAMES, spaces=MissingFact("spaces", "its command did not end within 5 s"))}
    return Made(
        {
            "eight-servers": eight_servers,
            "sixty-four-servers": sixty_four_servers,
            "healthy": lambda: report(recording(NAMES)),
            "one-host": lambda: report(recording(NAMES[:1])),
            "no-root": lambda: report(recording(NAMES, heard=no_root)),
            "same-fault-twice": lambda: report(recording(NAMES, heard=small)),
            "sick-hosts": lambda: report(recording(NAMES, heard=sick, mesh=closed)),
            "essential-unknown": lambda: report(recording(NAMES, heard=no_disks)),
            "unreachable": lambda: report(answering("node1", "node2", "node3", unreached=lost("node4"))),
            "all-unreachable": lambda: report(answering(unreached=lost(*NAMES), mesh=None)),
            "need-three-hosts": lambda: report(
                recording(NAMES, heard={"node2": small["node2"]}), need_hosts=3
            ),
            "need-four-hosts": lambda: report(
                recording(NAMES, heard={"node2": small["node2"]}), need_hosts=4
            ),
            "smoke-passed": lambda: rehearsed(smoke_runs()["passed"]),
            "smoke-hung": lambda: rehearsed(smoke_runs()["hung"], smoke_runs()["repeated"]),
            "smoke-not-repeated": lambda: rehearsed(smoke_runs()["hung"]),
            "smoke-left-out": lambda: rehearsed(smoke_runs()["fewer"], heard={"node2": small["node2"]}),
            "smoke-not-made": lambda: rehearsed(no_smoke="no host passed the checks"),
            "smoke-interrupted": lambda: rehearsed(smoke_runs()["interrupted"], stopped_by=2),
            "smoke-mindspore": lambda: rehearsed(smoke_runs()["mindspore"]),
            "interrupted": lambda: report(
                answering("node1", unfinished=tuple(NAMES[1:]), mesh=None), stopped_by=2
            ),
        }
    )


def print_report(of: Report, console: Console, *, verbose: bool = False, quiet: bool = False) -> None:
    on = Medium.VERBOSE if verbose else Medium.BRIEF
    print_page(page_of(of, on, quiet=quiet), console, verbose=verbose)


def text(of: Report, width: int, *, colours: bool = False, **options: bool) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        force_terminal=colours,
        color_system="standard" if colours else None,
    )
    print_report(of, console, **options)
    return out.getvalue()
