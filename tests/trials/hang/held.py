"""Compares the report of `doctor hang` with the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.hang.named import culprits, suspects
from tests.trials.hang.drawn import Drawn, Victim
from tests.trials.hang.kinds import KINDS
from tests.trials.outcome import Outcome

Named = Mapping[str, Any]


def held(drawn: Drawn, hosts: Sequence[str], code: int, said: str, seconds: float) -> Outcome:
    """`hosts` are the names in their order."""
    kind, where = drawn.kind, f"{drawn.name} {drawn.place}"

    def outcome(detected: bool, told: bool, alone: bool, words: str) -> Outcome:
        return Outcome(
            drawn.name, drawn.number, drawn.place, detected, told, alone, None, seconds, code, (words,)
        )

    try:
        report = json.loads(said)
    except ValueError:
        return outcome(False, False, False, f"{where}: {said[-500:]}")
    guilty, suspected = culprits(report), suspects(report)
    line = f"{where}: {code} {report['hang']['state']}: {report['headline']} " + "; ".join(
        f"rank {each['rank']} on {each['host']} {each['cause']} at {each['hang']['place']}"
        for each in (*guilty, *suspected)
    )
    state = "unknown" if kind.idle or (kind.cause is not None and kind.code == 3) else "hang"
    fine = code == kind.code and (code == 0 or report["hang"]["state"] == state)
    if not fine:
        line += f" ({'; '.join(report['hang']['rights']['unread'] if report['hang']['rights'] else ())})"
    if kind.cause is not None and kind.code == 3:
        told = len(suspected) == 1 and all(_right(suspected[0], each, drawn) for each in drawn.victims)
        whom = told and all(_is(suspected[0], each, drawn, hosts) for each in drawn.victims)
        return outcome(fine, whom, not guilty, line)
    if kind.code != 1:
        shown = {each["rank"] for each in suspected}
        pair = not shown or (len(shown) > 1 and shown >= {each.rank for each in drawn.victims})
        return outcome(fine, fine and (pair or not kind.pair), not guilty, line)
    mine = {each: [one for one in guilty if _is(one, each, drawn, hosts)] for each in drawn.victims}
    told = any(mine.values()) and all(
        any(_right(one, each, drawn) for one in mine[each])
        or _noted(report["hang"]["notes"], each, drawn, hosts)
        for each in drawn.victims
    )
    return outcome(fine, told, len(guilty) == sum(map(len, mine.values())), line)


def _noted(notes: Sequence[str], victim: Victim, drawn: Drawn, hosts: Sequence[str]) -> bool:
    """A further cause beside a rank that cannot go on anyway; or its stack was not available."""
    told = [f"rank {victim.rank} on {hosts[drawn.host_of(victim)]} is outside as well"]
    if not drawn.sees_stack_of(victim):
        told.append(f"rank {victim.rank} may be outside as well")
    return len(drawn.victims) > 1 and any(note.startswith(each) for note in notes for each in told)


def _is(named: Named, victim: Victim, drawn: Drawn, hosts: Sequence[str]) -> bool:
    return (named["rank"], named["host"]) == (victim.rank, hosts[drawn.host_of(victim)])


def _right(named: Named, victim: Victim, drawn: Drawn) -> bool:
    """Its activity and its place. Without a stack, the kernel may show less of it."""
    kind = KINDS[victim.fault]
    if kind.function and not drawn.sees_stack_of(victim):
        return True
    stack = [frame["function"] for frame in named["hang"]["stack"]]
    return kind.cause is not None and named["cause"] == kind.cause.value and kind.function in (*stack, "")
