"""Ranks of a launch that are duplicate, missing or impossible, according to its processes."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from doctor.devices import EVERY_VISIBLE
from doctor.job.launch import rank_env
from doctor.job.launch.launcher import LaunchNumber
from doctor.job.launch.process_env import Launch, ProcessEnv
from doctor.job.launch.table_reference import is_by_device
from doctor.text.ranks import ranks_text

MOST_RANKS = 200_000
"""The most ranks of a job; a larger number is a mistake."""


def visible_devices(told: ProcessEnv) -> str | None:
    return next((told.env[name] for name in EVERY_VISIBLE if name in told.env), None)


def ranks_of(launch: Launch) -> list[ProcessEnv]:
    """The processes of the launch that are exactly one rank."""
    return [told for told in launch.told if rank_env.role_of(told) == "rank" and not told.loop]


def world_of_launch(launch: Launch) -> LaunchNumber | None:
    """How many ranks there are, if at least one process says so and all agree."""
    said = [world for told in ranks_of(launch) if (world := rank_env.world_of(told)) is not None]
    values = {world.value for world in said}
    (value,) = values if len(values) == 1 else (None,)
    return said[0] if value is not None and 0 < value <= MOST_RANKS else None


@dataclass(frozen=True, slots=True)
class MissingRanks:
    """Ranks that no process was given. `ranks` is empty if they have no numbers; `hosts` should have them.

    If no table could be read that maps devices to ranks, `ranks` are devices: `by_device`.
    """

    count: int
    ranks: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    by_device: bool = False


def missing_ranks(launch: Launch, hosts: Collection[str]) -> tuple[list[MissingRanks], str]:
    """The missing ranks, and why others may be missing. `hosts` are those that are examined.

    Ranks that run prove nothing about others: these may have ended, or come later.
    """
    world, present = world_of_launch(launch), ranks_of(launch)
    by_device = bool(present) and all(is_by_device(each) and each.seat is None for each in present)
    if by_device and (doubt := _no_table(launch, present, world)):
        return [], doubt
    if not launch.complete or world is None or world.value is None:
        return [], ""
    numbers = [_device_of(told) if by_device else rank_env.rank_of(told) for told in present]
    values = {number.value for number in numbers if number is not None and number.value is not None}
    counts_only = not values and any(map(rank_env.role_variable, present))
    if not counts_only and any(number is None for number in numbers):
        return [], ""
    lacking = set(range(world.value)) - values if values else set[int]()
    if len(present) >= world.value and (by_device or any(each.seat for each in present)):
        return [], ""  # as many as there should be: the missing device's place is taken by a duplicate
    count = len(lacking) if values else world.value - len(present)
    if count <= 0:
        return [], ""
    if by_device:
        seen = tuple({each.host for each in present if each.host is not None})
        return [MissingRanks(count, tuple(sorted(lacking)), seen, by_device=True)], ""
    found = _gaps(present, lacking)
    for absent in found:
        lacking -= set(absent.ranks)
        count -= absent.count
    if count <= 0:
        return found, ""
    rest = MissingRanks(count, tuple(sorted(lacking)))
    if not found and (here := _lost_here(present, world.value, hosts)) is not None:
        return [replace(rest, hosts=here)], ""
    if _may_be_elsewhere(present, world.value):
        what = f"{counted(rest.ranks)} of {world.value}" if rest.ranks else f"{count} of {world.value} ranks"
        return found, f"{launch.name}: nothing was given of {what}; they may belong to other hosts"
    return [*found, rest], ""


def _no_table(launch: Launch, present: Sequence[ProcessEnv], world: LaunchNumber | None) -> str:
    """Why the missing ranks are unknown, if no table maps the devices to ranks.

    On one host with as many devices as ranks, each device is one of them.
    """
    devices = {_device_of(each).value for each in present}
    one_host = len({each.host for each in present}) == 1
    size = world.value if world is not None else None
    if one_host and size and all(device is not None and 0 <= device < size for device in devices):
        return ""
    return f"{launch.name}: which ranks these are is in the rank table, and that could not be read"


def _device_of(told: ProcessEnv) -> LaunchNumber:
    return LaunchNumber(rank_env.DEVICE, told.env[rank_env.DEVICE])


def _lost_here(present: Sequence[ProcessEnv], world: int, hosts: Collection[str]) -> tuple[str, ...] | None:
    """The host of a job that has only one and ran all its ranks there; None if it may have others.

    No one else can join ranks that meet at a loopback address. If the plan also has one host, another host
    would have another number of ranks than this one.
    """
    seen = {process.host for process in present}
    if len(seen) != 1 or None in seen or any(map(rank_env.local_world_of, present)):
        return None
    masters = [rank_env.master_of(process) for process in present]
    loopback = all(master is not None and rank_env.is_loopback_name(master.address) for master in masters)
    if len(hosts) > 1 and not loopback:
        return None
    alone = loopback and len(hosts) == 1
    return tuple(filter(None, seen)) if len(present) > 1 and (alone or not is_share(present, world)) else None


def _gaps(present: Sequence[ProcessEnv], lacking: Collection[int]) -> list[MissingRanks]:
    """Missing ranks of hosts, by their own LOCAL_RANK and LOCAL_WORLD_SIZE, or by the rank table."""
    found: dict[str, set[int]] = {}
    for told in present:
        if told.host is not None and told.seat is not None:
            found.setdefault(told.host, set()).update(told.seat.ranks.values())
            continue
        rank, own = rank_env.rank_of(told), LaunchNumber("LOCAL_RANK", told.env.get("LOCAL_RANK", ""))
        size = LaunchNumber("LOCAL_WORLD_SIZE", told.env.get("LOCAL_WORLD_SIZE", ""))
        if told.host is None or rank is None or None in (rank.value, own.value, size.value):
            continue
        first = (rank.value or 0) - (own.value or 0)
        if 0 < (size.value or 0) <= 1024:
            found.setdefault(told.host, set()).update(range(first, first + (size.value or 0)))
    gaps = {host: sorted(block & set(lacking)) for host, block in found.items()}
    return [MissingRanks(len(ranks), tuple(ranks), (host,)) for host, ranks in gaps.items() if ranks]


def _may_be_elsewhere(present: Sequence[ProcessEnv], world: int) -> bool:
    """Whether those that were given may be the ranks of one of several hosts."""
    shares = Counter(told.host for told in present if told.host is not None)
    (share,) = shares.values() if len(shares) == 1 else (0,)
    return is_share(present, world) or (share > 0 and world % share == 0)


def is_share(present: Iterable[ProcessEnv], world: int) -> bool:
    """Whether the ranks are exactly those that one host would have."""
    values = sorted(
        rank.value for told in present if (rank := rank_env.rank_of(told)) and rank.value is not None
    )
    size = len(values)
    whole = size > 0 and values == list(range(values[0], values[0] + size))
    return whole and size < world and world % size == 0 and values[0] % size == 0 and size > 1


def counted(numbers: Iterable[int], what: str = "rank") -> str:
    """ "rank 3", "ranks 0-2, 5 and 3 more" """
    return ranks_text(numbers, what, most=12)
