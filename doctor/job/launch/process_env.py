"""What one process was told, and how such processes make up a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seat:
    """What the rank table says of a process that was told its device alone.

    `ranks` are those of its server, by their devices; `rank` is None where that has no such device.
    """

    rank: int | None
    world: int
    ranks: Mapping[int, int]
    path: str


@dataclass(frozen=True, slots=True)
class ProcessEnv:
    """What one process was told: a rank, an agent such as torchrun, a scheduler.

    `env` holds variables that matter to a job and no others; secrets are hidden, in `command` too. `host` is
    the name as the run has it. Where `whole` is false, a variable that is not in `env` may be set all the
    same: a script does not show what it inherits. A command in a `loop` stands for several processes. Its
    relative paths start from `folder`, where that is known; what lies below `home`, the folder of the script,
    may lie elsewhere on the hosts. `unknown` are variables that the script sets to what is not known, and
    `seat` is only known once the rank table is. `share` is how many ranks its launcher starts on a host,
    by the hosts that it is given; 0 where those are in a file that is not here, or are not alike.
    `behind`: its script starts it only once another rank has ended.
    """

    source: str
    host: str | None
    env: Mapping[str, str]
    command: tuple[str, ...] = ()
    whole: bool = True
    loop: bool = False
    pid: int | None = None
    parent: int | None = None
    folder: str | None = None
    home: str | None = None
    seat: Seat | None = None
    unknown: tuple[str, ...] = ()
    share: int | None = None
    behind: bool = False


@dataclass(frozen=True, slots=True)
class TableBeside:
    """A rank table that lies beside the script, at `path`, and which ranks look for elsewhere, in vain.

    `said` is the variable, `text` what it holds, `folders` where the script has gone by then.
    """

    path: str
    said: str
    text: str
    folders: tuple[str, ...]
    script: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Processes that belong to one job. `complete`: every rank that exists should be among `told`.

    `live`: they run right now, so that what is not seen does not run where it was looked for. `asked`: it has
    been started and the run is about it, so that what its processes hold is rightly theirs. `beside`: the
    rank tables that its script leaves behind. `unread`: what of it could not be read.
    """

    name: str
    told: tuple[ProcessEnv, ...]
    complete: bool
    live: bool = False
    asked: bool = False
    beside: tuple[TableBeside, ...] = ()
    unread: tuple[str, ...] = ()
