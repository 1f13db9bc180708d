"""Read the output of `nft -j list ruleset`, and show a rule of it as a person would have typed it.

The form is that of libnftables-json(5). Text that is not a rule set at all raises UnreadableOutput. An
unknown statement is kept as a doubt: one strange rule must not hide all others.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from doctor.errors import UnreadableOutput
from doctor.firewall.nft_match import NamedSet
from doctor.firewall.nft_statement import statement_steps
from doctor.firewall.rules import Chain, Hook, Rule, RuleTable, VerdictKind

MAX_LENGTH = 400
MAX_MEMBERS = 12


def rule_text(statements: list[Any]) -> str:
    """The rule on one line; long sets are cut, so that a report stays readable."""
    text = " ".join(word for word in [_statement(one) for one in statements] if word)
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


_TABLE = re.compile(r"table (\S+) (\S+) \{")
_CHAIN = re.compile(r"\s+chain (\S+) \{")
_HOOK = re.compile(r"\s+type \S+ hook (?:in|e)gress devices? (?:= )?(\{[^}]*\}|\S+) priority ")


def parse_devices(text: str) -> Mapping[tuple[str, str, str], tuple[str, ...]]:
    """Family, table and chain -> the devices. `nft -j` leaves them out before version 1.0.9."""
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    family = table = chain = ""
    for line in text.splitlines():
        if begun := _TABLE.match(line):
            family, table = begun.groups()
        elif begun := _CHAIN.match(line):
            chain = begun[1]
        elif begun := _HOOK.match(line):
            found[family, table, chain] = tuple(re.findall(r'[^\s{},"]+', begun[1]))
    return found


FAMILIES = frozenset({"ip", "ip6", "inet", "arp", "bridge", "netdev"})


class _Table(msgspec.Struct):
    family: str
    name: str


class _NftPart(msgspec.Struct):
    family: str
    table: str


class _Chain(_NftPart):
    name: str
    type: str | None = None
    hook: str | None = None
    prio: int = 0
    policy: str = "accept"
    dev: str | list[str] | None = None


class _Rule(_NftPart):
    chain: str
    expr: list[Any] = []


class _Set(_NftPart):
    name: str
    elem: list[Any] = []
    flags: Any = ()
    timeout: int | None = None


class _Object(msgspec.Struct):
    """One entry of the list: exactly one of these, or something irrelevant to packets."""

    table: _Table | None = None
    chain: _Chain | None = None
    rule: _Rule | None = None
    set: _Set | None = None
    map: _Set | None = None


class _Ruleset(msgspec.Struct):
    nftables: list[_Object]


@dataclass(slots=True)
class _NftDraft:
    """A table while its objects are being collected."""

    hooks: dict[str, Hook | None] = field(default_factory=dict)
    rules: dict[str, list[list[Any]]] = field(default_factory=dict)
    sets: dict[str, NamedSet] = field(default_factory=dict)


def parse_nft(text: str, chains: str = "") -> tuple[RuleTable, ...]:
    """The tables of a rule set. `chains` (of `nft list chains`) names devices that older versions omit."""
    if not text.strip():
        return ()
    try:
        drafts = _gather(msgspec.json.decode(text, type=_Ruleset).nftables)
        _add_devices(drafts, parse_devices(chains))
        return tuple(_table(family, name, draft) for (family, name), draft in drafts.items())
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise UnreadableOutput(f"`nft -j list ruleset` did not print a rule set: {error}") from None


def _gather(objects: list[_Object]) -> dict[tuple[str, str], _NftDraft]:
    """The chains and sets by table: rules may refer to later ones."""
    drafts: dict[tuple[str, str], _NftDraft] = {}
    for one in objects:
        if one.table is not None:
            if one.table.family not in FAMILIES:
                raise UnreadableOutput(
                    f"nft lists a table of the family {one.table.family[:40]!r}, which is not known"
                )
            drafts.setdefault((one.table.family, one.table.name), _NftDraft())
        for part in (one.chain, one.set, one.map, one.rule):
            if part is None:
                continue
            draft = drafts.get((part.family, part.table))
            if draft is None:
                raise UnreadableOutput(
                    f"nft lists a part of table {part.table[:40]!r} before the table itself"
                )
            _add(draft, part)
    return drafts


def _add(draft: _NftDraft, part: _Chain | _Set | _Rule) -> None:
    if isinstance(part, _Chain):
        draft.hooks[part.name] = _hook(part)
        draft.rules.setdefault(part.name, [])
    elif isinstance(part, _Set):
        flags = part.flags if isinstance(part.flags, list | tuple) else (part.flags,)
        draft.sets[part.name] = NamedSet(part.name, tuple(part.elem), "dynamic" in flags)
    elif part.chain in draft.hooks:
        draft.rules[part.chain].append(part.expr)
    else:
        raise UnreadableOutput(f"nft lists a rule of the chain {part.chain[:40]!r} before the chain itself")


def _hook(chain: _Chain) -> Hook | None:
    if chain.hook is None:
        return None
    if chain.policy not in ("accept", "drop"):
        raise UnreadableOutput(f"the nft chain {chain.name[:40]!r} has the policy {chain.policy[:40]!r}")
    devices = (chain.dev,) if isinstance(chain.dev, str) else tuple(chain.dev or ())
    return Hook(chain.hook, chain.prio, chain.type == "nat", VerdictKind(chain.policy), devices)


def _add_devices(
    drafts: Mapping[tuple[str, str], _NftDraft], devices: Mapping[tuple[str, str, str], tuple[str, ...]]
) -> None:
    for (family, table, chain), names in devices.items():
        draft = drafts.get((family, table))
        hook = draft.hooks.get(chain) if draft else None
        if draft and hook and not hook.devices:
            draft.hooks[chain] = replace(hook, devices=names)


def _table(family: str, name: str, draft: _NftDraft) -> RuleTable:
    for grown in {_set_that_grows(one) for rules in draft.rules.values() for rule in rules for one in rule}:
        if grown in draft.sets:
            draft.sets[grown] = replace(draft.sets[grown], changing=True)
    chains = {
        chain: Chain(chain, tuple(_rule(one, draft.sets) for one in draft.rules[chain]), hook)
        for chain, hook in draft.hooks.items()
    }
    return RuleTable(family, name, "nft", chains)


def _set_that_grows(statement: Any) -> str:
    """The set or map that a rule itself fills: nft 1.0.6 omits the flag `dynamic` from its JSON."""
    for name in ("set", "map"):
        body = statement.get(name) if isinstance(statement, dict) else None
        if isinstance(body, dict) and isinstance(body.get(name), str):
            return str(body[name]).removeprefix("@")
    return ""


def _rule(statements: list[Any], sets: dict[str, NamedSet]) -> Rule:
    steps = tuple(step for statement in statements for step in statement_steps(statement, sets))
    return Rule(steps, rule_text(statements))
