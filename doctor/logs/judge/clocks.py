"""Compares the clocks of the files, by a recording or by steps that several of them logged.

Clocks without such a connection are not compared: no rank is guilty because of its host's time.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import median

from doctor.logs.judge.job_facts import JobFacts
from doctor.logs.model import LogLine, Logs

TOGETHER = 2.0
"""Events that are fewer seconds apart count as simultaneous."""
_STEP = re.compile(r"(?i)\b(?:global[_ ])?(?:step|iteration|iter)s?\b[\"']?\s*[:=\[(/]?\s*(\d{1,12})")
Clock = tuple[str, bool]
"""A clock's host (or its file if the host is unknown), and whether its times state their zone."""


@dataclass(frozen=True, slots=True)
class Clocks:
    ahead: Mapping[Clock, float]
    """Seconds that each clock is ahead of the first one, for the clocks that can be compared with it."""
    of: Callable[[LogLine], Clock]

    def at(self, line: LogLine) -> float | None:
        """The time by the first clock; None if unknown."""
        ahead = self.ahead.get(self.of(line))
        return None if line.at is None or ahead is None else line.at - ahead

    def apart(self, one: LogLine, other: LogLine) -> float | None:
        """Seconds from one line to the other; None if unknown."""
        if one.at is None or other.at is None:
            return None
        a, b = self.of(one), self.of(other)
        if a == b or (one.file == other.file and one.zoned == other.zoned):
            return other.at - one.at
        if a in self.ahead and b in self.ahead:
            return (other.at - self.ahead[b]) - (one.at - self.ahead[a])
        return None

    def before(self, one: LogLine, other: LogLine) -> bool:
        """Whether one line is certainly earlier than the other."""
        if one.file == other.file:
            return one.number < other.number
        apart = self.apart(one, other)
        return apart is not None and apart > TOGETHER


def clocks_of(
    logs: Logs, known: JobFacts, of: Callable[[LogLine], Clock], first: Sequence[LogLine]
) -> Clocks:
    """All clocks are compared with that of the first line in `first` that has a time."""
    marks: dict[Hashable, dict[Clock, list[float]]] = defaultdict(lambda: defaultdict(list))
    for file in logs.files:
        for line in file.progress:
            if line.at is not None and (step := step_of(line.text)) is not None:
                marks[("step", step)][of(line)].append(line.at)
    for curve in logs.curves:
        if not curve.seconds:
            continue
        where = of(LogLine(curve.file, 0, "", who=curve.who))
        for step, at in zip(curve.steps, curve.seconds, strict=False):
            if at is not None:
                for clock in (where, (where[0], not where[1])):
                    marks[("loss", step)][clock].append(at)
    apart: dict[tuple[Clock, Clock], list[float]] = defaultdict(list)
    for seen in marks.values():
        one, *others = sorted(seen)[:1000]
        for other in others:
            apart[one, other].append(min(seen[other]) - min(seen[one]))
    edges: dict[Clock, dict[Clock, float]] = defaultdict(dict)
    for (one, other), seconds in apart.items():
        edges[one][other], edges[other][one] = median(seconds), -median(seconds)
    order = list(dict.fromkeys(of(line) for line in first if line.at is not None))
    for one, other in permutations([clock for clock in order if clock[0] in known.offsets], 2):
        if one[1] == other[1]:
            edges[one][other] = known.offsets[other[0]] - known.offsets[one[0]]
    return Clocks(_spread(order[0], edges) if order else {}, of)


def _spread(start: Clock, edges: Mapping[Clock, Mapping[Clock, float]]) -> dict[Clock, float]:
    ahead = {start: 0.0}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for to, by in edges.get(here, {}).items():
            if to not in ahead:
                ahead[to] = ahead[here] + by
                waiting.append(to)
    return ahead


def step_of(text: str) -> int | None:
    found = _STEP.search(text)
    return int(found[1]) if found else None
