"""Leaves out what a line quotes: a prompt, the answer of a model, a message in the backticks of a record."""

import re

_WORDS = (
    r"prompt|answers?|responses?|completions?|questions?|instructions?|generat(?:ed|ions?)|predict(?:ed|ions?)"
    r"|assistant|user|references?|chosen|rejected|query|samples?|examples?|input|outputs?|texts?|content"
)
_SAID = re.compile(
    rf"(?i)\b(?:{_WORDS})(?:[ _](?:text|tokens?))?[\"']? ?[=:] ?(?P<quote>[\"'`])"
    r".{1,4000}?(?:(?<!\\)(?P=quote)(?=\W|$)|$)"
    r"|^(?:User|Assistant|Human|Question|Answer|Prompt|Completion|Generated|Instruction|Q|A): .*"
)
_BACKTICKS = re.compile(r"`[^`]{1,400}`")


def unquoted(text: str, *, record: bool) -> str:
    """`record`: a logger wrote the line, at a level that is no complaint."""
    text = _SAID.sub(" ", text)
    return _BACKTICKS.sub(" ", text) if record else text
