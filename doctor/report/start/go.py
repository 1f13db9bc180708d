"""The hosts that start the job: as many healthy ones as needed, the head first, and a free port on it."""

import ipaddress
import shlex
from collections.abc import Mapping, Sequence, Set

from doctor.job.launch.forms import Go
from doctor.job.plan import JobPlan
from doctor.judge.verdict import Report
from doctor.model import Backend
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold, quoted, unfold
from doctor.text.printable import clean_line
from doctor.text.speech import sign, t

MOST_PORTS = 500
"""The most other ports that are tried if the planned one is taken."""
LAST_PORT = 65535
Bound = Mapping[str, Set[int]]
"""Host -> the ports on which a process listens."""


def chosen(report: Report) -> tuple[str, ...]:
    """As many healthy hosts as needed, in rank order, with the planned head if healthy; none on a no-go."""
    if report.exit_code != 0 or report.run.stopped_by is not None:
        return ()
    healthy = report.healthy_hosts
    needed = report.rules.need_hosts or len(healthy)
    first, head = healthy[:needed], report.plan.head.value
    if head not in healthy:
        return first
    return (head, *[name for name in first if name != head][: needed - 1])


def decide_go(report: Report, bound: Bound, order: Sequence[str] = ()) -> Go | None:
    """None on a no-go. `order` is that of a launcher that numbers the hosts itself: its first is the head."""
    names = chosen(report)
    if not names:
        return None
    plan = report.plan
    if order:
        names = tuple(sorted(names, key=[*order, *names].index))
    head = plan.head.value if plan.head.value in names and not order else names[0]
    hosts = (head, *(name for name in names if name != head))
    port = _free_port(plan, bound.get(head, frozenset()))
    notes = []
    if head != plan.head.value:
        notes.append(f"the head is {head} in place of {plan.head.value}")
    if port != plan.master_port.value:
        notes.append(f"port {plan.master_port.value} is taken on {head}: {port} is in its place")
    return Go(
        hosts=hosts,
        spares=tuple(name for name in report.healthy_hosts if name not in names),
        left_out=report.other_hosts,
        ranks={name: max(plan.ranks_on(name), 1) for name in hosts},
        address=_address(plan, head),
        port=port,
        notes=(*notes, *table_note(report, hosts)),
    )


def table_note(report: Report, hosts: Sequence[str] = ()) -> tuple[str, ...]:
    """A note that the rank table is wrong if one of its hosts does not take part. `hosts`: in rank order."""
    names, plan = hosts or chosen(report), report.plan
    if not names or not (plan.servers or plan.table_paths):
        return ()
    out = [host.name for host in plan.hosts if host.name not in names and (host.server or not plan.servers)]
    if not out:
        return ()
    ordered = quoted(names) if unfold(fold(names)) == list(names) else shlex.join(names)
    way = report.run.way
    command = way.typed("ranktable make", names) if way else f"doctor ranktable make {ordered}"
    return (
        f"the rank table covers all hosts, but {fold(out)} will not take part: make a new one with {command}",
    )


def _address(plan: JobPlan, head: str) -> str:
    """The address to which ranks connect: the data address, else the name."""
    try:
        return str(ipaddress.ip_address(plan.data_address(head) or head))
    except ValueError:
        return head


def _free_port(plan: JobPlan, bound: Set[int]) -> int:
    """The planned port if it is free, else the next free one that HCCL does not use."""
    wish = plan.master_port.value
    hccl = plan.hccl_ports if plan.backend.value is Backend.HCCL else range(0)
    after = range(wish, min(wish + MOST_PORTS, LAST_PORT + 1))
    before = range(wish - 1, max(wish - MOST_PORTS, 1023), -1)
    free = (port for port in (*after, *before) if port not in bound and (port == wish or port not in hccl))
    return next(free, wish)


def go_line(report: Report, hosts: Sequence[str], *, fills_nproc: bool = False) -> str:
    """A go in one line: the hosts, the seconds, and what must be known even if nothing else is read."""
    warnings = report.warned_checks
    spares = [name for name in report.healthy_hosts if name not in hosts]
    seconds = report.run.seconds
    said = [f"{fold(hosts)}, {seconds:.{0 if seconds >= 10 else 1}f} s"]
    assumed = 0 if not fills_nproc or report.plan.most_on_a_host else report.plan.fullest
    said += [f"{assumed} ranks a host, the default (--ranks-per-host)"] if assumed else []
    said += [f"{len(warnings)} warning{'s' * (len(warnings) > 1)}: {', '.join(warnings)}"] if warnings else []
    said += [f"waived: {waived(report)}"] if report.waived else []
    said += ["the NPU network was not examined"] if report.npu_network_left_out else []
    said += [f"spare: {fold(spares)}"] if spares else []
    said += [f"left out: {_left_out(report)}"] if report.other_hosts else []
    said += ["replayed"] if report.run.replayed else []
    return f"doctor: {t('go')}{sign(': ')}{clean_line(sign('; ').join(map(t, said)))}\n"


def _left_out(report: Report) -> str:
    """ "node2 (shm-small), node[4-5] (host-unreachable)": the hosts by the check that left them out."""
    blamed = {host: fault.check for fault in reversed(report.faults) for host in fault.hosts}
    why = grouped((blamed.get(name, "not examined"), name) for name in report.other_hosts)
    return ", ".join(f"{fold(names)} ({check})" for check, names in why.items())


def waived(report: Report) -> str:
    """ "node[3-4] (shm-small)": what is accepted, and where."""
    hosts = grouped((finding.check, host) for finding in report.waived for host in finding.hosts)
    return ", ".join(f"{fold(names)} ({check})" for check, names in hosts.items())
