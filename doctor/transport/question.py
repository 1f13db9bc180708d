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


Question = ProbeQuestion | MeshQuestion | SmokeQuestion
