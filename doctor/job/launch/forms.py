"""How a launch is printed: what is known of it, and what each form makes of that."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from doctor.model import Backend

NODE_RANK, RANKS_HERE = "$NODE_RANK", "$NPROC_PER_NODE"
"""What only the shell of each host can fill in."""


@dataclass(frozen=True, slots=True)
class Go:
    """The hosts of a go, the head first, the others in rank order."""

    hosts: tuple[str, ...]
    spares: tuple[str, ...]
    left_out: tuple[str, ...]
    ranks: Mapping[str, int]
    address: str
    """Of the head, for the ranks."""
    port: int
    notes: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        return self.hosts[0]

    @property
    def each(self) -> int | None:
        """The ranks of a host; None where hosts differ."""
        counts = {self.ranks[host] for host in self.hosts}
        return counts.pop() if len(counts) == 1 else None

    @property
    def world(self) -> int:
        return sum(self.ranks[host] for host in self.hosts)


@dataclass(frozen=True, slots=True)
class LaunchParts:
    """What a launch line is made of. `hostfile` is one that holds these hosts with their ranks, if there is
    one; `tasks` are those of each node, as the allocation has them."""

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
    """By what `--print launch` chooses: the hosts that go, this process's variables, and those of the job."""

    hosts: Sequence[str]
    environ: Mapping[str, str]
    env: Mapping[str, str]
    framework: str | None
    backend: Backend


@dataclass(frozen=True, slots=True)
class Form:
    """One way to print the launch. `fits` is when it is chosen unless another one was asked for.

    `order`: the launcher numbers the hosts itself, in this order of the hosts that are given.
    """

    lines: Callable[[LaunchParts], list[str]]
    fits: Callable[[Choice], bool] = lambda _: False
    order: Callable[[Sequence[str], Mapping[str, str]], tuple[str, ...]] = lambda *_: ()


def shell_line(*words: str) -> str:
    """Every word quoted but for the variables that the shell of each host fills in."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    name, equals, value = word.partition("=")
    if value in (NODE_RANK, RANKS_HERE):
        return f"{shlex.quote(name)}{equals}{value}"
    return shlex.quote(word)
