"""What a host is asked for: which logs, how much of them, and the program that finds and prints them there.

It is Python of the host (`onhost/`): only that can read a file without anybody exchanging it meanwhile. It
comes over stdin and writes nothing. A file that is longer than its limit is cut at its beginning: what ends a
job stands at the end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from doctor.agents.bootstrap import agent_script, by_sudo, module_texts
from doctor.transport import Script

HOME = "doctor.logs.fetch.onhost"
NEEDS = "fnmatch, grp, pwd, subprocess, threading"
MEGABYTE = 1_000_000
USUAL = (
    "~/ascend/log",
    "~/slurm-*.out",
    "~/log*",
    "~/*.log",
    "/tmp/torchelastic_*",
    "/tmp/none_*/attempt_*",
    "/var/log/messages",
    "/var/log/syslog",
    "/var/log/kern.log",
)
"""Where jobs log when nobody says where."""
BESIDE = ("log*", "*.log", "slurm-*.out", "output*/log*", "outputs/*.log", "msrun_log*")
"""In the folder of a job, or in that where doctor is called: often the same folder on all hosts."""


@dataclass(frozen=True, slots=True)
class Wanted:
    paths: tuple[str, ...] = ()
    """Globs; none: the usual places."""
    minutes: int | None = None
    """Only files that were written in this time."""
    a_file: int = 8 * MEGABYTE
    a_host: int = 64 * MEGABYTE
    folders: tuple[str, ...] = ()
    """Of the job: what lies beside its program."""
    rank_user: str = ""
    """Whose logs in places for all count, beside those of the login."""

    def globs(self) -> tuple[str, ...]:
        """What is relative lies in the folder of the login."""
        if self.paths:
            return self.paths
        beside = (f"{folder.rstrip('/')}/{name}" for folder in self.folders for name in BESIDE)
        return tuple(dict.fromkeys((*beside, *USUAL)))


def fetch_script(wanted: Wanted, token: str, *, sudo: bool = False, python: str | None = None) -> Script:
    """`python` is the interpreter to prefer. `sudo`: as root where `sudo -n` allows it, else as it is."""
    script = agent_script(module_texts(HOME), f"{HOME}.agent", needs=NEEDS, python=python)
    asked = {
        "token": token,
        "globs": wanted.globs(),
        "minutes": wanted.minutes,
        "a_file": wanted.a_file,
        "a_host": wanted.a_host,
        "rank_user": wanted.rank_user,
        "kernel": not wanted.paths,
        "sudo": sudo,
    }
    stdin = script.stdin + json.dumps(asked).encode() + b"\n"
    script = replace(script, stdin=stdin, last_line=f"{token} done".encode())
    return by_sudo(script) if sudo else script
