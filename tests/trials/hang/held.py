"""Compares the report of `doctor hang` with the truth about a fault of `kinds.yaml`."""

from collections.abc import Sequence

from tests.trials.hang.answer import Answer, Named, functions
from tests.trials.hang.drawn import Drawn, Victim
from tests.trials.hang.kinds import KINDS
from tests.trials.outcome import Outcome


def held(drawn: Drawn, hosts: Sequence[str], answer: Answer) -> Outcome:
    """`hosts` are the names in their order."""
    kind, guilty, suspected = drawn.kind, answer.guilty, answer.suspected
    state = "unknown" if kind.idle or (kind.cause is not None and kind.code == 3) else "hang"
    fine = answer.code == kind.code and (answer.code == 0 or answer.hang["state"] == state)
    if kind.cause is not None and kind.code == 3:
        (victim,) = drawn.victims
        whom = len(suspected) == 1 and _is(suspected[0], victim, drawn, hosts)
        return answer.outcome(fine, whom and _right(suspected[0], victim, drawn), not guilty)
    if kind.code != 1:
        shown = {each["rank"] for each in suspected}
        pair = not shown or (len(shown) > 1 and shown >= {each.rank for each in drawn.victims})
        return answer.outcome(fine, fine and (pair or not kind.pair), not guilty)
    mine = {each: [one for one in guilty if _is(one, each, drawn, hosts)] for each in drawn.victims}
    told = any(mine.values()) and all(
        any(_right(one, each, drawn) for one in mine[each])
        or _noted(answer.hang["notes"], each, drawn, hosts)
        for each in drawn.victims
    )
    return answer.outcome(fine, told, len(guilty) == sum(map(len, mine.values())))


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
    found = kind.function in (*functions(named), "")
    return kind.cause is not None and named["cause"] == kind.cause.value and found
