"""How a launch is printed: what is known about it, and how each form prints it."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from doctor.model import Backend

NODE_RANK, RANKS_HERE = "$NODE_RANK", "$NPROC_PER_NODE"
"""Variables that only the shell of each host can fill in."""


@dataclass(frozen=True, slots=True)
class Go:
    """The hosts that start the job: the head first, the others in rank order."""

    hosts: tuple[str, ...]
    spares: tuple[str, ...]
    left_out: tuple[str, ...]
    ranks: Mapping[str, int]
    address: str
    """The head's address for the ranks."""
    port: int
    notes: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        return self.hosts[0]

    @property
    def each(self) -> int | None:
        """The ranks per host; None if hosts differ."""
        counts = {self.ranks[host] for host in self.hosts}
        return counts.pop() if len(counts) == 1 else None

    @property
    def world(self) -> int:
        return sum(self.ranks[host] for host in self.hosts)


@dataclass(frozen=True, slots=True)
class LaunchParts:
    """What a launch line is made of. `hostfile` is a file with exactly these hosts and ranks, if there is
    one; `tasks` is the number of tasks per node in the allocation."""

    going: Go
    id: str = "doctor"
    hostfile: Path | None = None
    tasks: int | None = None

    @property
    def node(self) -> str:
        return NODE_RANK if len(self.going.hosts) > 1 else "0"

    @property
    def ranks_here(self) -> str:
        return str(self.going.each or RANKS_HERE)


@dataclass(frozen=True, slots=True)
class Choice:
    """What `--print launch` depends on: the hosts, this process's variables, and the variables of the job."""

    hosts: Sequence[str]
    environ: Mapping[str, str]
    env: Mapping[str, str]
    framework: str | None
    backend: Backend


@dataclass(frozen=True, slots=True)
class LaunchForm:
    """One way to print the launch. `fits` tells whether it is chosen by default.

    `order`: the order in which the launcher itself numbers the given hosts.
    """

    lines: Callable[[LaunchParts], list[str]]
    fits: Callable[[Choice], bool] = lambda _: False
    order: Callable[[Sequence[str], Mapping[str, str]], tuple[str, ...]] = lambda *_: ()


def shell_line(*words: str) -> str:
    """One line with every word quoted, except for the variables that the shell of each host fills in."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    name, equals, value = word.partition("=")
    if value in (NODE_RANK, RANKS_HERE):
        return f"{shlex.quote(name)}{equals}{value}"
    return shlex.quote(word)
