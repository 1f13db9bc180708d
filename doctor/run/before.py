"""Before the command starts: its hosts, the pre-flight over them, and who takes part."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO

from doctor.errors import UsageError
from doctor.exam.request import HostFlags, Request
from doctor.job.launch.forms import Go
from doctor.run.apart import apart
from doctor.run.launcher import agent_of, named_hosts, spans_hosts
from doctor.run.placeholders import named_in

PREFLIGHT = "preflight"
PORT = 29500
"""The port of the rendezvous, if no pre-flight found a free one."""


@dataclass(frozen=True, slots=True)
class BeforeStart:
    """What was found out. `going` are the hosts that take part; None if they are not known."""

    code: int
    going: Go | None
    hosts: tuple[str, ...] = ()
    """All hosts that were named."""
    report: bytes = b""
    """The pre-flight's report in JSON; empty if there was none."""
    page: str = ""
    """The report for a person, if hosts were left out and it was not shown."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """The hosts that must not take part. Healthy ones that are not needed are not among them."""
        return self.going.left_out if self.going else ()


def with_hosts(request: Request, words: Sequence[str]) -> Request:
    """The request with the hosts of the command. Raises UsageError if it starts ranks on unnamed machines."""
    from doctor.targets.allocation import NAME_THEM, allocation

    who = request.who
    if who.named or who.inventory:
        return request
    agent = agent_of(words)
    listed, file = named_hosts(agent)
    if listed or file:
        return replace(request, who=replace(who, hosts=listed, hostfile=file))
    if allocation(os.environ) is not None:
        return request
    if spans_hosts(agent) and agent is not None:
        raise UsageError(
            f"The hosts of the command are unknown: {agent.launcher.name} starts it on several.", NAME_THEM
        )
    return replace(request, who=HostFlags(local=True, exclude=who.exclude))


def examined(request: Request, words: Sequence[str]) -> BeforeStart:
    """The pre-flight over the hosts. It shows its findings on stderr, unless the command may start."""
    return apart(partial(_examine, replace(request, command=PREFLIGHT), tuple(words)))


def unexamined(request: Request, words: Sequence[str]) -> BeforeStart:
    """The hosts without a pre-flight, for placeholders; called only if there are some."""
    return apart(partial(_list, request, tuple(words)))


def _examine(request: Request, words: tuple[str, ...]) -> BeforeStart:
    from doctor.exam.examination import run_and_judge
    from doctor.report.files.envelope import as_json
    from doctor.report.files.json import check_report
    from doctor.report.out.outputs import going, in_shadow, show
    from doctor.report.start.go import go_line
    from doctor.text.terminal import tell

    page = StringIO()
    reading, report = run_and_judge(request)
    go = going(report, reading, _form(words))
    outputs = request.outputs
    if report.exit_code or outputs.verbose:
        show(report, outputs, sys.stderr)
    elif not outputs.quiet:
        starts = go.hosts if go else report.healthy_hosts
        tell(go_line(report, starts, fills_nproc="nproc" in named_in(words)))
        if report.other_hosts:
            show(report, outputs, page)
    code, data = report.exit_code, as_json(check_report(report))
    if outputs.shadow:
        code, go = in_shadow(report, outputs.shadow), None
    return BeforeStart(code, go, tuple(host.name for host in report.hosts), data, page.getvalue())


def _form(words: Sequence[str]) -> str:
    """The form of launch whose order of hosts counts: that of the command's launcher."""
    from doctor.report.start.launch_line import FORMS

    agent = agent_of(words)
    return agent.launcher.name if agent and agent.launcher.name in FORMS else "hostfile"


def _list(request: Request, words: tuple[str, ...]) -> BeforeStart:
    from doctor.exam.examination import targets_of
    from doctor.report.start.launch_line import FORMS

    targets = targets_of(replace(request, command=PREFLIGHT))
    wish = targets.wishes.ranks_per_host
    each = request.job.ranks_per_host or (wish.value if wish else None)
    ranks = {host.name: each or host.ranks or 0 for host in targets.hosts}
    if "nproc" in named_in(words) and not all(ranks.values()):
        raise UsageError("{nproc} cannot be filled in without a pre-flight.", "Give --ranks-per-host N.")
    names = tuple(sorted(ranks, key=[*FORMS[_form(words)].order(tuple(ranks), os.environ), *ranks].index))
    address = next(host.data or host.address for host in targets.hosts if host.name == names[0])
    port = request.job.master_port or PORT
    going = Go(names, (), (), {name: max(ranks[name], 1) for name in names}, address, port)
    return BeforeStart(0, going, names)
