"""Which rank this process is, and of how many: from the framework that it joined, or from its launcher."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

TABLE = ("RANK_TABLE_FILE", "RANK_TABLE_PATH")
MOST = 64 << 20
"""The most characters of a file that are read."""


class RankPlace(NamedTuple):
    rank: int
    world: int
    source: str


class NotComparable(Exception):
    """This rank cannot be compared with others; the text says why."""


def place() -> RankPlace:
    found = next(_places(), None)
    if found is None:
        names = ", ".join(dict.fromkeys(f"{rank} and {world}" for rank, world in _variables(outer=False)))
        raise NotComparable(
            "the rank of this process is unknown: torch.distributed is not set up, and neither are "
            f"{names}, nor RANK_TABLE_FILE with DEVICE_ID"
        )
    if found.rank >= found.world:
        raise NotComparable(f"according to {found.source}, this is rank {found.rank} of {found.world}")
    return found


def torch_distributed() -> Any:
    """torch.distributed, if this job uses it; never loads it."""
    module = sys.modules.get("torch.distributed")
    return module if module is not None and module.is_available() and module.is_initialized() else None


def _places() -> Iterator[RankPlace]:
    """All sources that give a place, the surest first."""
    distributed = torch_distributed()
    if distributed is not None:
        yield RankPlace(int(distributed.get_rank()), int(distributed.get_world_size()), "torch.distributed")
    yield from _from_mindspore()
    yield from _from_variables(_variables(outer=False))
    yield from _from_rank_table()
    # Last, because a loop in a batch script starts ranks that these do not count.
    yield from _from_variables(_variables(outer=True))


def _from_mindspore() -> Iterator[RankPlace]:
    """If MindSpore assigns the ranks, only MindSpore knows them, and only after init()."""
    module = sys.modules.get("mindspore.communication.management")
    if module is not None and getattr(getattr(module, "GlobalComm", None), "INITED", False):
        yield RankPlace(int(module.get_rank()), int(module.get_group_size()), "mindspore.communication")


def _variables(*, outer: bool) -> Iterator[tuple[str, str]]:
    """Variables for the rank and the number of ranks; launchers that set a process's role come first."""
    try:
        from doctor.smoke.hook_impl.rank_variables import ROWS
    except (ImportError, SyntaxError, TypeError) as error:
        why = f"{type(error).__name__}: {str(error)[:100]}"
        raise NotComparable(
            f"cluster-doctor itself does not run in this Python ({why}); in one where it does, "
            "`python3 -m doctor.smoke.hook hook.zip` writes the hook as one file for Python 3.8 and later"
        ) from None
    for row in sorted(ROWS, key=lambda row: not os.environ.get(row["role"])):
        if row["outer"] == outer:
            yield from ((rank, world) for rank in row["rank"] for world in row["world"])


def _from_variables(pairs: Iterator[tuple[str, str]]) -> Iterator[RankPlace]:
    for rank, world in pairs:
        if (own := number(rank)) is not None and (count := number(world)) is not None:
            yield RankPlace(own, count, f"{rank} and {world}")


def number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


def _from_rank_table() -> Iterator[RankPlace]:
    """The place in a rank table, by the rank or by the device that this process was given."""
    name = next((name for name in TABLE if os.environ.get(name)), None)
    rank, device = number("RANK_ID"), number("DEVICE_ID")
    if name is None or (rank is None and device is None):
        return
    try:
        with open(os.environ[name], encoding="utf-8") as file:
            seats = list(_seats(json.loads(file.read(MOST))))
    except (OSError, ValueError) as error:
        raise NotComparable(f"{name} cannot be read ({type(error).__name__}: {str(error)[:100]})") from None
    world = len({seat_rank for _, _, seat_rank in seats})
    if rank is not None:
        yield RankPlace(rank, world, f"RANK_ID and {name}")
        return
    servers = {server for server, _, _ in seats}
    here = servers if len(servers) == 1 else {server for server in servers if _is_here(server)}
    mine = [seat_rank for server, own, seat_rank in seats if server in here and own == device]
    if len(mine) != 1:
        raise NotComparable(
            f"{name} has {len(mine)} ranks for DEVICE_ID {device} of this host, of its {world} ranks"
        )
    yield RankPlace(mine[0], world, f"DEVICE_ID and {name}")


def _seats(table: Any, server: str = "", rank: int | None = None) -> Iterator[tuple[str, int, int]]:
    """Server, device and rank, from a table of any version."""
    if isinstance(table, list):
        for part in table:
            yield from _seats(part, server, rank)
    elif isinstance(table, dict):
        server = str(table.get("server_id", server))
        own = str(table.get("rank_id", ""))
        rank = int(own) if own.isdigit() else rank
        device = str(table.get("device_id", ""))
        if device.isdigit() and rank is not None:
            yield server, int(device), rank
        for part in table.values():
            yield from _seats(part, server, rank)


def _is_here(server: str) -> bool:
    """Whether it is a name or an address of this host: binding to the address of another host fails."""
    if server == socket.gethostname():
        return True
    if not server.replace(".", "").isdigit() and ":" not in server:
        return False
    try:
        with socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((server, 0))
    except OSError:
        return False
    return True
