"""Programs that a shell runs, on a host or for the user, and tables: each is a file beside its module."""

from pathlib import Path


def host_program(module: str, name: str) -> str:
    """The text of the program `name` beside a module."""
    return Path(module).with_name(name).read_text(encoding="utf-8")
