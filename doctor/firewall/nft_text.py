"""Show a rule of nft's JSON as a person would have typed it, only for the report."""

from typing import Any

MAX_LENGTH = 400
MAX_MEMBERS = 12


def rule_text(statements: list[Any]) -> str:
    """The rule on one line; long sets are cut, so that a report stays readable."""
    words = [_statement(one) for one in statements]
    text = " ".join(word for word in words if word)
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"


def _statement(statement: Any) -> str:
    if not isinstance(statement, dict) or len(statement) != 1:
        return "(not understood)"
    ((name, body),) = statement.items()
    if name == "counter":
        return ""
    if not isinstance(body, dict):
        return str(name)
    if name == "match":
        operator = body.get("op")
        comparison = "" if operator in ("==", "in") else f"{operator} "
        return f"{_value(body.get('left'))} {comparison}{_value(body.get('right'))}"
    if name in ("jump", "goto"):
        return f"{name} {body.get('target')}"
    if name == "vmap":
        return f"{_value(body.get('key'))} vmap {_value(body.get('data'))}"
    if name == "mangle":
        return f"{_value(body.get('key'))} set {_value(body.get('value'))}"
    if name == "limit":
        return f"limit rate {'over ' if body.get('inv') else ''}{body.get('rate')}/{body.get('per')}"
    if name == "xt":
        return f"xt {body.get('type')} {body.get('name')}"
    if name == "log" and "prefix" in body:
        return f'log prefix "{body["prefix"]}"'
    return str(name)


def _value(value: Any, depth: int = 0) -> str:
    if depth > 6:
        return "…"
    if isinstance(value, list):
        return _members(value, depth, ",")
    if not isinstance(value, dict) or len(value) != 1:
        return str(value) if isinstance(value, str | int) else "…"
    ((kind, inside),) = value.items()
    if kind == "prefix" and isinstance(inside, dict):
        return f"{inside.get('addr')}/{inside.get('len')}"
    if kind == "range" and isinstance(inside, list):
        return "-".join(_value(one, depth + 1) for one in inside[:2])
    if kind == "concat" and isinstance(inside, list):
        return " . ".join(_value(one, depth + 1) for one in inside[:MAX_MEMBERS])
    if kind in ("|", "&", "^") and isinstance(inside, list):
        return f" {kind} ".join(_value(one, depth + 1) for one in inside[:MAX_MEMBERS])
    if kind == "set":
        listed = isinstance(inside, list)
        return f"{{ {_members(inside, depth, ', ')} }}" if listed else _value(inside, depth + 1)
    return _key(kind, inside, depth)


def _members(values: list[Any], depth: int, between: str) -> str:
    shown = [_member(one, depth + 1) for one in values[:MAX_MEMBERS]]
    return between.join(shown + (["…"] if len(values) > MAX_MEMBERS else []))


def _member(value: Any, depth: int) -> str:
    """An element of a set, or `key : verdict` of a map."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], dict):
        return f"{_value(value[0], depth)} : {_statement(value[1])}"
    return _value(value, depth)


def _key(kind: str, inside: Any, depth: int) -> str:
    if not isinstance(inside, dict):
        return kind
    if kind == "elem":
        return _value(inside.get("val"), depth + 1)
    if kind == "payload":
        return f"{inside.get('protocol')} {inside.get('field')}"
    if kind == "meta":
        name = str(inside.get("key"))
        return name if name in ("iif", "oif", "iifname", "oifname") else f"meta {name}"
    if kind == "fib":
        flags = inside.get("flags")
        words = " . ".join(map(str, flags)) if isinstance(flags, list) else flags
        return f"fib {words} {inside.get('result')}"
    return f"{kind} {inside.get('key', '')}".strip()
