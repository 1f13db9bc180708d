"""The probe: facts -> one script for a host (`script`), and the host's answer -> captures (`read`)."""

from doctor.probe.answer import HostAnswer, read
from doctor.probe.ask import script, through
from doctor.probe.frames import ABSENT, DAMAGED, NOT_STOPPED, TOKEN, new_token
