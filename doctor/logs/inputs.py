"""The input of `doctor explain`: files and folders, stdin, or words. Opens a file only to recognise it."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from doctor.errors import InputErrors, Mistake, UsageError
from doctor.targets.inputkind import refuse_other

STDIN = "-"
NOTHING = "Give it a log: doctor explain FILE…, DIR, or - for stdin; or a name, a code, a message."
ONE = "One at a time: doctor explain FILE…, or doctor explain 'TEXT'."
HEAD = 4_000_000
"""A longer file counts as a log: no other kind of input is that long."""
_SUFFIX = re.compile(
    r"\.(?:(?:txt|out|err|gz|tgz|zip|tar|xz|bz2|zst|json|jsonl|csv|ya?ml)(?:\.\d{1,4}|\.gz)?|log[\w.*?-]*)\Z",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class LogInputs:
    """Either paths ("-" is stdin) or words."""

    paths: tuple[str, ...] = ()
    text: str = ""
    """The words, joined by single spaces; line ends inside them stay."""


def given(words: Sequence[str], *, piped: bool = False) -> LogInputs:
    """The paths or the text that the words mean; existing paths come first. `piped`: stdin is not a terminal.

    Raises UsageError if nothing was given or files and words are mixed, InputErrors for a missing path.
    """
    named = [word for word in words if word.strip()]
    if not named:
        if piped and not words:
            return LogInputs((STDIN,))
        raise UsageError("Nothing was given to explain.", NOTHING)
    there = [word for word in named if word == STDIN or _exists(word)]
    if len(there) == len(named):
        if named.count(STDIN) > 1:
            raise UsageError("- is stdin, which can be read once.")
        return LogInputs(tuple(dict.fromkeys(named)))
    lost = [word for word in named if word not in there]
    looks = [word for word in lost if _like_path(word)]
    text = " ".join(word.strip() for word in named)
    if looks and (there or len(looks) == len(named)):
        raise InputErrors([Mistake(word, None, "does not exist") for word in looks])
    if len(there) > len(lost) or STDIN in there:
        raise InputErrors([Mistake(word, None, "does not exist") for word in lost], NOTHING)
    if len(lost) == 1 and any(map(_like_path, there)):
        raise UsageError(f"{lost[0]} is not a file; a file and words cannot be explained together.", ONE)
    return LogInputs(text=text)


def refuse_inputs(paths: Sequence[str]) -> None:
    """Refuse a rank table, a hostfile, an inventory or a recording, and name the right command for it."""
    for path in paths:
        if path != STDIN:
            _refuse_input(path)


def _refuse_input(path: str) -> None:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > HEAD:
            return
        with open(path, "rb") as file:
            text = file.read(HEAD).decode("utf-8")
    except (OSError, ValueError):
        return
    refuse_other(path, text)


def _exists(word: str) -> bool:
    try:
        return os.path.lexists(word)
    except ValueError:  # a NUL
        return False


def _like_path(word: str) -> bool:
    """Whether a word was meant as a file, although none exists. A message has blanks in it."""
    rooted = word.startswith(("/", "./", "../", "~/"))
    folder = os.path.dirname(word)
    if folder not in ("", "/") and "\0" not in word and os.path.isdir(folder) and ": " not in word:
        return True
    if _SPACE.search(word):
        return rooted and ": " not in word
    return rooted or word.endswith("/") or _SUFFIX.search(word) is not None
