"""Breaks text into lines of a width in cells; a Chinese character takes two.

A line may break at a space and beside any wide character, but not inside a word of Latin letters, not before
closing punctuation and not after opening punctuation.
"""

from doctor.text.late import late

_WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
_OPENING = "“‘（《「『【"
_CLOSING = "”’）》」』】，。、；：？！…％"
_PIECE = late(rf"(\s*)(?=\S)([{_OPENING}]*(?:[{_WIDE}]|[^\s{_WIDE}{_OPENING}{_CLOSING}]+)?[{_CLOSING}]*)")
_JOINED = late(rf"(?<=[{_CLOSING}])\n|\n(?=[{_OPENING}])|(?<=[{_WIDE}])\n(?=[{_WIDE}])")


def wrap(text: str, width: int) -> list[str]:
    """The lines of the text. A word that is longer than a line stays whole: it may be a path or a command."""
    lines, line = [], ""
    for space, piece in _PIECE.findall(text):
        longer = line + (" " if space and line else "") + piece
        if line and cells(longer) > width:
            lines.append(line)
            line = piece
        else:
            line = longer
    return [*lines, line]


def breaks(text: str, width: int) -> list[int]:
    """Where the lines of a paragraph begin, except the first; a blank stays at the end of the line before."""
    found: list[int] = []
    used = 0
    for piece in _PIECE.finditer(text):
        space, wide = len(piece[1]), cells(piece[2])
        if used and used + space + wide > width:
            found.append(piece.start(2))
            used = wide
        else:
            used += space + wide
    return found


def padded(text: str, width: int) -> str:
    """The text, filled with blanks up to a width in cells."""
    return text + " " * (width - cells(text))


def cells(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # imported only to show a page

    return cell_len(text)


def unwrap(paragraph: str) -> str:
    """The lines of a paragraph as one line; a line end between Chinese characters does not become a space."""
    return " ".join(_JOINED.sub("", paragraph).split())
