"""Whose events these are, where their lines do not say it themselves."""

from collections import defaultdict
from dataclasses import replace

from doctor.logs.judge.event import Event
from doctor.logs.judge.kinds import SuspectKind
from doctor.logs.model import Form, LogLine, Party

FIRST_FAILURE = "torchrun-first"
"""The symptom of torchrun's table that names the rank that failed first on its host."""
_OF_PROGRAM = {Form.PYTHON, Form.PLAIN}
"""Forms of what a rank itself prints."""
_ENDED = {SuspectKind.LEFT, SuspectKind.DIED}
_LEFT_ALONE = {SuspectKind.WAITS, SuspectKind.CLOSED, SuspectKind.AFTER}


def without_tasks(event: Event) -> Event:
    """The event about hosts, if Slurm's tasks are launchers, which are not ranks."""
    if event.line.form is not Form.SLURM:
        return event
    about = tuple(dict.fromkeys(replace(each, rank=None) for each in event.who))
    return replace(event, by=replace(event.by, rank=None), who=about)


def attributed(
    events: list[Event], odd: list[tuple[Party, LogLine]]
) -> tuple[list[Event], list[tuple[Party, LogLine]]]:
    """Attributes exceptions of unknown ranks to the rank that torchrun saw fail first, if the file has only
    one such rank. A rank that others only left alone is not a cause.
    """
    alone: dict[str, set[Party]] = defaultdict(set)
    """The processes in torchrun's line about the first that failed, if its table is not in the file."""
    tables: dict[str, set[Party]] = defaultdict(set)
    for each in events:
        if each.id == FIRST_FAILURE and each.by.rank is not None:
            tables[each.line.file].add(each.by)
    for each in events:
        if "failed (exitcode: " in each.line.text and each.kind in _ENDED and each.line.file not in tables:
            alone[each.line.file] |= set(each.who)
    tables |= alone
    first = {file: next(iter(ranks)) for file, ranks in tables.items() if len(ranks) == 1}
    nameless = [each for each in events if each.line.form is Form.PYTHON and each.by.rank is None]
    own = {each.line.file for each in nameless if each.kind is SuspectKind.ROOT}
    own |= {line.file for party, line in odd if line.form is Form.PYTHON and party.rank is None}

    left: dict[str, set[int]] = defaultdict(set)
    for each in events:
        if each.kind in _ENDED:
            left[each.line.file] |= each.ranks

    def known(each: Event) -> Event:
        rank = first.get(each.line.file)
        if 1 < len(left[each.line.file]) <= each.sighting.count:
            return each  # each of them said so
        if rank is None or each.line.form not in _OF_PROGRAM or each.by.rank is not None:
            return each
        if each.kind is not SuspectKind.ROOT and (each.kind not in _LEFT_ALONE or each.line.file in own):
            return each
        device = each.who[0].device if each.who else None
        one = replace(rank, device=rank.device if device is None else device)
        return replace(each, by=one, who=(one,))

    named = [
        (first.get(line.file, party) if line.form is Form.PYTHON and party.rank is None else party, line)
        for party, line in odd
    ]
    return list(map(known, events)), named
