"""The launchers that the controller sends to the agents of `doctor hang`."""

from doctor.job.launch.brief import brief
from doctor.live.onhost.launchers import Launchers

KNOWN = Launchers(brief())
