"""How the agent gets to a host: one command line for any login shell, the programs on stdin, nothing on disk.

Stdin carries agent.py, then bash_agent.sh, then commands. Whichever interpreter the host has reads exactly
the bytes of both programs, and leaves the commands unread for the one that it runs.
"""

from __future__ import annotations

import shlex
from functools import cache
from importlib.resources import files

from doctor.transport import Script

PYTHONS = ("python3", "/usr/libexec/platform-python", "python")
LAST_LINE = b'{"say": "bye"}'

# Prints the real interpreter behind shims and wrappers, if it is new enough and has the modules.
_WHICH = (
    "import sys, json, selectors, socket; sys.version_info >= (3, 6) and sys.stdout.write(sys.executable)"
)
# os.read, because a buffered stdin would take commands that belong to the agent's own loop.
_PYTHON = (
    "import os, sys; b = bytearray(); "
    "any(iter(lambda: b.extend(os.read(0, {both} - len(b)) or sys.exit(4)) or len(b) == {both}, None)); "
    "exec(bytes(b[:{python}]))"
)
_BASH = "LC_ALL=C; IFS=; set -f; read -r -N {python} _; read -r -N {bash} s; eval $s"
_NEITHER = '{"say": "none", "detail": "neither Python 3.6 or later nor bash was found"}'


@cache
def programs() -> tuple[bytes, bytes]:
    """The agent for Python and the one for bash."""
    here = files("doctor.mesh")
    return here.joinpath("agent.py").read_bytes(), here.joinpath("bash_agent.sh").read_bytes()


def mesh_script(python: str | None = None) -> Script:
    """Start the agent; `python` is the interpreter to prefer. Keep the session's stdin open after this."""
    python_agent, bash_agent = programs()
    sizes = {
        "python": len(python_agent),
        "bash": len(bash_agent),
        "both": len(python_agent) + len(bash_agent),
    }
    candidates = " ".join(shlex.quote(p) for p in ((python,) if python else ()) + PYTHONS)
    shell = (
        # What the login shell printed may lack its line end.
        f"echo; for p in {candidates}; do "
        f'x=$("$p" -ISBc {_quoted(_WHICH)} 2>/dev/null </dev/null) && [ -x "$x" ] '
        f'&& exec "$x" -ISBc {_quoted(_PYTHON.format(**sizes))}; done; '
        "command -v bash >/dev/null 2>&1 "
        f"&& exec bash --norc --noprofile -c {shlex.quote(_BASH.format(**sizes))}; "
        f"echo {shlex.quote(_NEITHER)}"
    )
    return Script(
        command=f"exec sh -c {shlex.quote(shell)}", stdin=python_agent + bash_agent, last_line=LAST_LINE
    )


def _quoted(code: str) -> str:
    """Double quotes read better than single ones nested in single ones; the code has nothing to escape."""
    assert not set(code) & set("\"'$`\\!\n")
    return f'"{code}"'
