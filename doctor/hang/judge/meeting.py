"""Ranks that wait for their first meeting: several of one number, calls to different places, or too few."""

from collections import Counter

from doctor.hang.judge.case import HangCase
from doctor.hang.judge.judgement import Cause, HangConfidence, HangCulprit, HangFinding
from doctor.live.collectives import MEETING
from doctor.text.ranks import ranks_text


def never_meet(case: HangCase) -> HangFinding | None:
    """Faults that do not pass by themselves."""
    return (_of_one_number(case) or _elsewhere(case)) if _meet(case) else None


def absent(case: HangCase) -> HangFinding | None:
    """Some ranks were not seen. They may not be started yet, so nobody is accused."""
    if not _meet(case) or not case.job.missing:
        return None
    who, world = ranks_text(case.job.missing, most=4), case.job.world
    said = f"No process that was seen has {who} of {world}: not started yet, or ended before it joined."
    do = f"start {who}, or read the log of one that was started; if its host was not asked, name that too"
    return HangFinding(sentence=said, meets=True, do=(do,))


def _meet(case: HangCase) -> bool:
    return any(each.operation == MEETING for each in case.inside)


def _of_one_number(case: HangCase) -> HangFinding | None:
    held = Counter(each.rank for each in case.job.ranks if each.rank is not None)
    number = next((number for number, times in sorted(held.items()) if times > 1), None)
    if number is None:
        return None
    same = [each for each in case.job.ranks if each.rank == number]
    none = f"; none has {ranks_text(case.job.missing, most=4)}" if case.job.missing else ""
    said = f"{len(same)} processes have rank {number}{none}."
    pids = " and ".join(f"process {each.pid} on {each.host}" for each in same[:4])
    named = HangCulprit(number, same[0].host, None, Cause.NUMBER, f"is claimed by {pids}")
    return _never((named,), said, f"give each process a RANK of its own{none}")


def _elsewhere(case: HangCase) -> HangFinding | None:
    """Ranks of a whole world that call another place than most, or than rank 0 if there is no most."""
    called = Counter(each.master for each in case.job.ranks)
    if len(called) < 2 or "" in called:
        return None
    right = max(called, key=lambda place: (called[place], place == case.job.ranks[0].master))
    others = ranks_text(
        [n for each in case.job.ranks if each.master == right and (n := each.rank) is not None]
    )
    wrong = [each for each in case.job.ranks if each.master != right]
    rest = f"{others} call{'s' * (called[right] == 1)} {right}"
    who = ranks_text([n for each in wrong if (n := each.rank) is not None], most=4)
    address, _, port = right.rpartition(":")
    do = f"start {who} with MASTER_ADDR={address} MASTER_PORT={port}"
    named = tuple(
        HangCulprit(of.rank, of.host, of.pid, Cause.ADDRESS, f"calls {of.master}; {rest}") for of in wrong
    )
    return _never(named, "The ranks call different places, so they never meet.", do)


def _never(named: tuple[HangCulprit, ...], said: str, do: str) -> HangFinding:
    return HangFinding(named, HangConfidence.STRONG, sentence=said, meets=True, do=(do,))
