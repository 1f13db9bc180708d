"""How the job's interpreter is asked for its packages: the one that was named, or the first that has torch.

Where none was named, one without torch gives way to one that has it, by exec: that costs no process.
"""

from __future__ import annotations

import shlex
from functools import cache
from importlib.resources import files

from doctor.api import Ask

MOST = 8
"""Interpreters that a host may tell of."""
PLAIN = ("python3", "python")


@cache
def _look() -> str:
    """`-B`: nothing is written."""
    return f"-B -c {shlex.quote((files('doctor.facts') / 'look.py').read_text(encoding='utf-8'))}"


def ask_python(ask: Ask) -> str:
    if ask.python:
        python = shlex.quote(ask.python)
        others = shlex.join(ask.pythons or ())
        absent = f"{{ echo absent {python}; {_first(PLAIN, f'absent {others}')}; exit; }}"
        return f"command -v {python} >/dev/null || {absent}; exec {python} {_look()} list {others}"
    mode = "plain" if ask.pythons is None else 'search "$@"'
    return f"{_first((*(ask.pythons or ()), *PLAIN), mode)}; echo absent python3"


def _first(names: tuple[str, ...], words: str) -> str:
    """Becomes the first of them that is there; "$@" are those behind it."""
    each = f'p=$1; shift; command -v "$p" >/dev/null && exec "$p" {_look()} {words}'
    return f"set -- {' '.join(map(shlex.quote, names))}; while [ $# != 0 ]; do {each}; done"
