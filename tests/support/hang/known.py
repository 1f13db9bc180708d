"""The launchers that agents of `doctor hang` are told of."""

from __future__ import annotations

from doctor.hang.onhost.launchers import Launchers
from doctor.job.launch.brief import brief

KNOWN = Launchers(brief())
