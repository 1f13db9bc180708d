"""What the script and the reader of its answer agree on: names of frames, exit codes of our own."""

import re
import secrets

FRAME = 16
"""So much of a token heads each frame. The last line has all of it, which only the shell itself knows: no
payload can end the answer early, even if it was made by someone who saw the environment of the commands.
"""


TOKEN = re.compile(rf"[0-9a-f]{{{2 * FRAME}}}")


def new_token() -> str:
    return secrets.token_hex(FRAME)


FILES = "files"
FILES_SECONDS = 10
THERE = "there"
DAMAGED = "its output arrived damaged"
NOT_STOPPED = "and could not be stopped"
"""Ends the reason for a fact whose command was given up."""
LAST = "clock-end"
"""The fact to ask for when all others are in."""
QUICK_SECONDS = 3
"""For the shell that asks everything that ends by itself, before the lanes ask what is missing."""
SLOW_LANE_SECONDS = 15
NEEDS_ROOT = 125
"""Printed as the exit code of a fact that only root can have, when the probe is not root."""
NOT_HERE = 123
"""Printed as the exit code of a group's facts where there is nothing for them to look at."""
NOT_INSTALLED = (126, 127)
"""What a shell says of a command that is not there or cannot be run."""
HUNG_BEFORE = 121
"""Printed as the exit code of a fact that is not asked because its tool hung before."""
NO_TIME = 122
"""Printed as the exit code of a fact for which its group left no time."""
