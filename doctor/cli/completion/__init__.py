"""`doctor completion SHELL`: a script that completes without starting doctor, so that a Tab is fast.

The script holds all names itself, so it matches the version of doctor that wrote it.
"""

from typing import Any

from doctor.cli.completion import bash, fish, zsh
from doctor.cli.completion.entries import SHELLS, commands

__all__ = ["SHELLS", "script"]


def script(shell: str, root: Any) -> str:
    """`root` is the context of doctor itself."""
    return "".join({"bash": bash.script, "zsh": zsh.script, "fish": fish.script}[shell](commands(root)))
