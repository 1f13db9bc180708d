"""Rank tables alone: whether they can be read, add up, and fit the product."""

import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from doctor.api import (
    PLAN,
    Damage,
    Evidence,
    JobPlan,
    Place,
    Problem,
    Scope,
    Undecided,
    check,
    fold,
    grouped,
    maybe,
)
from doctor.facts.system import DEVICES, Devices
from doctor.facts.tables import ARCHITECTURE, RANK_TABLE, JobTable
from doctor.job.ranktable import Flaw, board_architecture, judge

SHOWN = 8
_NUMBER = re.compile(r"\d+")


@check("rank-table-invalid", RANK_TABLE, damage=Damage.BLOCKED, scope=Scope.CLUSTER)
def rank_table_invalid(seen: JobTable) -> Iterator[Problem]:
    """The rank table cannot be parsed.

    Why it matters: HCCL stops with EI0004 and seldom says where; torch_npu silently falls back to negotiation
    if the file is missing, and fails at the first collective if it is wrong.

    What to do: fix the named line. A trailing comma and a // comment are the usual mistakes: JSON has
    neither. `doctor ranktable make` writes a correct table from the devices themselves.
    """
    yield from _problems(seen, "rank-table-invalid", seen.flaws)


@check("rank-table-ranks", RANK_TABLE, PLAN, maybe(ARCHITECTURE), damage=Damage.BLOCKED, scope=Scope.CLUSTER)
def rank_table_ranks(seen: JobTable, plan: JobPlan, architectures: Mapping[str, str]) -> Iterator[Problem]:
    """Rank ids, counts or identities in the rank table do not add up.

    Why it matters: HCCL wants ranks 0 to n-1, each once, and counts that are the lengths of their lists. A
    rank that is named twice makes two processes compete for one place; a count that is too large makes all of
    them wait for a rank that does not exist (EI0004, EI0014).

    What to do: fix the named line. `board_id` must fit the machine: 0x0000 on x86, 0x002f or 0x0020
    on ARM.
    """
    table = seen.table
    if table is None:
        raise Undecided("the table cannot be read")
    yield from _problems(seen, "rank-table-ranks", judge(table))
    meant = board_architecture(table.board_id) if table.board_id else None
    strange = {host: found for host, found in architectures.items() if meant and found and found != meant}
    if strange:
        found, hosts = next(iter(strange.values())), quote(fold(plan.names))
        yield Problem(
            f"board_id {table.board_id} is for {meant}, and the hosts are {found}",
            expected=f"board_id for {found}",
            actual=f"board_id {table.board_id}",
            subject=seen.path,
            where=tuple(Place(host=host) for host in strange),
            evidence=(Evidence(seen.path, f'"board_id": "{table.board_id}"'),),
            commands=(f"doctor ranktable make {hosts} --format legacy --output {quote(seen.path)}",),
        )


@check("rank-table-grouping", RANK_TABLE, maybe(DEVICES), damage=Damage.BLOCKED, scope=Scope.CLUSTER)
def rank_table_grouping(seen: JobTable, devices: Mapping[str, Devices]) -> Iterator[Problem]:
    """The table takes devices in a number or grouping that the product cannot train with.

    Why it matters: on Atlas training servers devices 0-3 and 4-7 are two rings: a job of 1, 2 or 4 devices
    must stay in one of them, and a job over several servers takes the same number on each. HCCL says
    `devNum must be divisible by 8, or equal to 1, 2 or 4` (EI0004, EI0014). There devices 0 and 4, 1 and 5,
    2 and 6, 3 and 7 of all servers also share a segment each (a rail): addresses that no netmask divides in
    this way end in timeouts (EI0006).

    How it is known: the product is that of the hosts, what the form of the table is for, or
    `doctor ranktable check FILE --product atlas-training`.

    What to do: take other devices, or correct the address, as the finding says.
    """
    if seen.table is None:
        raise Undecided("the table cannot be read")
    yield from _problems(seen, "rank-table-grouping", judge(seen.table, seen.product or _product(devices)))


def _product(devices: Mapping[str, Devices]) -> str | None:
    """The product of the hosts that have NPUs, if they agree."""
    products = {found.product for found in devices.values() if found.npus}
    return products.pop() if len(products) == 1 else None


def _problems(seen: JobTable, id: str, flaws: Sequence[Flaw]) -> Iterator[Problem]:
    """The problems of one check; equal flaws of several ranks are one problem."""
    own = (flaw for flaw in flaws if flaw.check == id)
    groups = grouped(((_NUMBER.sub("#", flaw.message), flaw.severity), flaw) for flaw in own)
    for alike in groups.values():
        first = alike[0]
        more = f" (and {len(alike) - 1} more like it)" if len(alike) > 1 else ""
        yield Problem(
            first.message + more,
            expected=first.expected,
            actual=first.actual,
            subject=_place(seen, first),
            where=tuple(dict.fromkeys(Place(rank=flaw.rank, device=flaw.device) for flaw in alike)),
            severity=first.severity,
            evidence=tuple(Evidence(_place(seen, flaw), flaw.actual) for flaw in alike[:SHOWN]),
            commands=tuple(dict.fromkeys(map(_to_write, alike[:SHOWN]))),
        )


def _to_write(flaw: Flaw) -> str:
    """What to write into the file, and where."""
    line = f"Line {flaw.spot.line}: " if flaw.spot else ""
    instead = f" instead of {flaw.actual}" if flaw.actual else ""
    return f"# {line}{flaw.expected}{instead}".rstrip()


def _place(seen: JobTable, flaw: Flaw) -> str:
    return f"{seen.path}:{flaw.spot.line}:{flaw.spot.column}" if flaw.spot else seen.path
