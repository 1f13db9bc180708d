"""The frameworks that can train, each with its side: a module of functions. Python 3.6 and later.

- `MODULE`: what its ranks need, which is imported before they are forked. Its function
  `framework_of(backend, local, number) -> Framework` gives what a rank uses, by its place on the host and the
  number of its device, if it was given one.
- `load() -> str`: import the framework, without starting a thread, and return its version.
- `meetings(worlds) -> list`: one item for each process with which ranks meet; `worlds` are the numbers of
  ranks of the cells.
- `serve(address, timeout, meeting, say)`: be such a process, and never return. `say(port, cell)` names the
  port of one cell, or of all if `cell` is None.
"""

import importlib
from typing import Any

SIDES = {"torch": "torch_side", "mindspore": "mindspore_side"}
"""Framework -> its module."""


def side(framework: str) -> Any:
    return importlib.import_module("doctor.smoke.onhost." + SIDES[framework])
