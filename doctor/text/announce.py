"""Lines of our own on stderr, in the language that is spoken."""

from collections.abc import Callable

from doctor.text.printable import clean_line
from doctor.text.speech import t
from doctor.text.terminal import tell


def announce(text: str, tell: Callable[[str], object] = tell) -> None:
    tell(f"doctor: {clean_line(t(text))}\n")
