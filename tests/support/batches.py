"""Several faults in one examination without connections between hosts, each fault on a host of its own.

The assertions about each fault are the same as if the other hosts had not been broken. The first fault of a
file is examined alone: then every other host is healthy, and must be found healthy.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.faults import (
    ALONE,
    HEAD,
    Bench,
    Breaks,
    Broken,
    Fault,
    Outcome,
    apply_remedy,
    assert_healthy,
    assert_judged,
    kinds,
    prove,
    victim,
)
from tests.support.verified import assert_green

FREEDOM = {"peer": 1, "any": 2}
"""A fault that may be on any host is placed last."""


def batches(
    faults: Mapping[str, Breaks[Any]],
    *sample: str,
    size: int = 3,
    alike: bool = False,
    alone: Collection[str] = (),
) -> list[Any]:
    """Names of faults for parametrize, up to `size` a batch; without a sample one of each check and status.

    The faults of a batch are found by the same options and, unless they may be `alike`, are of different
    kinds: some checks compare hosts. Faults that also show on other hosts are `alone`; if there are none, the
    first fault is alone. Batches of faults outside the sample are marked long.
    """
    chosen = [name for name in faults if name in (sample or kinds(faults))]
    others = [name for name in faults if name not in chosen]
    single = [name for name in chosen if name in alone] or chosen[:1]
    shared = _batches(faults, [name for name in chosen if name not in single], size, alike)
    further = _batches(faults, others, size, alike)
    return [
        *map(_param, [[name] for name in single] + shared),
        *(_param(names, pytest.mark.long) for names in further),
    ]


def _param(names: list[str], *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(names, id=" + ".join(names), marks=marks)


def _batches(
    faults: Mapping[str, Breaks[Any]], names: Iterable[str], size: int, alike: bool
) -> list[list[str]]:
    """Each fault in the first batch that has room for it."""
    made: list[list[str]] = []
    for name in names:
        fits = (
            batch
            for batch in made
            if len(batch) < size and all(_apart(faults[name], faults[other], alike) for other in batch)
        )
        if (batch := next(fits, None)) is None:
            made.append([name])
        else:
            batch.append(name)
    return made


def _apart(fault: Breaks[Any], other: Breaks[Any], alike: bool) -> bool:
    """Whether neither fault shows in the findings of the other."""
    same_way = (fault.args, fault.user) == (other.args, other.user) and fault.args[: len(ALONE)] == ALONE
    return (
        same_way
        and (alike or (fault.check, fault.status) != (other.check, other.status))
        and not fault.on == other.on == HEAD
    )


def prove_each(faults: Mapping[str, Breaks[Broken]], bench: Bench[Broken], *, mended: bool = False) -> None:
    """Break a host in each of these ways, examine all hosts, and assert that only the fault of each is found.
    With `mended`, the commands of the findings are typed, and then all hosts are healthy. If that fails for
    several faults, each is tried alone, which shows more.
    """
    try:
        _prove(faults, bench, mended)
    except AssertionError:
        for name in faults if len(faults) > 1 else ():
            bench.heal()
            _prove({name: faults[name]}, bench, mended)
        raise


def _prove(faults: Mapping[str, Breaks[Broken]], bench: Bench[Broken], mended: bool) -> None:
    outcome = _found(faults, bench)
    for found in outcome.trouble if mended else ():
        apply_remedy(bench.lab, found)
    if not mended:
        bench.heal()
    gone = {fault.check for fault in faults.values() if isinstance(fault, Fault) and not fault.leaves}
    assert_green(bench.lab, outcome.report, outcome.text, outcome.recording, gone)
    if mended:
        assert_healthy(bench(*_way(faults)[0]))


def _found(faults: Mapping[str, Breaks[Broken]], bench: Bench[Broken]) -> Outcome:
    if len(faults) == 1:
        ((name, fault),) = faults.items()
        return prove(fault, name, bench)
    broken: dict[str, Breaks[Broken]] = {}
    for name, fault in sorted(faults.items(), key=lambda each: FREEDOM.get(each[1].on, 0)):
        host = victim(bench.lab, fault.on, name, broken).name
        fault.inject(bench.hosts[host])
        broken[host] = fault
    args, user = _way(faults)
    outcome = bench(*args, user=user)
    for host, fault in broken.items():
        fault.assert_found(_without(outcome, broken.keys() - {host}), host)
    assert_judged(outcome, [host for host, fault in broken.items() if fault.status == "fail"] or None)
    return outcome


def _way(faults: Mapping[str, Breaks[Broken]]) -> tuple[tuple[str, ...], str | None]:
    """The options, and the user, with which all of them are found."""
    (way,) = {(fault.args, fault.user) for fault in faults.values()}
    return way


def _without(outcome: Outcome, hosts: Collection[str]) -> Outcome:
    """The findings, without those about these hosts."""
    findings = []
    for found in outcome.report["findings"]:
        rest = [host for host in found["hosts"] if host not in hosts]
        if rest or not found["hosts"]:
            places = [place for place in found["where"] if place["host"] not in hosts]
            findings.append({**found, "hosts": rest, "where": places})
    return replace(outcome, report={**outcome.report, "findings": findings})
