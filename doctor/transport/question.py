"""What a script asks, for a host that builds the script itself and does not run what it is sent."""

import msgspec

from doctor.api import Ask


class ProbeQuestion(msgspec.Struct, tag="probe", frozen=True, forbid_unknown_fields=True):
    """The facts with these names. `token` heads each frame of the answer."""

    token: str
    facts: tuple[str, ...]
    ask: Ask


class MeshQuestion(msgspec.Struct, tag="mesh", frozen=True, forbid_unknown_fields=True):
    """Which hosts it reaches; the commands for the mesh agent follow as lines."""


class SmokeQuestion(msgspec.Struct, tag="smoke", frozen=True, forbid_unknown_fields=True):
    """A short training; the commands for its agent follow as lines."""


class LookQuestion(msgspec.Struct, tag="look", frozen=True, forbid_unknown_fields=True):
    """What its processes do; the commands for the agent of `doctor hang` or `doctor slow` follow as lines."""


class LogsQuestion(msgspec.Struct, tag="logs", frozen=True, forbid_unknown_fields=True):
    """Its logs, where its own options say that they are. `host` is its name among the hosts of the run."""

    token: str
    host: str


Question = ProbeQuestion | MeshQuestion | SmokeQuestion | LookQuestion | LogsQuestion
