"""The files and folders that the launch names, as a host has them. Nothing in them is read."""

import shlex
from collections.abc import Mapping

from doctor.api import Ask, Capture, Fact, Run, UnreadableOutput
from doctor.text.hostprogram import host_program

_LOOK = host_program(__file__, "needed.sh")


def _ask_needed(ask: Ask) -> str:
    """By a process that nobody waits for, as with rank tables: a dead file system must not hold up others."""
    if not ask.paths:
        return ""
    looks = "\n".join(f"l {shlex.quote(path)}" for path in ask.paths)
    return _LOOK.replace("@looks@", looks)


def _states(capture: Capture) -> Mapping[str, str]:
    lines = capture.stdout.splitlines()
    if lines and lines[-1] != "looked":
        raise UnreadableOutput("the look at the files did not end")
    found = (line.partition("/") for line in lines if "/" in line)
    return {f"/{path}": state.strip() or "missing" for state, _, path in found}


NEEDED_FILES: Fact[Mapping[str, str]] = Fact("missing-files", Run(_ask_needed), _states, timeout=4, slow=True)
"""Path -> "missing", also with a colon and the names that begin and end like it if its folder is there, "not
readable", "a folder", "empty", or "not executable", which only a program must be; others are usable files.
"""
