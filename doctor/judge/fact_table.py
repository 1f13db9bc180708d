"""Facts x hosts: what each host reported about itself, by area, and which hosts are the odd ones."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Any, Literal

from doctor.facts.software import PYTHON
from doctor.judge import fact_values as of
from doctor.judge.fact_values import NOT_INSTALLED, HostReading, Read, Told
from doctor.judge.reading import Reading
from doctor.judge.run_facts import clock_offsets
from doctor.text.grouped import grouped
from doctor.text.hostprogram import table

Kind = Literal["same", "near", "own"]
NEAR = 0.05
"""The share by which sizes may differ between equal hosts, because firmware reserves a part."""
CLOCK_SKEW = 1.0


@dataclass(frozen=True, slots=True)
class FactRow:
    """One fact of all hosts: `shown` are the `values` in words and units.

    `kind` is how hosts should compare: all the "same", "near" each other, or each its "own" value. `odd` are
    the hosts that differ from most although they should not.
    """

    key: str
    title: str
    area: str
    values: Mapping[str, Any]
    shown: Mapping[str, str]
    odd: frozenset[str] = frozenset()
    kind: Kind = "same"


@dataclass(frozen=True, slots=True)
class _Column:
    key: str
    title: str
    area: str
    read: Read
    kind: Kind = "same"
    slack: float = 0.0
    """How far near values may be apart, in their own unit."""
    within_product: bool = True
    """Whether only hosts with the same product should be alike."""
    whole: bool = False
    """Whether "8 of 8" counts as better than "7 of 8" if equally many hosts have each."""


OWN_FACT = {"torch", "torch-npu", "mindspore"}
MOST_PACKAGES = 50
"""The most packages that are listed if hosts have other versions of them."""
ALWAYS = ("torch",)
"""Facts that are shown even if no host has them."""


def _column(row: str) -> _Column:
    key, title, area, read, kind, *flags = row.split("; ")
    name, *words = read.split()
    reader = getattr(of, name)(*words) if words else getattr(of, name)
    slack = CLOCK_SKEW if key == "clock_offset_seconds" else 0.0
    return _Column(key, title, area, reader, kind, slack, "any product" not in flags, "whole" in flags)  # type: ignore[arg-type]


COLUMNS = tuple(map(_column, table(__file__, "fact_table.txt")[0]))


def fact_table(reading: Reading) -> tuple[FactRow, ...]:
    """Hosts in the order of the plan; those that did not answer have no value."""
    recording = reading.recording
    clocks, smoke = clock_offsets(recording, reading.facts), _smoke_versions(reading)
    seen = [
        HostReading(host, reading, clocks.get(host.name), smoke.get(host.name, {}))
        for host in recording.hosts
        if host.name in recording.heard and host.name not in recording.unreached
    ]
    products = {each.host.name: told[0] for each in seen if (told := of.product(each))}
    others = _Column("packages", "packages", "software", of.other_packages(_differing_packages(seen)))
    rows = (_row(column, seen, products) for column in (*COLUMNS, others))
    return tuple(row for row in rows if row is not None)


def _differing_packages(seen: Sequence[HostReading]) -> list[str]:
    pythons = [python for each in seen if (python := each.get(PYTHON)) and python.version]
    found = [{**python.packages, **python.others} for python in pythons]
    names = sorted({name for packages in found for name in packages} - OWN_FACT)
    differing = (name for name in names if len({packages.get(name) for packages in found}) > 1)
    return [*islice(differing, MOST_PACKAGES)]


def facts_of_host(rows: tuple[FactRow, ...], host: str) -> dict[str, Any]:
    """Values by key; facts that the host did not report are missing."""
    return {row.key: row.values[host] for row in rows if host in row.values}


def _row(column: _Column, seen: Sequence[HostReading], products: Mapping[str, Any]) -> FactRow | None:
    told = {each.host.name: value for each in seen if (value := column.read(each)) is not None}
    if not told or (column.key not in ALWAYS and all(value == NOT_INSTALLED for value in told.values())):
        return None
    kinds = grouped((column.within_product and products.get(host), (host, told[host])) for host in told)
    return FactRow(
        column.key,
        column.title,
        column.area,
        {host: value for host, (value, _) in told.items()},
        {host: shown for host, (_, shown) in told.items()},
        frozenset(host for alike in kinds.values() for host in _odd(column, dict(alike))),
        column.kind,
    )


def _odd(column: _Column, told: Mapping[str, Told]) -> Iterator[str]:
    """The hosts that differ from the most frequent value; none if two values are equally frequent."""
    if column.kind == "near":
        numbers = {host: float(value) for host, (value, _) in told.items() if isinstance(value, int | float)}
        middle = median(numbers.values()) if numbers else 0.0
        far = [h for h, n in numbers.items() if abs(n - middle) > (column.slack or NEAR * middle)]
        yield from far if 2 * len(far) < len(numbers) else ()
    elif column.kind == "same" and told:
        votes = Counter(shown for _, shown in told.values()).most_common(2)
        decided = len(votes) > 1 and votes[0][1] > votes[1][1]
        whole = {shown for value, shown in told.values() if column.whole and shown == f"{value} of {value}"}
        good = {votes[0][0]} if decided else whole if len(votes) > 1 else set()
        yield from (host for host, (_, shown) in told.items() if good and shown not in good)


def far_apart(row: FactRow) -> bool:
    """Whether sizes of a row are further apart than those of equal hosts; none need be the odd one."""
    numbers = [float(value) for value in row.values.values() if isinstance(value, int | float)]
    slack = next((column.slack for column in COLUMNS if column.key == row.key), 0.0)
    return bool(numbers) and max(numbers) - min(numbers) > 2 * (slack or NEAR * median(numbers))


def _smoke_versions(reading: Reading) -> dict[str, dict[str, str]]:
    """Host -> the versions from the last run in which it took part."""
    found: dict[str, dict[str, str]] = {}
    for run in reading.runs:
        for seat, rank in zip(run.plan.seats, run.result.ranks, strict=True):
            if rank.started:
                found[seat.host] = dict(rank.started.versions)
    return found
