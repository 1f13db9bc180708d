"""Shell arithmetic, `((…))` and `$((…))`: whole numbers, variables, comparisons, assignments."""

import ast
import operator
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

_LONGEST = 300
_MOST = 10**12
_NAME = r"[A-Za-z_]\w{0,199}"
_TOKEN = re.compile(
    rf"(\d{{1,12}})|\$([1-9])|\$?\{{?({_NAME})\}}?|([<>=!]=|&&|\|\||(?!\+\+|--)[-+*/%<>!()])|\s+|\$(?=\(\()"
)
_STEP = re.compile(rf"(\+\+|--)?\s*({_NAME})\s*(\+\+|--)?")
_ASSIGNMENT = re.compile(rf"({_NAME})\s*([-+*/%]?)=(?!=)")
_CHANGED = re.compile(rf"({_NAME})\s*(?:\+\+|--|[-+*/%]?=(?!=))|(?:\+\+|--)\s*({_NAME})")
_IN_PYTHON = {"&&": "and", "||": "or", "!": "~"}
"""What has the same precedence there."""
_OPERATORS: Mapping[type, Callable[..., int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: lambda a, b: int(a / b), ast.Mod: lambda a, b: a - b * int(a / b),
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.Gt: operator.gt,
    ast.LtE: operator.le, ast.GtE: operator.ge,
    ast.And: lambda *each: all(each), ast.Or: lambda *each: any(each),
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.not_,
}  # fmt: skip


class UnknownValue(Exception):
    """The result depends on an unknown value, or the expression is not understood."""


def evaluate(text: str, values: MutableMapping[str, Any]) -> int | None:
    """The value, or None if it is unknown. Assigned variables change in `values`, then to None as well."""
    try:
        return _performed(text.strip(), values)
    except (UnknownValue, ZeroDivisionError, SyntaxError, RecursionError):
        for before, after in _CHANGED.findall(text[:_LONGEST]):
            values[before or after] = None
        return None


def _performed(text: str, values: MutableMapping[str, Any]) -> int:
    step, assignment = _STEP.fullmatch(text), _ASSIGNMENT.match(text)
    if step and (sign := step[1] or step[3]):
        old = _number(step[2], values)
        new = old + (1 if sign == "++" else -1)
        values[step[2]] = str(new)
        return new if step[1] else old
    if assignment is None:
        return _result(text, values)
    name, sign = assignment.groups()
    value = _result(f"{f'{name} {sign}' if sign else ''} ({text[assignment.end() :]})", values)
    values[name] = str(value)
    return value


def _result(text: str, values: Mapping[str, Any]) -> int:
    words, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or len(text) > _LONGEST:
            raise UnknownValue
        number, place, name, sign = match.groups()
        if number:
            words.append(str(int(number, 8 if re.fullmatch("0[0-7]+", number) else 10)))
        elif place or name:
            words.append(f"({_number(place or name, values)})")
        elif sign:
            words.append(_IN_PYTHON.get(sign, sign))
        at = match.end()
    return _value(ast.parse(" ".join(words), mode="eval").body)


def _value(node: ast.AST) -> int:
    operands: list[ast.expr]
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=op, operand=operand):
            operands = [operand]
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            operands = [left, right]
        case ast.BoolOp(op=op, values=operands):
            pass
        case _:
            raise UnknownValue
    value = int(_OPERATORS[type(op)](*map(_value, operands)))
    if abs(value) > _MOST:
        raise UnknownValue
    return value


def _number(name: str, values: Mapping[str, Any]) -> int:
    """The number in a variable of a script; an empty one is 0."""
    text = values.get(name)
    if not isinstance(text, str) or not re.fullmatch(r"\s*-?\d{1,12}\s*|", text):
        raise UnknownValue
    return int(text or 0)
