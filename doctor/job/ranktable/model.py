"""The nouns of rank tables: what a table contains, and what can be wrong with it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from doctor.model import Severity

Form = Literal["1.0", "1.2", "2.0", "group-list", "board-id"]
"""The version that the table states; without a version, `group-list` is the form that names pods and leaves
the ranks to HCCL (Atlas training, containers), and `board-id` is the oldest form (MindSpore 0.x)."""

FlawCheck = Literal["rank-table-invalid", "rank-table-ranks", "rank-table-grouping"]


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A place in the file. Both count from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class RankEntry:
    """One rank. A value that is absent from the file, or wrong there, is None.

    In a group list, `rank` is the number that HCCL will assign: servers in order of their ids, devices
    ascending.
    """

    rank: int | None
    server: str
    device: int | None
    spot: Spot
    addresses: tuple[str, ...] = ()
    super_device: int | None = None
    local: int | None = None
    eids: tuple[str, ...] = ()
    backup: str | None = None
    ports: Mapping[str, int] = field(default_factory=dict)

    @property
    def address(self) -> str | None:
        """The address of the device as it is written; in form 2.0, the first one that is IPv4 or IPv6."""
        return self.addresses[0] if self.addresses else None


@dataclass(frozen=True, slots=True)
class Server:
    """The ranks of one server, in file order. `id` is empty if the file gives none.

    Form 2.0 has no servers: there it is the instance of network layer 0, which lies within one server.
    """

    id: str
    host_ip: str | None
    entries: tuple[RankEntry, ...]
    spot: Spot
    super_pod: str | None = None

    @property
    def devices(self) -> tuple[int, ...]:
        return tuple(sorted({entry.device for entry in self.entries if entry.device is not None}))


@dataclass(frozen=True, slots=True)
class StatedCount:
    """A number that the file states about itself, and the real number."""

    name: str
    said: int
    found: int
    things: str
    spot: Spot


@dataclass(frozen=True, slots=True)
class SuperPod:
    id: str
    servers: tuple[str, ...]
    spot: Spot


@dataclass(frozen=True, slots=True)
class RankTable:
    """The contents of a rank table. `status` is empty if not given; `nics` are para_plane_nic_name."""

    form: Form
    status: str
    servers: tuple[Server, ...]
    board_id: str | None
    text: str
    counts: tuple[StatedCount, ...] = ()
    super_pods: tuple[SuperPod, ...] = ()
    nics: tuple[str, ...] = ()
    chip: bool = False
    """Whether chip_info says that it is for Atlas training."""

    @property
    def ranks(self) -> int:
        return sum(len(server.entries) for server in self.servers)

    @property
    def entries(self) -> tuple[RankEntry, ...]:
        """In rank order; those without a rank come last."""
        return tuple(sorted(self.in_file_order(), key=lambda entry: (entry.rank is None, entry.rank or 0)))

    @property
    def server_ids(self) -> tuple[str, ...]:
        """The servers in the order of their lowest ranks."""
        return tuple(dict.fromkeys(entry.server for entry in self.entries if entry.server))

    def hosts(self) -> tuple[tuple[str, str | None, tuple[int, ...]], ...]:
        """Server id, host address and devices of each server, in the order of `server_ids`."""
        addresses: dict[str, str | None] = {}
        devices: dict[str, set[int]] = {}
        for server in self.servers:
            addresses[server.id] = addresses.get(server.id) or server.host_ip
            devices.setdefault(server.id, set()).update(server.devices)
        return tuple((id, addresses[id], tuple(sorted(devices[id]))) for id in self.server_ids)

    def in_file_order(self) -> Iterator[RankEntry]:
        for server in self.servers:
            yield from server.entries


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong, and where. `message` names no server; `actual` is short and safe to print."""

    check: FlawCheck
    message: str
    expected: str
    actual: str
    spot: Spot | None
    server: str | None = None
    rank: int | None = None
    device: int | None = None
    severity: Severity = Severity.FAIL


BOARDS = {"x86_64": "0x0000", "aarch64": "0x0020"}
"""As in MindSpore's tutorials; its launch scripts write 0x002f for aarch64."""

_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,8}")
_UNCOMPARED = 0xF
"""HCCL ignores the last four bits when it compares board ids."""


def board_architecture(board_id: str | None) -> str | None:
    """The architecture of a board; None for other boards, such as evaluation boards and inference cards."""
    if board_id is None or not _HEX.fullmatch(board_id):
        return None
    family = int(board_id, 16) & ~_UNCOMPARED
    return next((name for name, board in BOARDS.items() if int(board, 16) == family), None)
