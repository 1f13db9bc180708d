"""`doctor completion SHELL`: a script that completes without starting doctor, so that a Tab takes no time.

All that it knows stands in it, so it is as new as the doctor that wrote it.
"""

from __future__ import annotations

from typing import Any

from doctor.cli.completion import bash, fish, zsh
from doctor.cli.completion.known import SHELLS, commands

__all__ = ["SHELLS", "script"]


def script(shell: str, root: Any) -> str:
    """`root` is the context of doctor itself."""
    write = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}[shell]
    return "".join(write(commands(root)))
