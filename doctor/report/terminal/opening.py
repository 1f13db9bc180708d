"""The first lines: hosts, ranks and port with the source of each, the launch, and a job that is running."""

from __future__ import annotations

from typing import TypeVar

from rich.console import Console
from rich.text import Text

from doctor.job.plan import JobPlan
from doctor.judge.verdict import Report, RunInfo
from doctor.model import SourcedValue
from doctor.report.details import seen_inside
from doctor.report.rerun import again
from doctor.report.terminal.page import put_wrapped
from doctor.text.nodeset import cut, fold
from doctor.text.printable import clean_line
from doctor.text.speech import t

T = TypeVar("T")
LONGEST = 400
"""The most characters of the names of all hosts."""


def print_opening(report: Report, console: Console) -> None:
    hosts = clean_line(t(_whom(report.plan, report.run)))
    if report.plan.hosts:
        said = " · ".join(map(t, _each(report) if report.plan.of_node else _job(report.plan)))
        put_wrapped(Text.assemble((hosts, "bold"), (clean_line(said), "dim")), console, wide=True)
    if report.plan.launch:
        put_wrapped(Text(clean_line(t(f"launch: {report.plan.launch}")), style="dim"), console, wide=True)
    if report.seen.running:
        look = f"{again(report, 'hang', hosts=report.seen.running)} says whether it hangs"
        said = f"a job runs on {fold(report.seen.running)}: {look}"
        put_wrapped(Text(clean_line(t(said)), style="dim"), console, wide=True)
    if inside := seen_inside(report):
        put_wrapped(Text(clean_line(t(inside)), style="dim"), console, wide=True)
    if report.run.way and report.run.way.defaults:
        put_wrapped(
            Text(clean_line(t(f"defaults from {report.run.way.defaults}")), "dim"), console, wide=True
        )


def _each(report: Report) -> tuple[str, ...]:
    """Hosts that are examined for no job in particular, and the version of the list of checks."""
    return ("", count(len(report.plan.hosts), "host"), f"{report.run.exam}/{report.run.exam_version}")


def _job(plan: JobPlan) -> tuple[str, ...]:
    per_host = {host.ranks for host in plan.hosts if host.ranks}
    ranks = count(plan.ranks, "rank")
    if len(per_host) == 1:
        one = next(iter(per_host))
        ranks += f" ({one.value} a host, {one.source})"
    hosts = count(len(plan.hosts), "host")
    head, port = plan.head, plan.master_port
    sources = head.source if head.source == port.source else f"{head.source}, {port.source} port"
    place = f"head {head.value}:{port.value} ({sources})"
    return ("", hosts, ranks, f"backend {_sourced(plan.carrier)}", place)


def _whom(plan: JobPlan, run: RunInfo) -> str:
    """The hosts by name, since a shell, a variable or a file may have named others than the user meant."""
    names = cut(fold(plan.names), LONGEST)
    said = (f"({run.hosts_from})",) if run.hosts_from else ()
    return " ".join(("this machine only,", names, *said) if run.transport == "local" else (names, *said))


def _sourced(value: SourcedValue[T]) -> str:
    return f"{value.value} ({value.source})"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
