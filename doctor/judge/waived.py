"""Waivers applied to results: what they waive, and what they no longer need to."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from doctor.model import MOST_PLACES, Confidence, Problem, Result, Status, Waiver
from doctor.text.grouped import grouped
from doctor.text.nodeset import fold

_SPAN = "[0-9]{1,6}(?:-[0-9]{1,6})?"
_NUMBERED = re.compile(rf"(device|port|rank)s? +({_SPAN}(?: *, *{_SPAN})*)")
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BAD = (Status.FAIL, Status.WARN)
_Waivers = Mapping[tuple[str, str], Sequence[Waiver]]
Waive = Callable[[Result], Iterable[Result]]
"""Makes of a result its parts, by what waives them."""


def waiving(waivers: Sequence[Waiver], day: str) -> Waive:
    """`day` is that of the run, in UTC; on a day that is none, nothing is waived."""
    known = grouped(((each.check, host), each) for each in waivers for host in each.hosts)
    return partial(_parts, known=known, day=day)


def _parts(result: Result, known: _Waivers, day: str) -> Iterator[Result]:
    """Each culprit is waived by itself; suspects only together, since one of them is at fault."""
    problem = result.problem
    if result.status not in _BAD or problem is None or not result.hosts:
        yield result
        return
    told = {host: _waiver_of(known.get((result.check, host), ()), problem, host) for host in result.hosts}
    held = {host: waiver for host, waiver in told.items() if waiver and _holds(waiver, day)}
    if problem.confidence is Confidence.SUSPECT:
        least = min(held.values(), key=lambda each: each.until, default=None)
        held = dict.fromkeys(held, least) if least and len(held) == len(told) else {}
    groups = grouped((held.get(host), host) for host in result.hosts)
    for waiver, hosts in groups.items():
        where = tuple(place for place in problem.where if len(groups) == 1 or place.host in (None, *hosts))
        own = replace(problem, where=where, hosts=tuple(hosts) if problem.hosts else ())
        status = Status.WAIVED if waiver else result.status
        said = waiver or next(filter(None, (told[host] for host in hosts if host not in held)), None)
        said = replace(said, status=result.status) if said else None
        yield replace(result, hosts=tuple(hosts), status=status, problem=own, waiver=said)


def _holds(waiver: Waiver, day: str) -> bool:
    return all(map(_DAY.fullmatch, (waiver.until, day))) and waiver.until >= day


def _waiver_of(waivers: Iterable[Waiver], problem: Problem, host: str) -> Waiver | None:
    """The waiver that covers the problem the longest; one that has expired only if there is no other."""
    covering = [each for each in waivers if _covers(each.subject, problem, host)]
    return max(covering, key=lambda each: each.until, default=None)


def _covers(subject: str, problem: Problem, host: str) -> bool:
    """Whether nothing but the subject is at fault: a waiver of device 3 does not cover devices 3 and 5."""
    if not subject or subject == problem.subject:
        return True
    if not (found := _NUMBERED.fullmatch(subject.lower())) or len(problem.where) >= MOST_PLACES:
        return False
    own = {getattr(place, found[1]) for place in problem.where if place.host in (None, host)}
    if (said := (problem.subject or "").lower()).startswith(found[1]):  # `where` may begin a range only
        own |= _numbers(named) if (named := _NUMBERED.fullmatch(said)) else {None}
    return bool(own) and own <= _numbers(found)


def _numbers(named: re.Match[str]) -> set[int]:
    spans = (each.partition("-") for each in named[2].split(","))
    return {n for first, _, last in spans for n in range(int(first), int(last or first) + 1)}


def not_needed(waivers: Iterable[Waiver], results: Iterable[Result]) -> Iterator[str]:
    """A sentence for each waiver of a check that passes now. What could not be decided may still be there."""
    passed: dict[str, set[str]] = defaultdict(set)
    doubtful: dict[str, set[str]] = defaultdict(set)
    for result in results:
        (passed if result.status is Status.PASS else doubtful)[result.check].update(result.hosts)
    for each in waivers:
        if sound := {*each.hosts} & passed[each.check] - doubtful[each.check]:
            where = f"{each.check} passes on {fold(sound)}"
            yield f"{where}: the waiver of {each.owner} until {each.until} is no longer needed there"
