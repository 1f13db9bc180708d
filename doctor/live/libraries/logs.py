"""Lines of HCCL's plog and of MindSpore's scheduler.log that name a faulty place before a time limit is over.

[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[127.10.0.1/1], Arrival Time:[Thu Oct 23
17:25:58 2025], Discoverer:[127.10.0.1/2], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. …
The node: 3 is timed out. It may exit with exception, please check this node's log.
"""

import re
from collections.abc import Iterable

from doctor.live.libraries.groups import named, unique
from doctor.live.libraries.opinions import Opinion, Source, Subject, Trust, blames
from doctor.live.libraries.rank_finder import HostText, RankFinder
from doctor.text.printable import clean_line

_PLACE = re.compile(
    r"Cluster Exception Location\[IP/ID\]:\[([0-9A-Fa-f.:]{2,64})/(\d{1,5})\]"
    r"[^\n]{0,400}?ExceptionType:\[([A-Za-z ]{1,40})\]"
)
_TIMED_OUT = re.compile(r"The node: ([\w.-]{1,64}) is timed out")
_LOST = "does not answer"
_SAYS = {"heartbeat lost occurred": _LOST, "stuck occurred": "is stuck", "error cqe occurred": "has errors"}


def heartbeat(who: RankFinder) -> Opinion | None:
    """HCCL names each place by address and device. It reports a place as stuck even if it only waits."""
    found = [
        (Subject(host=who.host_of(match[1], each.host)[:256], device=match[2]), says, match[0])
        for each in who.said(Source.HEARTBEAT)
        for match in _PLACE.finditer(each.about.text)
        if (says := _SAYS.get(match[3].lower()))
    ]
    if not found:
        return None
    subjects, says = unique(subject for subject, _, _ in found), found[-1][1]
    alone = len(subjects) == 1
    text = f"{subjects[0]} {says}" if alone else f"{named(subjects)} are named as lost or stuck"
    trust = Trust.STRONG if alone and says == _LOST else Trust.VOTE
    lines = _first_lines(line for _, _, line in found)
    return blames(Source.HEARTBEAT, trust, f"HCCL's heartbeat: {text}.", subjects, lines)


def scheduler(who: RankFinder) -> Opinion | None:
    """The nodes that the scheduler no longer hears. If msrun started them, a node's number is its rank."""
    lines = [
        (each, match) for each in who.said(Source.SCHEDULER) for match in _TIMED_OUT.finditer(each.about.text)
    ]
    if not lines:
        return None
    subjects = unique(_node(who, each, match[1]) for each, match in lines)
    what = "has" if len(subjects) == 1 else "have"
    trust = Trust.STRONG if all(each.rank is not None for each in subjects) else Trust.VOTE
    words = f"MindSpore's scheduler: {named(subjects)} {what} sent no heartbeat in time."
    return blames(Source.SCHEDULER, trust, words, subjects, _first_lines(match[0] for _, match in lines))


def _node(who: RankFinder, said: HostText, name: str) -> Subject:
    if name.isdecimal() and int(name) < who.world:
        return who.rank(int(name))
    return Subject(host=said.host, device=f"node {name}")


def _first_lines(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(line[:1000] for line in dict.fromkeys(map(clean_line, lines)))[:8]
