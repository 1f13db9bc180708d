"""How many turns a loop of a script has, and with which values."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from doctor.job.launch.arithmetic import evaluate
from doctor.job.launch.expand import MOST_TURNS, Value, Values, in_numbers, turns
from doctor.job.launch.shell_blocks import SimpleCommand
from doctor.job.launch.shell_tokens import Word

_INIT = re.compile(r"\s*([A-Za-z_]\w{0,99})\s*=(?!=)")
_ASSIGNED = re.compile(r"([A-Za-z_]\w{0,199})(?:\+?=|\+\+|--)")


@dataclass(frozen=True, slots=True)
class LoopTurns:
    """The turns of a loop. `left` is the value of the variable after the loop. `name` may be several, for the
    words of a line, which stand between blanks or `by`.
    """

    name: str
    values: tuple[str, ...]
    left: Value
    by: str | None = None


def turns_of(words: Sequence[Word], values: Values) -> tuple[LoopTurns | None, list[Word]]:
    """The turns, if they are known, and the words after the head of the loop."""
    if words[0].plain in ("while", "until"):
        return None, list(words[1:])
    head = words[1].parts[0].raw if len(words) > 1 and words[1].parts else ""
    if head.startswith("(("):
        rest = words[3:] if len(words) > 2 and words[2].plain == "do" else words[2:]
        return _counted_turns(head[2:-2], values), list(rest)
    name = words[1].plain if len(words) > 1 else None
    if not name or len(words) < 3 or words[2].plain != "in":
        return None, []
    found = turns(words[3:], values)
    return (LoopTurns(name, found, found[-1]) if found else None), []


def lines_of(head: Sequence[Word], text: str | None) -> LoopTurns | None:
    """The turns of `while IFS= read -r host slots`, whose input is this text."""
    words = [word.plain or "$" for word in head if not word.raw.startswith("IFS=")]
    names = [word for word in words[1:] if word[:1] != "-"]
    plain = (
        words[:1] == ["read"] and {word for word in words if word[:1] == "-"} <= {"-r"} and "$" not in words
    )
    by = next((word.raw[4:] for word in head if word.raw.startswith("IFS=")), " ")
    known = plain and names and text is not None and (by in (" ", "\\n") or len(by) < 2)
    if not known or text is None or (by == "" and len(names) > 1) or (by == " " and "\t" in text):
        return None
    lines = text.split("\n")[:-1]  # `read` fails at a last line without an end
    if by in (" ", "", "\\n"):
        values = tuple(line.strip() if by == " " else line for line in lines)
        return LoopTurns(" ".join(names), values, "")
    odd = any(line.count(by) >= len(names) for line in lines)  # the last one has more than one word
    return None if odd else LoopTurns(" ".join(names), tuple(lines), "", by)


def counter_of(test: Sequence[Word], body: Iterable[SimpleCommand]) -> str:
    """The first variable in the test of a `while` that its body counts."""
    named = re.findall(r"[A-Za-z_]\w{0,99}", " ".join(word.raw for word in test))
    counted = carried(body)
    return next((name for name in named if name in counted), "")


def _counted_turns(head: str, values: Values) -> LoopTurns | None:
    """The turns of `((i=0;i<8;i++))`."""
    parts = in_numbers(head, values).split(";")
    name = _INIT.match(parts[0])
    if len(parts) != 3 or name is None:
        return None
    numbers = dict(values)
    found: list[str] = []
    evaluate(parts[0], numbers)
    while (more := evaluate(parts[1], numbers)) and len(found) <= MOST_TURNS:
        found.append(str(numbers[name[1]]))
        if evaluate(parts[2], numbers) is None:
            return None
    if more is None or not 0 < len(found) <= MOST_TURNS:
        return None
    return LoopTurns(name[1], tuple(found), str(numbers[name[1]]))


def carried(body: Iterable[SimpleCommand]) -> set[str]:
    """The variables that a loop counts, so that they differ from turn to turn."""
    found: set[str] = set()
    for command in body:
        for word in command.words:
            text = word.raw
            counts = text.startswith("((") or (command.words[0].plain == "let" and word.plain != "let")
            for match in _ASSIGNED.finditer(text) if counts else ():
                found.add(match[1])
            given = _ASSIGNED.match(text)
            if given and ("+=" in given[0] or re.search(rf"\b{given[1]}\b", text[given.end() :])):
                found.add(given[1])
    return found
