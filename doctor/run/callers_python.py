"""The interpreter of the environment that the doctor was called in: hosts often have it at the same path."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from doctor.text.interpreter import to_type

SYSTEM = ("/usr", "/usr/local")
OF_ALL = ("/tmp/", "/var/tmp/", "/dev/shm/")
"""Where others could have put a program of that name on a host."""


def own_interpreters(environ: Mapping[str, str], prefix: str = sys.prefix) -> tuple[str, ...]:
    """The activated environment first, then the doctor's own."""
    folders = (environ.get("VIRTUAL_ENV", ""), environ.get("CONDA_PREFIX", ""), prefix)
    paths = (f"{folder.rstrip('/')}/bin/python" for folder in folders if folder and folder not in SYSTEM)
    safe = (path for path in paths if to_type(path) == path and not path.startswith(OF_ALL))
    return tuple(dict.fromkeys(safe))
