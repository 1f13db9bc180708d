"""Programs that a shell runs, on a host or for the user: each is a file beside the module that sends it."""

from pathlib import Path


def host_program(module: str, name: str) -> str:
    """The text of the program `name` beside a module."""
    return Path(module).with_name(name).read_text(encoding="utf-8")
