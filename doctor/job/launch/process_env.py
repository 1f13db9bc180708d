"""What one process was told, and how such processes make up a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcessEnv:
    """What one process was told: a rank, an agent such as torchrun, a scheduler.

    `env` holds variables that matter to a job and no others; secrets are hidden, in `command` too. `host` is
    the name as the run has it. Where `whole` is false, a variable that is not in `env` may be set all the
    same: a script does not show what it inherits. A command in a `loop` stands for several processes.
    """

    source: str
    host: str | None
    env: Mapping[str, str]
    command: tuple[str, ...] = ()
    whole: bool = True
    loop: bool = False
    pid: int | None = None
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """Processes that belong to one job. `complete`: every rank that exists should be among `told`.

    `live`: they run right now, so that what is not seen does not run where it was looked for.
    """

    name: str
    told: tuple[ProcessEnv, ...]
    complete: bool
    live: bool = False
