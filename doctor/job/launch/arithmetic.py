"""Shell arithmetic, `((…))` and `$((…))`: whole numbers, variables, comparisons, assignments."""

import operator
import re
from collections.abc import Callable, Mapping, MutableMapping

_TOKEN = re.compile(
    r"\s*(?:(\d{1,12}|\$[1-9])|\$?\{?([A-Za-z_]\w{0,199})\}?|(\+\+|--|[-+*/%]=|[<>=!]=|&&|\|\||[-+*/%<>=!()]))"
)
_LONGEST = 300
_MOST = 10**12
_LEVELS: tuple[Mapping[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a or b))},
    {"&&": lambda a, b: int(bool(a and b))},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda a, b: int(a / b), "%": lambda a, b: a - b * int(a / b)},
)
_DEEPEST = 20


class UnknownValue(Exception):
    """The result depends on an unknown value, or the expression is not understood."""


def evaluate(text: str, values: MutableMapping[str, int | None]) -> int | None:
    """The value, or None if it is unknown. Assigned variables change in `values`, then to None as well."""
    try:
        return _ArithmeticReader(text, values).whole()
    except (UnknownValue, ZeroDivisionError):
        for name in re.findall(r"([A-Za-z_]\w{0,199})\s*(?:\+\+|--|[-+*/%]?=(?!=))", text[:_LONGEST]):
            values[name] = None
        return None


class _ArithmeticReader:
    def __init__(self, text: str, values: MutableMapping[str, int | None]) -> None:
        self.values = values
        self.words: list[str] = []
        text = text.strip().replace("$((", "((")
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or len(text) > _LONGEST:
                raise UnknownValue
            self.words.append(match[1] or match[2] or match[3])
            at = match.end()
        self.at = 0

    def whole(self) -> int:
        value = self._assignment(0)
        if self.at < len(self.words):
            raise UnknownValue
        return value

    def _next(self, *wanted: str) -> str:
        if self.at < len(self.words) and (not wanted or self.words[self.at] in wanted):
            self.at += 1
            return self.words[self.at - 1]
        return ""

    def _assignment(self, depth: int) -> int:
        name = self.words[self.at] if self.at < len(self.words) else ""
        sign = self.words[self.at + 1] if self.at + 1 < len(self.words) else ""
        if not name.isidentifier() or sign not in ("=", "+=", "-=", "*=", "/=", "%="):
            return self._level(0, depth)
        self.at += 2
        value = self._level(0, depth)
        if sign != "=":
            value = _LEVELS[4 if sign[0] in "+-" else 5][sign[0]](self._read(name), value)
        self.values[name] = value
        return value

    def _level(self, level: int, depth: int) -> int:
        if level == len(_LEVELS):
            return self._atom(depth)
        value = self._level(level + 1, depth)
        while sign := self._next(*_LEVELS[level]):
            value = int(_LEVELS[level][sign](value, self._level(level + 1, depth)))
            if abs(value) > _MOST:
                raise UnknownValue
        return value

    def _atom(self, depth: int) -> int:
        word = self._next()
        if depth > _DEEPEST:
            raise UnknownValue
        if word.isdecimal():
            return int(
                word, 8 if word.startswith("0") and word.strip("01234567") == "" and word != "0" else 10
            )
        if word.startswith("$"):
            return self._read(word[1:])
        if word in ("++", "--"):
            name = self._next()
            self.values[name] = value = self._read(name) + (1 if word == "++" else -1)
            return value
        if word.isidentifier():
            value = self._read(word)
            if step := self._next("++", "--"):
                self.values[word] = value + (1 if step == "++" else -1)
            return value
        if word == "(":
            value = self._assignment(depth + 1)
            if not self._next(")"):
                raise UnknownValue
            return value
        if word in ("-", "+", "!"):
            value = self._atom(depth + 1)
            return -value if word == "-" else value if word == "+" else int(not value)
        raise UnknownValue

    def _read(self, name: str) -> int:
        value = self.values.get(name)
        if value is None:
            raise UnknownValue
        return value
