"""Four hosts, two of them sick in different ways, and what `doctor check` reports about them."""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from .lab import Lab

WIDE = {"COLUMNS": "90"}


def examine(also: str = "en") -> tuple[int, str, str]:
    """The exit code of the examination, and its output in a terminal of 90 columns, without the lab's own
    ssh_config: a reader has one in its usual place. Then the output of its replay in another language.
    """
    with Lab(4) as lab, TemporaryDirectory() as folder:
        lab["node2"].shm("64m")
        lab["node3"].ufw_enable("allow 22/tcp")
        saved = str(Path(folder) / "run.json")
        done = lab.doctor("check", "node[1-4]", "--save", saved, env=WIDE)
        replay = [sys.executable, "-m", "doctor", "check", "--replay", saved, "--lang", also]
        again = lab.run(replay, env=WIDE)
    said = [re.sub(r" --ssh-config \S+", "", each.stdout) + each.stderr for each in (done, again)]
    shown, other = (f"$ doctor check 'node[1-4]'\n{text}$ echo $?\n{done.returncode}\n" for text in said)
    return done.returncode, shown, other
