"""`--check` of `doctor explain` and `doctor logs`: runs the checks of a conclusion on the hosts, and reports
what they prove.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from doctor.agents.onhost.kernel_kills import JobMarks, kills, named_numbers
from doctor.exam.examination import run_and_judge
from doctor.exam.request import ExamFlags, Request
from doctor.facts.memory import FULL, MB, Space
from doctor.facts.network import ADDRESSES, NAMES
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.judge.engine import SEVERAL
from doctor.judge.reading import Reading
from doctor.judge.verdict import Report
from doctor.logs.explanation import ALONE, Explanation, Proof, ProofState
from doctor.logs.judge.parties import bare
from doctor.logs.model import LogCause, LogLine, Logs
from doctor.model import Confidence, Finding, Host, Status
from doctor.report.page.names import title
from doctor.text.hostprogram import sections
from doctor.text.nodeset import fold, is_ip
from doctor.transport.ssh.settings import SshSettings

MASTER = "master-not-here"
"""The check of the master's address."""
_KEEPS_THE_STORE = "torch-clients-not-joined"
"""The symptom that only rank 0 writes."""
FAILS = (Status.FAIL, Status.WARN, Status.WAIVED)
"""A waived fault may have ended the job as well."""
RISKS = {"ports-not-reserved"}
"""Checks that show only how it may have come about."""
KERNEL_LOG, MEMORY = "kernel-log", "memory-low"
DISK = "disk-full"
BLIND = sections(__file__, "blind.txt")["checks"]
"""What each check does not cover."""


@dataclass(frozen=True, slots=True)
class ProofExam:
    report: Report
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Host names by address, including hosts that did not answer."""
    full: Mapping[str, tuple[Space, ...]] = field(default_factory=dict)
    """Full file systems by host, if a full disk may be the cause."""


def examined(request: Request, explained: Explanation) -> ProofExam | None:
    """Run the checks of the causes; None if none of them runs on hosts (`doctor smoke` runs the others)."""
    only = tuple(id for id in explained.conclusion.checks if not _is_training(id))
    if not only:
        return None
    told = launch_told(explained.logs) if MASTER in only else None
    if told is not None:  # the logs give the master, but too little about the ranks
        only = tuple(id for id in only if not id.startswith("launch-"))
    asked = replace(
        request, command="check", what=ExamFlags(only=only, checks=request.what.checks), save=None
    )
    more = (FULL,) if DISK in only else ()
    reading, report = run_and_judge(asked, more, told)
    hosts = hosts_of_addresses(reading, request.way.ssh_config)
    return ProofExam(report, hosts, reading.facts.all(FULL) if more else {})


def launch_told(logs: Logs) -> Launch | None:
    """The master that each host was given and the host of the job's store; None if no line names a master."""
    hosts = {file.name: file.who.host for file in logs.files}

    def host(line: LogLine) -> str | None:
        return line.who.host or hosts.get(line.file)

    masters = tuple(dict.fromkeys((host(line), name, port) for line, name, port in _masters(logs)))
    stores = {host(each.first) for each in logs.sightings if each.symptom.id == _KEEPS_THE_STORE} - {None}
    told = [
        ProcessEnv("its log", at, {"MASTER_ADDR": name, "MASTER_PORT": port}, whole=False)
        for at, name, port in masters
    ]
    if len(stores) == 1:
        told += [ProcessEnv("its log", next(iter(stores)), {"RANK": "0"}, whole=False)]
    return Launch("the job of the logs", tuple(told), complete=False) if masters else None


def _masters(logs: Logs) -> Iterator[tuple[LogLine, str, str]]:
    for each in logs.sightings:
        name, port = each.taken.get("host", ""), each.taken.get("port", "")
        if each.symptom.family == "torch" and MASTER in each.symptom.checks and name and port:
            yield each.first, bare(name)[0] or name, port


def _is_training(check: str) -> bool:
    return check.startswith("smoke-")


def hosts_of_addresses(reading: Reading, ssh_config: str | None) -> dict[str, str]:
    """Host names by address: a host's own addresses, or those that others resolve if it did not answer."""
    found: dict[str, str] = {}
    views = reading.facts.all(NAMES).values()
    held = reading.facts.all(ADDRESSES)
    for host in reading.plan.hosts:
        said = [host.given, host.data.value if host.data else ""]
        said += [address for several in held.get(host.name, {}).values() for address in several]
        if host.name not in held:
            said += [address for view in views for address in view.addresses.get(host.name, ())]
        for address in said:
            if (ip := bare(address)[0]) and not ip.startswith("127."):
                found.setdefault(ip, host.name)
    if reading.recording.transport in ("ssh", "openssh"):
        for each in reading.recording.hosts:
            if each.name in reading.recording.unreached and each.name not in found.values():
                found.update(dict.fromkeys(_dialled(each, ssh_config), each.name))
    return found


def _dialled(host: Host, ssh_config: str | None) -> list[str]:
    """The addresses that the ssh connection tried."""
    from doctor.transport.ssh.config import SshConfig

    config = SshConfig(SshSettings(config_file=ssh_config))
    try:
        place = config.of(host).address
        return [place] if is_ip(place) else [str(each[4][0]) for each in socket.getaddrinfo(place, None)]
    except (OSError, UnicodeError):
        return []
    finally:
        config.close()


def proofs(explained: Explanation, seen: ProofExam | None) -> tuple[Proof, ...]:
    """For each cause, whether one of its checks fails now on a host that the logs name, or all pass there."""
    charges = explained.conclusion.charges
    return tuple(Proof(place, *_shown(explained, charges[place], seen)) for place in explained.roots)


def _shown(explained: Explanation, charge: LogCause, seen: ProofExam | None) -> tuple[ProofState, str]:
    asked = [id for id in charge.checks if not _is_training(id)]
    if not charge.checks:
        return ProofState.OPEN, "no check of hosts can show it"
    if seen is None or not asked:
        return ProofState.OPEN, "only a training run shows it: doctor smoke" if not asked else ""
    report = seen.report
    said = [seen.hosts.get(bare(each.host or each.address or "")[0]) or each.host for each in charge.who]
    named = list(filter(None, said))
    there = [host.name for host in report.hosts if any(same(host.name, name) for name in named)]
    if named and not there:
        return ProofState.OPEN, f"{fold(named)} is not among the hosts that were examined"
    asked = [id for id in asked if not _needs_several(report, id)]
    if not asked:
        return ProofState.OPEN, ALONE
    failing = [f for f in report.findings if f.check in asked and f.status in FAILS]
    here = [f for f in failing if _is_here(f, there) and _is_about(f, asked, charge)]
    if here and all(f.check in RISKS for f in here):
        return ProofState.OPEN, f"{here[0].check} shows how it may come about: {title(here[0])}"
    here = [f for f in here if f.check not in RISKS]
    if here:
        first = min(here, key=lambda f: (f.status is not Status.FAIL, asked.index(f.check)))
        where = fold([host for host in first.hosts if not there or host in there]) or "the hosts"
        fails = f"fails: {title(first)} ({first.actual})" if first.check == MASTER else ""
        fails = fails or f"fails on {where}: {title(first)}{_unsure(named)}"
        return ProofState.PROVED, f"{first.check} {fails}"
    full = [(host, space) for host in there or seen.full for space in seen.full.get(host, ())]
    for host, space in full[:1] if DISK in asked else ():
        room = f"{space.free // MB} MB free of {space.total // MB} MB"
        return ProofState.PROVED, f"{space.path} is full on {host}: {room}{_unsure(named)}"
    others = (f for f in failing if not _is_here(f, there))
    elsewhere = next((f"; {each.check} fails on {each.nodeset or 'all'}" for each in others), "")
    passed = _decided(report, asked, there, Status.PASS)
    left = [id for id in asked if id not in passed]
    foreign = [f for f in failing if _is_here(f, there) and f.check in asked and _is_memory_kill(f)]
    if foreign:
        says = f"{KERNEL_LOG} tells of a kill for lack of memory, and nothing shows that it was the job's"
        return ProofState.OPEN, f"{says}: {title(foreign[0])}{elsewhere}"
    if not passed:
        return ProofState.OPEN, f"{_names(left)} could not be decided{elsewhere}"
    passes = f"{_names(passed)} {'passes' if len(passed) == 1 else 'pass'} on {fold(there) or 'all hosts'}"
    undecided = _decided(report, left, there, Status.UNKNOWN) or [id for id in left if id == asked[0]]
    other = [f for f in failing if f.check in undecided and _is_here(f, there)]
    if other:
        says = f"{other[0].check} reports something else: {title(other[0])}; {passes}{elsewhere}"
        return ProofState.OPEN, says
    if undecided:
        start = BLIND["plan-invalid"]
        why = f": no host shows {start}" if _unseen(undecided[0]) == start else ""
        says = f"{_names(undecided)} could not be decided{why}; {passes}{elsewhere}"
        return ProofState.OPEN, says + ("" if named else _without_log(explained, report))
    if unseen := charge.unseen or _unseen(asked[0]):
        says = f"{passes}, but {'does' if len(passed) == 1 else 'do'} not look at {unseen}{elsewhere}"
        return ProofState.OPEN, says
    if _is_training(charge.checks[0]):
        return ProofState.OPEN, f"{passes}; a training run shows the rest: doctor smoke{elsewhere}"
    if charge.confidence is Confidence.SUSPECT:
        return ProofState.OPEN, f"{passes}, but the logs do not say for certain who was at fault"
    return ProofState.GONE, f"{passes}{elsewhere}"


def _needs_several(report: Report, check: str) -> bool:
    """Whether a check compares hosts, and only one was examined."""
    found = [each for each in report.results if each.check == check]
    return bool(found) and all(each.status is Status.SKIP and each.reason == SEVERAL for each in found)


def _is_here(finding: Finding, there: Sequence[str]) -> bool:
    """Whether a finding is about these hosts. A wrong master is wrong on every host."""
    return not there or not finding.hosts or finding.check == MASTER or bool({*finding.hosts} & {*there})


def _is_about(finding: Finding, asked: Sequence[str], charge: LogCause) -> bool:
    """Whether a finding fits the cause: a kill for lack of memory does only if it is known to be the job's,
    and if memory may have run out, nothing else in the kernel's log does.
    """
    if _is_memory_kill(finding):
        return _is_of_job(finding, charge)
    return finding.check != KERNEL_LOG or MEMORY not in asked


def _is_memory_kill(finding: Finding) -> bool:
    return finding.check == KERNEL_LOG and "memory" in finding.summary


def _is_of_job(finding: Finding, charge: LogCause) -> bool:
    """Launchers name the PIDs of lost ranks, and Slurm its job."""
    said = {number for line in charge.lines for number in named_numbers(line.text)}
    pids = {*map(int, said), *(each.pid for each in charge.who if each.pid is not None)}
    return any(map(JobMarks(pids, [*said]).have, kills((None, each.text) for each in finding.evidence)))


def _without_log(explained: Explanation, report: Report) -> str:
    """Names the hosts without logs if others have some: the job may not have run on them."""
    known = {file.who.host for file in explained.logs.files} - {None}
    others = [host.name for host in report.hosts if not any(same(host.name, name or "") for name in known)]
    return f"; there is no log of {fold(others)}" if known and others else ""


def _unseen(check: str) -> str:
    return next((unseen for glob, unseen in BLIND.items() if fnmatchcase(check, glob)), "")


def same(one: str, other: str) -> bool:
    """Whether two names may be the same host, such as `node3` and `node3.example.org`."""
    a, b = one.lower().split("."), other.lower().split(".")
    if any(part.isdigit() for part in (a[0], b[0])):  # an address
        return a == b
    return a[0] == b[0] and (len(a) == 1 or len(b) == 1 or a == b)


def _decided(report: Report, checks: Sequence[str], hosts: Sequence[str], status: Status) -> list[str]:
    """The checks with this result on at least one of the hosts (on any host, if none are given)."""
    return [
        id
        for id in checks
        if any(
            result.check == id and result.status is status and (not hosts or {*result.hosts} & {*hosts})
            for result in report.results
        )
    ]


def _unsure(named: Sequence[str]) -> str:
    return "" if named else " (no log names the host)"


def _names(checks: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(checks[:-1]), checks[-1]))) if checks else "nothing"
