"""Four hosts, two of them sick in different ways, and what `doctor check` reports about them."""

from __future__ import annotations

import re

from .lab import Lab


def examine() -> tuple[int, str]:
    """The exit code of the examination, and its output in a terminal of 90 columns, without the lab's own
    ssh_config: a reader has one in its usual place.
    """
    with Lab(4) as lab:
        lab["node2"].shm("64m")
        lab["node3"].ufw_enable("allow 22/tcp")
        done = lab.doctor("check", "node[1-4]", env={"COLUMNS": "90"})
        said = re.sub(r" --ssh-config \S+", "", done.stdout)
        shown = f"$ doctor check 'node[1-4]'\n{said}{done.stderr}$ echo $?\n{done.returncode}\n"
        return done.returncode, shown
