"""The parts of a command line that a shell takes for a file name pattern."""

import re

WORD = re.compile(
    r"""'[^']*' | "(?:\\.|[^"\\])*" | \\. | \$\{[^}]*\} | (?P<comment>(?<!\S)\#.*) | (?P<bare>.)""", re.X
)
PATTERN = re.compile(r"[\w.@-]\[[^\]\s]+\]|(?<!\S)\[\d[^\]\s]*\]")


def bare_brackets(line: str) -> list[str]:
    """Node sets without quotes: zsh refuses them, and bash may replace them by file names."""
    bare = "".join(found["bare"] or ("" if found["comment"] else "_") for found in WORD.finditer(line))
    return PATTERN.findall(bare)
