"""A line without what changes: the lines of a log are few sentences, with one number or another."""

from __future__ import annotations

CHANGING = b"0123456789 \t\r.,+-"
"""What is left out of a line to get its sentence. What leaves it out of a line leaves it out of a word that
stands in the line, too: a word whose sentence is not in that of the line is not in the line."""


def sentence(line: bytes) -> bytes:
    """Of one line, or of many with their line ends."""
    return line.translate(None, CHANGING)
