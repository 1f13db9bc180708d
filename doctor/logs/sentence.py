"""The sentence of a line is the line without its numbers: a log repeats few sentences with other numbers."""

CHANGING = b"0123456789 \t\r.,+-"
"""The bytes that are removed from a line to get its sentence. If the sentence of a word is not in the
sentence of a line, the word is not in the line."""


def sentence(line: bytes) -> bytes:
    """The sentence of one line, or of several lines with their line ends."""
    return line.translate(None, CHANGING)
