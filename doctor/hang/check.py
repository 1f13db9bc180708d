"""`doctor hang --check`: run the checks that a judgement suggests, on the same hosts."""

import math
import shlex
import time
from dataclasses import dataclass, replace
from itertools import dropwhile

from doctor.exam.examination import run_and_judge
from doctor.exam.host_session import HostSession
from doctor.exam.request import ExamFlags, Ready
from doctor.hang.advice import advice_of
from doctor.hang.judge import Judgement
from doctor.hang.judge.judgement import Cause
from doctor.judge.verdict import Report


@dataclass(frozen=True, slots=True)
class HostSuggestion:
    hosts: tuple[str, ...]
    only: tuple[str, ...]
    """Globs of checks."""


def suggested(judgement: Judgement) -> HostSuggestion | None:
    """The hosts and checks of the first `doctor check HOSTS --only ...` among its commands.

    If several jobs were judged, None unless exactly one of them suggests checks.
    """
    if judgement.each:
        found = [asked for one in judgement.each if (asked := suggested(one))]
        return found[0] if len(found) == 1 else None
    if judgement.job is None:
        return None
    for command in advice_of(judgement).commands:
        words = [*dropwhile(lambda word: word.startswith("SLURM_"), shlex.split(command))]
        if words[:2] == ["doctor", "check"] and "--only" in words[:-1]:
            cut = [each.host for each in judgement.named if each.cause is Cause.LINK]
            hosts = tuple(dict.fromkeys(cut)) or judgement.job.hosts
            return HostSuggestion(hosts, tuple(words[words.index("--only") + 1].split(",")))
    return None


def examine_below(asked: HostSuggestion, session: HostSession) -> Report:
    """Run the suggested checks. The session cannot be used afterwards."""
    request, targets = session.request, session.targets
    hosts = tuple(host for host in targets.hosts if host.name in asked.hosts)
    head = targets.wishes.head
    wishes = targets.wishes
    if head is not None and head.value not in asked.hosts:
        wishes = replace(wishes, head=None)
    left = None if session.until == math.inf else max(0.1, session.until - time.monotonic())
    session.line.clear()
    session.closed = True
    _, report = run_and_judge(
        replace(
            request,
            command="check",
            what=ExamFlags(only=asked.only),
            way=replace(request.way, deadline=left),
            save=None,
            ready=Ready(replace(targets, hosts=hosts, wishes=wishes, way=lambda *_: session.transport)),
        )
    )
    return report
