"""What the script and the reader of its answer share: names of frames and our own exit codes."""

import os
import re

FRAME = 16
"""How many characters of the token head each frame. Only the last line has the whole token, which only the
shell itself knows. So no payload can end the answer early, even if its author saw the commands' environment.
"""


TOKEN = re.compile(rf"[0-9a-f]{{{2 * FRAME}}}")


def new_token() -> str:
    return os.urandom(FRAME).hex()


FILES = "files"
FILES_SECONDS = 10
THERE = "there"
DAMAGED = "its output arrived damaged"
NOT_STOPPED = "and could not be stopped"
"""The end of the reason why a fact is missing, if its command was abandoned."""
LAST = "clock-end"
"""The fact that is collected after all others."""
QUICK_SECONDS = 3
"""The limit of the shell that runs everything that ends by itself, before the lanes run the rest."""
SLOW_LANE_SECONDS = 15
NEEDS_ROOT = 125
"""The exit code printed for a fact that only root can read, if the probe is not root."""
NOT_HERE = 123
"""The exit code printed for a group's facts if there is nothing for them to look at."""
CANNOT_RUN = 126
"""A shell's exit code for a command that exists, but is a directory or may not be executed."""
ABSENT = "its command is not installed there"
NOT_FOUND = 127
"""A shell's exit code for a command that does not exist, and that of one whose libraries do not."""
HUNG_BEFORE = 121
"""The exit code printed for a fact that is skipped because its tool hung before."""
NO_TIME = 122
"""The exit code printed for a fact that is skipped because its group has used up its time."""
