"""Leaves out what a line quotes: a prompt, the answer of a model, a message in the backticks of a record."""

import re

_ASKED = (
    r"prompt|answers?|responses?|completions?|questions?|instructions?|generat(?:ed|ions?)|predict(?:ed|ions?)"
    r"|assistant|references?|chosen|rejected|query"
)
_DATA = rf"{_ASKED}|user|samples?|examples?|input|outputs?|texts?|content"
"""Keys of records: a line without a level may be what a wrapper tells of the output of its program."""
_SAYS = (
    r"^(?:User|Assistant|Human|Question|Answer|Prompt|Completion|Generated|Instruction|Q|A): .*"
    r"|^(?:[ \w]{0,60}\])? ?(?:Ignor(?:e|ed|ing)|Skip(?:ped|ping)?) .*\bmodule\b.*"
)
"""What was said to a model or by it; a module that the program goes on without."""


def _pattern(words: str, more: str = "") -> re.Pattern[str]:
    value = r"[ ]?[=:] ?(?P<quote>[\"'`]).{1,8000}?(?:(?<!\\)(?P=quote)(?=\W|$)|$)"
    return re.compile(rf"(?i)\b(?:{words})(?:[ _](?:text|tokens?))?[\"']?{value}|{_SAYS}{more}")


_LINE, _RECORD = _pattern(_ASKED), _pattern(_DATA, r"|`[^`]{1,400}`")


def unquoted(text: str, *, record: bool) -> str:
    """`record`: a logger wrote the line, at a level that is no complaint."""
    return (_RECORD if record else _LINE).sub(" ", text)
