"""The processes of a launch that are its ranks, and how many there are."""

from collections.abc import Iterable

from doctor.devices import EVERY_VISIBLE
from doctor.job.launch import rank_env
from doctor.job.launch.launcher import LaunchNumber
from doctor.job.launch.process_env import Launch, ProcessEnv
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
