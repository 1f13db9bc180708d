"""The files and folders that the launch names, as far as a host lacks them. Nothing in them is read."""

import shlex

from doctor.api import Ask, Capture, Fact, Run, UnreadableOutput


def _ask_needed(ask: Ask) -> str:
    """By a process that nobody waits for, as with rank tables: a dead file system must not hold up others."""
    if not ask.paths:
        return ""
    looks = "\n".join(f"l {shlex.quote(path)}" for path in ask.paths)
    return f"""l() {{ [ -e "$1" ] || printf '%s\\n' "$1"; }}
( {{
echo look
{looks}
echo looked
}} 2>/dev/null 5>&- & ) | cat"""


def _missing(capture: Capture) -> tuple[str, ...]:
    lines = capture.stdout.splitlines()
    if lines and lines[-1] != "looked":
        raise UnreadableOutput("the look at the files did not end")
    return tuple(line for line in lines if line.startswith("/"))


MISSING_FILES: Fact[tuple[str, ...]] = Fact("missing-files", Run(_ask_needed), _missing, timeout=4, slow=True)
