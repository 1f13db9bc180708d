"""What failed in an earlier run, and what has become of it: fixed, still there, waived, or not decided."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from doctor.model import Place, Result, Status

_SAID = {Status.SKIP: "it does not apply now", Status.UNKNOWN: "it could not be decided"}


class RecheckState(Enum):
    FIXED = "fixed"
    STILL = "still there"
    OPEN = "not decided"
    WAIVED = "waived"
    """It is still there, and accepted."""


_WORST = (RecheckState.STILL, RecheckState.OPEN, RecheckState.WAIVED, RecheckState.FIXED)


@dataclass(frozen=True, slots=True)
class EarlierFinding:
    """A finding of an earlier run."""

    id: str
    check: str
    hosts: tuple[str, ...]
    """Empty if no host was guilty."""
    where: tuple[Place, ...]
    headline: str


@dataclass(frozen=True, slots=True)
class Recheck:
    """What has become of a finding."""

    before: EarlierFinding
    now: RecheckState
    still: tuple[str, ...] = ()
    """The hosts that still have it."""
    open: tuple[str, ...] = ()
    """The hosts on which it could not be decided."""
    why: str = ""
    """Why it could not be decided."""


def compare(
    before: Iterable[EarlierFinding], results: Sequence[Result], unheard: Mapping[str, str]
) -> tuple[Recheck, ...]:
    """What has become of each finding. `unheard`: hosts that did not answer the new run -> why."""
    return tuple(
        _compare(each, [result for result in results if result.check == each.check], unheard)
        for each in before
    )


def _compare(before: EarlierFinding, own: Sequence[Result], unheard: Mapping[str, str]) -> Recheck:
    if not before.hosts:
        now, why = _state(before, "", own, unheard)
        return Recheck(before, now, why=why)
    states = {host: _state(before, host, own, unheard) for host in before.hosts}
    still, unsure = (
        tuple(host for host, (now, _) in states.items() if now is wanted)
        for wanted in (RecheckState.STILL, RecheckState.OPEN)
    )
    found = {now for now, _ in states.values()}
    now = next(each for each in _WORST if each in found)
    return Recheck(before, now, still, unsure, states[unsure[0]][1] if unsure else "")


def _state(
    before: EarlierFinding, host: str, own: Sequence[Result], unheard: Mapping[str, str]
) -> tuple[RecheckState, str]:
    """What has become of a finding on a host (in the whole run if it is empty), and why it is undecided."""
    touching = [result for result in own if not host or not result.hosts or host in result.hosts]
    same = [result for result in touching if result.problem and _is_same(before, host, result)]
    if any(result.status is not Status.WAIVED for result in same):
        return RecheckState.STILL, ""
    if same:
        return RecheckState.WAIVED, ""
    if host in unheard:
        return RecheckState.OPEN, unheard[host]
    for result in touching:
        if result.status in (Status.UNKNOWN, Status.CRASH, Status.SKIP):
            return RecheckState.OPEN, result.reason or _SAID.get(result.status, "the check broke")
    if not own or (not host and unheard):
        return RecheckState.OPEN, next(iter(unheard.values()), "it was not examined")
    return RecheckState.FIXED, ""


def _is_same(before: EarlierFinding, host: str, result: Result) -> bool:
    """Whether the result may show the same fault: a fault of another device of the host is another fault."""
    assert result.problem is not None
    was, now = _devices(before.where, host, before.hosts), _devices(result.problem.where, host, result.hosts)
    return not (was and now) or bool(was & now)


def _devices(where: Iterable[Place], host: str, hosts: Collection[str]) -> set[int]:
    own = (place for place in where if place.host == host or (place.host is None and host in hosts))
    return {place.device for place in own if place.device is not None}
