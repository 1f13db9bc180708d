"""Read the output of `nft -j list ruleset`.

    {"nftables": [{"metainfo": {…}}, {"table": {"family": "inet", "name": "filter", "handle": 1}},
      {"chain": {"family": "inet", "table": "filter", "name": "input", "type": "filter",
                 "hook": "input", "prio": 0, "policy": "drop"}},
      {"rule": {"family": "inet", "table": "filter", "chain": "input",
                "expr": [{"match": …}, {"accept": null}]}}]}

Text that is not a rule set at all raises UnreadableOutput. An unknown statement is kept as a doubt: one
strange rule must not hide all others.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from doctor.errors import UnreadableOutput
from doctor.firewall.nft_match import NamedSet
from doctor.firewall.nft_statement import statement_steps
from doctor.firewall.nft_text import rule_text
from doctor.firewall.rules import Chain, Hook, Rule, RuleTable, VerdictKind

_TABLE = re.compile(r"table (\S+) (\S+) \{")
_CHAIN = re.compile(r"\s+chain (\S+) \{")
_HOOK = re.compile(r"\s+type \S+ hook (?:in|e)gress devices? (?:= )?(\{[^}]*\}|\S+) priority ")


def parse_devices(text: str) -> Mapping[tuple[str, str, str], tuple[str, ...]]:
    """Family, table and chain -> the devices. `nft -j` leaves them out before version 1.0.9.

    table netdev early {
            chain entry {
                    type filter hook ingress device "eth0" priority filter; policy accept;
    """
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
    """The tables of a rule set; empty text gives none. `chains`, from `nft list chains`, names the devices of
    chains for which older versions leave them out.
    """
    if not text.strip():
        return ()
    try:
        objects = msgspec.json.decode(text, type=_Ruleset).nftables
        drafts = _gather(objects)
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
