"""The request to a host: which logs, how much of them, and the program that finds and prints them there.

The program (`onhost/`) is Python, because a shell cannot make sure that nobody exchanges a file while it is
read. It arrives on stdin and writes nothing. A file over its limit loses its beginning: the end shows what
ended the job.
"""

import json
from dataclasses import dataclass, field, replace

from doctor.agents.bootstrap import agent_script, by_sudo, module_texts
from doctor.text.hostprogram import table
from doctor.transport import Script
from doctor.transport.question import LogsQuestion
from doctor.transport.slurm.squeue import JobOutput

HOME = "doctor.logs.fetch.onhost"
NEEDS = "fnmatch, grp, pwd, subprocess, threading"
MEGABYTE = 1_000_000
USUAL, BESIDE = table(__file__, "places.txt")


@dataclass(frozen=True, slots=True)
class LogRequest:
    paths: tuple[str, ...] = ()
    """Globs; if empty, the usual places."""
    minutes: float | None = None
    """Only files written within so many minutes; None: any file."""
    a_file: int = 8 * MEGABYTE
    a_host: int = 64 * MEGABYTE
    folders: tuple[str, ...] = ()
    """The folders of the job, in which its program may have written logs."""
    output: JobOutput = field(default_factory=JobOutput)
    """The files of the job itself, which must exist and may have any age. Its host reads them; others may see
    them too, and leave them to it.
    """
    rank_user: str = ""
    """A user whose logs in world-writable places are read too, like those of the login."""
    kernel: bool = False
    """The log of the kernel, too, which is read in any case if no paths are given."""

    def globs(self) -> tuple[str, ...]:
        """The patterns to look for; relative ones start in the home of the login."""
        if self.paths:
            return self.paths
        beside = (f"{folder.rstrip('/')}/{name}" for folder in self.folders for name in BESIDE)
        return tuple(dict.fromkeys((*beside, *USUAL)))


def fetch_script(
    wanted: LogRequest, token: str, host: str = "", *, sudo: bool = False, python: str | None = None
) -> Script:
    """`python` is the preferred interpreter. `sudo`: run as root if `sudo -n` allows it."""
    script = agent_script(module_texts(HOME), f"{HOME}.agent", needs=NEEDS, python=python)
    asked = {
        "token": token,
        "globs": wanted.globs(),
        "outputs": wanted.output.files,
        "reads_outputs": host == wanted.output.host,
        "minutes": wanted.minutes,
        "a_file": wanted.a_file,
        "a_host": wanted.a_host,
        "rank_user": wanted.rank_user,
        "kernel": wanted.kernel or not wanted.paths,
        "sudo": sudo,
    }
    stdin = script.stdin + json.dumps(asked).encode() + b"\n"
    question = LogsQuestion(token, host)
    script = replace(script, stdin=stdin, last_line=f"{token} done".encode(), question=question)
    return by_sudo(script) if sudo else script
