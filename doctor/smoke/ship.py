"""How the smoke run gets to a host: one command line for any login shell, our modules on stdin."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from doctor.mesh.script import PYTHONS
from doctor.smoke.onhost import bundle
from doctor.transport import Script

LAST_LINE = b'{"say":"bye"}'

# Prints the real interpreter behind shims and wrappers, if it is new enough and has the modules.
_WHICH = (
    "import sys, base64, ctypes, fcntl, json, mmap, resource, select, zlib; "
    "sys.version_info >= (3, 6) and sys.stdout.write(sys.executable)"
)
_NEITHER = '{"say":"trouble","text":"no Python 3.6 or later was found"}'


@cache
def sources() -> Mapping[str, str]:
    """Every module that runs on hosts: its name and its text."""
    folder = files("doctor.smoke.onhost")
    return {
        entry.name[:-3]: entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".py") and entry.name != "__init__.py"
    }


def smoke_script(python: str | None = None, modules: Mapping[str, str] | None = None) -> Script:
    """Start the agent; `python` is the interpreter to prefer. Keep the session's stdin open after this.

    `modules` replaces the text of some of the modules.
    """
    program, head = bundle.pack({**sources(), **(modules or {})})
    candidates = " ".join(shlex.quote(p) for p in ((python,) if python else ()) + PYTHONS)
    shell = (
        # What the login shell printed may lack its line end.
        f"echo; for p in {candidates}; do "
        f'x=$("$p" -ISBc {_quoted(_WHICH)} 2>/dev/null </dev/null) && [ -x "$x" ] '
        f'&& exec "$x" -ISBc {_quoted(bundle.reader(program, head))} agent; done; '
        f"echo {shlex.quote(_NEITHER)}; echo {shlex.quote(LAST_LINE.decode())}"
    )
    return Script(command=f"exec sh -c {shlex.quote(shell)}", stdin=program, last_line=LAST_LINE)


def _quoted(code: str) -> str:
    """Double quotes read better than single ones nested in single ones; the code has nothing to escape."""
    assert not set(code) & set("\"'$`\\!\n")
    return f'"{code}"'
