"""The results of a script's tests: `[ $i -lt 8 ]`, `[[ … ]]`, `((i<8))`, `true`."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from glob import escape

from doctor.job.launch.arithmetic import evaluate
from doctor.job.launch.expand import Values, in_numbers, one
from doctor.job.launch.shell_state import is_arithmetic
from doctor.job.launch.shell_tokens import Word

TESTS = ("[", "[[", "test")
_NUMBERS: Mapping[str, Callable[[int, int], bool]] = {
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
    "-eq": operator.eq,
    "-ne": operator.ne,
}
_TURNED = {"!=": "==", "-ne": "==", "-ge": "-lt", "-gt": "-le", "-n": "-z"}
"""Signs, and those that say the opposite."""
_CHANGES = re.compile(r"`|\$[(?]|\$\{?RANDOM|^-[ao]$")
"""What another test may find changed, and several conditions in one."""
_SETS = re.compile(r"[A-Za-z_]\w*=(?!.*(?:\$\((?!\()|`))", re.DOTALL)
"""What certainly succeeds."""
_ASSIGNS = re.compile(r"\+\+|--|(?<![=!<>])=(?!=)")


def holds(words: Sequence[Word], values: Values) -> bool | None:
    """Whether a test holds; None if unknown, or if the test would change something."""
    if not words:
        return None
    name = words[0].plain
    place = 1 if name in TESTS else 0
    if len(words) > place and words[place].plain == "!":
        turned = holds((*words[:place], *words[place + 1 :]), values)
        return None if turned is None else not turned
    if all(map(_SETS.match, (word.raw for word in words))):
        return True
    if len(words) == 1 and name in ("true", ":", "false"):
        return name != "false"
    if len(words) == 1 and is_arithmetic(words[0]):
        text = in_numbers(words[0].raw[2:-2], values)
        number = None if _ASSIGNS.search(text) else evaluate(text, dict(values))
        return None if number is None else number != 0
    if name not in TESTS:
        return None
    given = words[1:] if name == "test" else words[1:-1]
    if name != "test" and words[-1].plain != ("]" if name == "[" else "]]"):
        return None
    texts = [one(word.parts, values) for word in given]
    known = [text for text in texts if isinstance(text, str)]
    if len(known) == 3 == len(texts) and name == "[[" and known[1] in ("=", "==", "!="):
        fits = fnmatchcase(known[0], "".join(part.text for part in quoted(given[2]).parts))
        plain = ":]" not in given[2].raw and all(part.kind == "text" for part in given[2].parts)
        return fits == (known[1] != "!=") if plain else _compare(known, patterns=True)
    return _compare(known, patterns=name == "[[") if len(known) == len(texts) else None


def quoted(word: Word) -> Word:
    """A pattern in which what is quoted stands for itself."""
    literal = {part: replace(part, text=escape(part.text)) for part in word.parts if part.quoted}
    return replace(word, parts=tuple(literal.get(part, part) for part in word.parts))


def _compare(texts: Sequence[str], patterns: bool) -> bool | None:
    """The result of a comparison. A single word is undecided: `[ $i < 8 ]` is one and a redirection."""
    if len(texts) == 2 and texts[0] in ("-z", "-n"):
        return (texts[1] == "") == (texts[0] == "-z")
    if len(texts) != 3:
        return None
    left, sign, right = texts
    if sign in _NUMBERS:
        numbers = [int(text) for text in (left, right) if re.fullmatch(r"\s*-?\d{1,12}\s*", text)]
        return _NUMBERS[sign](*numbers) if len(numbers) == 2 else None
    if sign in ("=", "==", "!=") and not (patterns and re.search(r"[*?\[]", right)):
        return (left == right) == (sign != "!=")
    return None


def stated(words: Sequence[Word]) -> tuple[tuple[str, str], ...]:
    """What a test says of something unknown, as keys and values. Of two tests that have another value for one
    key, such as `[ $# -eq 2 ]` and `[ $# -eq 3 ]`, only one can hold.
    """
    if not words or words[0].plain not in TESTS or any(map(_CHANGES.search, (word.raw for word in words))):
        return ()
    texts = [word.raw.strip("\"'") for word in words[1 : None if words[0].plain == "test" else -1]]
    yes = texts[:1] != ["!"]
    *of, sign, to = ["", "", *(texts if yes else texts[1:])]
    left = "".join(of)
    sign, yes = (_TURNED[sign], not yes) if sign in _TURNED else (sign, yes)
    sign, equal = ("==", True) if sign in ("=", "==", "-eq") else (sign, False)
    fact = (f"{left} {sign} {to}", str(yes))
    return (fact, (left, to)) if equal and yes and re.fullmatch(r"[\w./:+-]*", to) else (fact,)
