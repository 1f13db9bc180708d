"""Lines of HCCL's plog and of MindSpore's scheduler.log that name a faulty place before a time limit is over.

[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[127.10.0.1/1], Arrival Time:[Thu Oct 23
17:25:58 2025], Discoverer:[127.10.0.1/2], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. …
The node: 3 is timed out. It may exit with exception, please check this node's log.
"""

import re

from doctor.live.libraries.groups import named, unique
from doctor.live.libraries.opinions import Opinion, Source, Subject, SubjectState, Trust, blames
from doctor.live.libraries.rank_finder import HostText, RankFinder
from doctor.text.printable import clean_line

_PLACE = re.compile(
    r"Cluster Exception Location\[IP/ID\]:\[([0-9A-Fa-f.:]{2,64})/(\d{1,5})\]"
    r"[^\n]{0,400}?ExceptionType:\[([A-Za-z ]{1,40})\]"
)
_TIMED_OUT = re.compile(r"The node: ([\w.-]{1,64}) is timed out")
_STATES = {
    "heartbeat lost occurred": SubjectState.UNRESPONSIVE,
    "stuck occurred": SubjectState.BEHIND,
    "error cqe occurred": SubjectState.FAULT,
}


def heartbeat(who: RankFinder) -> Opinion | None:
    """HCCL names each place by address and device. It reports a place as stuck even if it only waits."""
    said = [each for each in who.said(Source.HEARTBEAT) if not each.about.problem]
    found: list[tuple[Subject, str]] = []
    for each in said:
        for match in _PLACE.finditer(each.about.text):
            state = _STATES.get(match[3].lower())
            if state is not None:
                host = who.host_of(match[1], each.host)
                subject = Subject(host=host[:256], device=match[2], state=state)
                found.append((subject, clean_line(match[0])))
    if not found:
        return None
    subjects = unique(subject for subject, _ in found)
    lost = all(each.state is SubjectState.UNRESPONSIVE for each in subjects)
    alone = len(subjects) == 1
    what = {
        SubjectState.UNRESPONSIVE: "does not answer",
        SubjectState.BEHIND: "is stuck",
        SubjectState.FAULT: "has errors",
    }
    text = (
        f"{subjects[0]} {what[subjects[0].state]}"
        if alone
        else f"{named(subjects)} are named as lost or stuck"
    )
    trust, at = Trust.STRONG if lost and alone else Trust.VOTE, max(each.about.at for each in said)
    lines = _first_lines([line for _, line in found])
    return blames(Source.HEARTBEAT, trust, f"HCCL's heartbeat: {text}.", subjects, lines, at)


def scheduler(who: RankFinder) -> Opinion | None:
    """The nodes that the scheduler no longer hears. If msrun started them, a node's number is its rank."""
    said = [each for each in who.said(Source.SCHEDULER) if not each.about.problem]
    lines = [(each, match) for each in said for match in _TIMED_OUT.finditer(each.about.text)]
    if not lines:
        return None
    subjects = unique(_node(who, each, match[1]) for each, match in lines)
    what = "has" if len(subjects) == 1 else "have"
    trust = Trust.STRONG if all(each.rank is not None for each in subjects) else Trust.VOTE
    words = f"MindSpore's scheduler: {named(subjects)} {what} sent no heartbeat in time."
    shown, at = _first_lines([clean_line(match[0]) for _, match in lines]), max(e.about.at for e in said)
    return blames(Source.SCHEDULER, trust, words, subjects, shown, at)


def _node(who: RankFinder, said: HostText, name: str) -> Subject:
    if name.isdecimal() and int(name) < who.world:
        return who.rank(int(name), SubjectState.UNRESPONSIVE)
    return Subject(host=said.host, device=f"node {name}", state=SubjectState.UNRESPONSIVE)


def _first_lines(lines: list[str]) -> tuple[str, ...]:
    return tuple(line[:1000] for line in dict.fromkeys(lines))[:8]
