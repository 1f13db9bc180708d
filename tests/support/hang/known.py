"""The launchers that the controller sends to the agents of `doctor hang`."""

from __future__ import annotations

from doctor.hang.onhost.launchers import Launchers
from doctor.job.launch.brief import brief

KNOWN = Launchers(brief())
