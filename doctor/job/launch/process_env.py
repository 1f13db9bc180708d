"""The environment and command of one process of a job, and how such processes form a launch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from doctor.job.launch.endpoint_mentions import EndpointMention
from doctor.job.launch.marks import Mark
from doctor.job.launch.slips import ByHost, Slip


@dataclass(frozen=True, slots=True)
class TableSeat:
    """What the rank table says about a process that was given only its device.

    `ranks` are those of its server, by device; `rank` is None if the server has no such device.
    """

    rank: int | None
    world: int
    ranks: Mapping[int, int]
    path: str


@dataclass(frozen=True, slots=True)
class ProcessEnv:
    """What one process was given: a rank, an agent such as torchrun, or a scheduler.

    `env` holds only variables that matter to a job; secrets are hidden, in `command` too. `host` is the
    host's name in this run. If `whole` is false, a variable that is not in `env` may still be set, because a
    script does not show what it inherits. A command in a `loop` stands for several processes. Relative paths
    start from `folder`, if it is known; what lies below `home`, the folder of the script, may have another
    place on the hosts. `unknown` are variables that the script sets to unknown values; `seat` is known only
    after the rank table has been read. `share` is how many ranks its launcher starts on a host, according to
    the hosts it is given; 0 if these are in a file that is not here, or differ. `hosts` are those that its
    options or its hostfile name, each with the most ranks that it starts there, 0 if that is not known;
    `hosts_change`: what its script runs before may write this file. `hostless`: it needs hosts, and nothing
    that was read gives it any. `apart`: it may run in a container or on another host than its script,
    as on the one to which ssh goes (`on`).
    `behind`: its script starts it only after another rank has ended. `chosen`: its script starts it in one
    branch of a choice only, or has a line, a part of its line or a task of an array for each host. `marks`
    are the words of its script that mean accelerators of one vendor.
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
    seat: TableSeat | None = None
    unknown: tuple[str, ...] = ()
    share: int | None = None
    hosts: Mapping[str, int] = field(default_factory=dict)
    hosts_change: bool = False
    hostless: bool = False
    behind: bool = False
    chosen: bool = False
    apart: bool = False
    on: str = ""
    marks: tuple[Mark, ...] = ()
    over_gloo: bool = False


@dataclass(frozen=True, slots=True)
class NearbyTable:
    """A rank table beside the script, at `path`, although the ranks look for it in other folders.

    `said` is the variable, `text` its value. `folders` are those in which the script starts the ranks.
    """

    path: str
    said: str
    text: str
    folders: tuple[str, ...]
    script: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Processes that belong to one job. `complete`: every rank that exists should be among `told`.

    `live`: the processes run now, and hold their resources; ranks that were not seen may have ended, or come
    later. `beside`: the rank tables that its script leaves behind. `unread`: the parts of it that could not
    be read, and other jobs. `met`: its ranks have found each other. `mentioned`: the ports and addresses in
    its text, used or not. `slips`: what its scripts say otherwise than it is meant. `sizes`: those of the
    model and its groups, by the keys of a parallel plan. `needs`: the paths that every host must have,
    and `configs` those of its launchers' configurations. `scheduled`: a scheduler chooses its hosts.
    `by_host`: the numbers that it gives hosts by their names.
    """

    name: str
    told: tuple[ProcessEnv, ...]
    complete: bool
    live: bool = False
    beside: tuple[NearbyTable, ...] = ()
    unread: tuple[str, ...] = ()
    met: bool = False
    mentioned: tuple[EndpointMention, ...] = ()
    slips: tuple[Slip, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    scheduled: bool = False
    by_host: ByHost | None = field(default=None, compare=False, repr=False)

    @property
    def python(self) -> str | None:
        """The interpreter of all its ranks, if it names one."""
        named = {slip.path for slip in self.slips if slip.kind == "python"}
        return named.pop() if len(named) == 1 else None
