"""The interpreter in a command to type, if a host or a recording reports its path."""

import re

PLAIN = "python3"
_PATH = re.compile(r"/(?:[\w@%+:,.-]+/)*(?:python|pypy)[0-9.]*", re.ASCII)


def to_type(path: str) -> str:
    """The path, if it looks like that of an interpreter and has no meaning to a shell; else `python3`."""
    return path if _PATH.fullmatch(path) and ".." not in path.split("/") else PLAIN
