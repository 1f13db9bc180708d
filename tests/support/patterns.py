"""What of a command line a shell takes for a pattern of file names."""

from __future__ import annotations

import re

WORD = re.compile(
    r"""'[^']*' | "(?:\\.|[^"\\])*" | \\. | \$\{[^}]*\} | (?P<comment>(?<!\S)\#.*) | (?P<bare>.)""", re.X
)
PATTERN = re.compile(r"[\w.@-]\[[^\]\s]+\]|(?<!\S)\[\d[^\]\s]*\]")


def bare_brackets(line: str) -> list[str]:
    """Node sets that no quotes protect: zsh refuses them, and bash may put names of files in their place."""
    bare = "".join(found["bare"] or ("" if found["comment"] else "_") for found in WORD.finditer(line))
    return PATTERN.findall(bare)
