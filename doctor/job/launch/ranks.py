"""Which ranks of a launch are doubled, missing or impossible, by what its processes were told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from doctor.devices import EVERY_VISIBLE
from doctor.job.launch.launcher import ToldNumber
from doctor.job.launch.launchers import MARKS, NUMBERS
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.rank_env import rank_of, role_of, role_variable, world_of
from doctor.text.ranks import ranks_text

MOST_RANKS = 200_000
"""No job has a larger world."""


@dataclass(frozen=True, slots=True)
class Clash:
    """A rank that was told another device than the rank table has for it."""

    told: ProcessEnv
    rank: int
    device: int
    expected: int


def device_conflicts(launch: Launch, devices_by_rank: Mapping[int, int]) -> tuple[Clash, ...]:
    """DEVICE_ID against the table. With visible devices the numbers count those, and say nothing."""
    found = []
    for told in ranks_of(launch):
        rank = rank_of(told)
        said = ToldNumber("DEVICE_ID", told.env.get("DEVICE_ID", ""))
        if rank is None or rank.value is None or said.value is None or visible_devices(told) is not None:
            continue
        expected = devices_by_rank.get(rank.value)
        if expected is not None and expected != said.value:
            found.append(Clash(told, rank.value, said.value, expected))
    return tuple(found)


def visible_devices(told: ProcessEnv) -> str | None:
    return next((told.env[name] for name in EVERY_VISIBLE if name in told.env), None)


def ranks_of(launch: Launch) -> list[ProcessEnv]:
    """Its processes that are one rank each."""
    return [told for told in launch.told if role_of(told) == "rank" and not told.loop]


def world_of_launch(launch: Launch) -> ToldNumber | None:
    """How many ranks there are, where at least one process says so and all agree."""
    said = [world for told in ranks_of(launch) if (world := world_of(told)) is not None]
    values = {world.value for world in said}
    (value,) = values if len(values) == 1 else (None,)
    return said[0] if value is not None and 0 < value <= MOST_RANKS else None


@dataclass(frozen=True, slots=True)
class Absent:
    """Ranks that no process has. `ranks` is empty where they have no numbers; `hosts` should have them.

    `certain`: the processes of the host say themselves that there should be more, or all were given.
    """

    count: int
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    certain: bool = True


def missing_ranks(
    launch: Launch, hosts: Collection[str], silent: Collection[str], busy: Collection[str] = ()
) -> tuple[list[Absent], str]:
    """Who is missing, and why it cannot be told of others. `hosts` were looked at, `silent` should have been.

    A host that runs fewer ranks than it was told to is certain. Whole hosts may be outside of what was looked
    at: they count only when the idle hosts are as many as the missing ones; hosts that are `busy` with any
    job are not idle. One process alone proves nothing: it may be another program that has inherited the
    variables.
    """
    world, present = world_of_launch(launch), ranks_of(launch)
    if not launch.complete or world is None or world.value is None:
        return [], ""
    numbers = [rank_of(told) for told in present]
    values = {number.value for number in numbers if number is not None and number.value is not None}
    counts_only = not values and any(map(role_variable, present))
    if not counts_only and any(number is None for number in numbers):
        return [], ""
    lacking = set(range(world.value)) - values if values else set[int]()
    count = len(lacking) if values else world.value - len(present)
    if count <= 0:
        return [], ""
    found = _gaps(present, lacking)
    for absent in found:
        lacking -= set(absent.ranks)
        count -= absent.count
    if count > 0 and launch.live and silent:
        return found, f"{launch.name}: not every host could be asked which ranks it runs"
    if count > 0:
        free = [host for host in hosts if host not in busy]
        more, doubt = _elsewhere(launch, present, lacking, count, world.value, free)
        return found + more, doubt
    return found, ""


def _gaps(present: Sequence[ProcessEnv], lacking: Collection[int]) -> list[Absent]:
    """Ranks that belong to a host by its own LOCAL_RANK and LOCAL_WORLD_SIZE."""
    found: dict[str, set[int]] = {}
    for told in present:
        rank, own = rank_of(told), ToldNumber("LOCAL_RANK", told.env.get("LOCAL_RANK", ""))
        size = ToldNumber("LOCAL_WORLD_SIZE", told.env.get("LOCAL_WORLD_SIZE", ""))
        if told.host is None or rank is None or None in (rank.value, own.value, size.value):
            continue
        first = (rank.value or 0) - (own.value or 0)
        if 0 < (size.value or 0) <= 1024:
            found.setdefault(told.host, set()).update(range(first, first + (size.value or 0)))
    gaps = {host: sorted(block & set(lacking)) for host, block in found.items()}
    return [Absent(len(ranks), tuple(ranks), (host,)) for host, ranks in gaps.items() if ranks]


def _elsewhere(
    launch: Launch,
    present: Sequence[ProcessEnv],
    lacking: Collection[int],
    count: int,
    world: int,
    hosts: Collection[str],
) -> tuple[list[Absent], str]:
    absent = Absent(count, tuple(sorted(lacking)))
    what = f"{counted(lacking)} of {world}" if lacking else f"{count} of {world} ranks"
    shares = Counter(told.host for told in present if told.host is not None)
    share = shares.most_common(1)[0][1] if shares else 0
    if not launch.live:
        if _is_share(present, world) or (len(shares) == 1 and share and world % share == 0):
            return [], f"{launch.name}: nothing was given of {what}; they may belong to other hosts"
        return [absent], ""
    idle = [host for host in hosts if host not in shares]
    thin = tuple(host for host, own in shares.items() if own < share) if share and count % share else ()
    if not thin and idle and share and len(idle) * share == count and len(present) > 1:
        thin = tuple(idle)
    if thin:
        return [Absent(count, absent.ranks, thin, certain=False)], ""
    return [], f"{launch.name}: {what} may run on hosts that were not looked at, or not at all"


def _is_share(present: Iterable[ProcessEnv], world: int) -> bool:
    """Whether the ranks are just those that one host would have."""
    values = sorted(rank.value for told in present if (rank := rank_of(told)) and rank.value is not None)
    size = len(values)
    whole = size > 0 and values == list(range(values[0], values[0] + size))
    return whole and size < world and world % size == 0 and values[0] % size == 0 and size > 1


def may_be_inherited(launch: Launch, same: Sequence[ProcessEnv]) -> bool:
    """Whether these have one rank only because a pod hands it to all that is started in it by hand.

    So it is where no launcher started them, no process of that program has another number, and nothing else
    tells them apart.
    """
    numbers = {number.text for told in ranks_of(launch) if (number := rank_of(told)) is not None}
    own = {(told.host, told.env.get("LOCAL_RANK"), told.env.get("DEVICE_ID")) for told in same}
    started = any(role_of(told) == "agent" or told.env.keys() & MARKS for told in launch.told)
    by_hand = all((number := rank_of(told)) is not None and NUMBERS[number.said].by_hand for told in same)
    return launch.live and len(numbers) == 1 and len(own) == 1 and by_hand and not started


def counted(numbers: Iterable[int], what: str = "rank") -> str:
    """ "rank 3", "ranks 0-2, 5 and 3 more" """
    return ranks_text(numbers, what, most=12)
