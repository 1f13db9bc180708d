"""What a script asks: for a host that makes the script itself, and does not run what it is sent."""

from __future__ import annotations

import msgspec

from doctor.api import Ask


class ProbeQuestion(msgspec.Struct, tag="probe", frozen=True, forbid_unknown_fields=True):
    """The facts of these names. `token` heads each frame of the answer."""

    token: str
    facts: tuple[str, ...]
    ask: Ask


class MeshQuestion(msgspec.Struct, tag="mesh", frozen=True, forbid_unknown_fields=True):
    """Which hosts it reaches: what an agent of the mesh is told follows as lines."""


class SmokeQuestion(msgspec.Struct, tag="smoke", frozen=True, forbid_unknown_fields=True):
    """A short training: what its agent is told follows as lines."""


Question = ProbeQuestion | MeshQuestion | SmokeQuestion
