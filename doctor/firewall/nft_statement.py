"""What the statements of an nft rule do with a TCP packet, from their JSON form."""

from collections.abc import Mapping
from typing import Any

from doctor.firewall import rules
from doctor.firewall.iptables_match import changes_with_traffic
from doctor.firewall.iptables_target import PASSING as OF_IPTABLES
from doctor.firewall.nft_match import NamedSet, key_fields, key_guards, key_matchers, match_steps, members
from doctor.firewall.values import WORD

VERDICTS = {kind.value: kind for kind in rules.VerdictKind if kind is not rules.VerdictKind.UNKNOWN}
VERDICTS |= {"snat": rules.VerdictKind.ACCEPT, "masquerade": rules.VerdictKind.ACCEPT}
PASSING = frozenset(rules.WORDS["passing in nft"])
LIMITS = rules.WORDS["limits of nft"]
HARMLESS_FIELDS = ("dscp", "ecn", "ttl", "hoplimit", "priority", "pcp")
HARMLESS_META = ("nftrace", "priority", "pkttype", "secmark")


def statement_steps(statement: Any, sets: Mapping[str, NamedSet]) -> list[rules.Step]:
    """The steps of one statement. An unknown statement may or may not match, and may do anything."""
    if not isinstance(statement, dict) or len(statement) != 1:
        return _anything("a statement that was not understood")
    ((name, body),) = statement.items()
    if name == "match":
        return match_steps(body, sets)
    if name in VERDICTS:
        verdict = read_verdict(statement)
        return [verdict] if verdict is not None else _anything(f"the statement `{name}`")
    if name in PASSING:
        return []
    if name in LIMITS:
        return [rules.DoubtfulCondition(LIMITS[name], varies=True)]
    if name == "notrack":
        return [rules.Untrack()]
    if name == "vmap":
        return _verdict_map(body, sets)
    if name == "mangle":
        return _mangle(body)
    if name == "set":
        inner = body.get("stmt") if isinstance(body, dict) else None
        return [rules.DoubtfulCondition("a rate limit per address", varies=True)] if inner else []
    if name == "xt":
        return _xt(body)
    if name in rules.REWRITING:
        return [rules.RuleVerdict(rules.VerdictKind.UNKNOWN, why=f"`{name}` {rules.REWRITING[name]}")]
    return _anything(f"the statement `{name}`")


def _anything(what: str, *, varies: bool = False) -> list[rules.Step]:
    return [
        rules.DoubtfulCondition(what, varies),
        rules.RuleVerdict(rules.VerdictKind.UNKNOWN, why=f"it depends on {what}"),
    ]


def read_verdict(body: Any) -> rules.RuleVerdict | None:
    """`{"accept": null}` or `{"jump": {"target": "chain"}}`."""
    if not isinstance(body, dict) or len(body) != 1:
        return None
    ((name, inside),) = body.items()
    kind = VERDICTS.get(name)
    if kind in (rules.VerdictKind.JUMP, rules.VerdictKind.GOTO):
        target = inside.get("target") if isinstance(inside, dict) else None
        return rules.RuleVerdict(kind, target) if isinstance(target, str) else None
    return None if kind is None else rules.RuleVerdict(kind)


def _verdict_map(body: Any, sets: Mapping[str, NamedSet]) -> list[rules.Step]:
    key, data = (body.get("key"), body.get("data")) if isinstance(body, dict) else (None, None)
    fields, listed = key_fields(key), members(data, sets)
    if fields is None or listed is None:
        return _anything("a verdict map that was not understood")
    elements = []
    otherwise = rules.RuleVerdict(rules.VerdictKind.CONTINUE)
    for member in listed.elements:
        verdict = read_verdict(member[1]) if isinstance(member, list) and len(member) == 2 else None
        if verdict is None:
            return _anything("a verdict map that was not understood")
        if member[0] == "*":
            otherwise = verdict
        else:
            elements.append((key_matchers(fields, member[0]), verdict))
    if listed.changing:
        return _anything("a map that changes with the traffic", varies=True)
    return [*key_guards(key), rules.VerdictMap(fields, tuple(elements), otherwise)]


def _mangle(body: Any) -> list[rules.Step]:
    """`meta mark set …`: the mark is followed if the value is plain arithmetic on the mark itself."""
    key = body.get("key") if isinstance(body, dict) else None
    if not isinstance(key, dict):
        return _anything("a statement that was not understood")
    meta, ct = key.get("meta"), key.get("ct")
    name = meta.get("key") if isinstance(meta, dict) else ct.get("key") if isinstance(ct, dict) else None
    if name == "mark":
        return [_set_mark(rules.Field.MARK if meta else rules.Field.CTMARK, body.get("value"))]
    if ct is not None or name in HARMLESS_META:
        return []
    payload = key.get("payload")
    if "tcp option" in key or (isinstance(payload, dict) and payload.get("field") in HARMLESS_FIELDS):
        return []
    return [rules.RuleVerdict(rules.VerdictKind.UNKNOWN, why="the rule rewrites the packet")]


def _set_mark(target: rules.Field, value: Any) -> rules.SetMark:
    unknown = rules.SetMark(target, None)
    if isinstance(value, int):
        return rules.SetMark(target, WORD, value & WORD)
    for kind, source in (("meta", rules.Field.MARK), ("ct", rules.Field.CTMARK)):
        if value == {kind: {"key": "mark"}}:
            return rules.SetMark(target, 0, source=source)
    if not isinstance(value, dict) or len(value) != 1:
        return unknown
    ((operator, operands),) = value.items()
    if not isinstance(operands, list) or len(operands) != 2 or not isinstance(operands[1], int):
        return unknown
    inner, number = _set_mark(target, operands[0]), operands[1] & WORD
    if inner.clear is None:
        return unknown
    if operator == "&":
        return rules.SetMark(target, inner.clear | (~number & WORD), inner.flip & number, inner.source)
    if operator == "|":
        return rules.SetMark(target, inner.clear | number, inner.flip | number, inner.source)
    if operator == "^":
        return rules.SetMark(target, inner.clear, inner.flip ^ number, inner.source)
    return unknown


def _xt(body: Any) -> list[rules.Step]:
    """A part that only iptables understands: nft shows at most its name, and older nft just null."""
    kind, name = (body.get("type"), body.get("name")) if isinstance(body, dict) else (None, None)
    if name == "comment" or name in OF_IPTABLES:
        return []
    if kind == "match":
        why = f"the iptables match `{name}`, which nft does not show"
        return [rules.DoubtfulCondition(why, changes_with_traffic(str(name)))]
    if kind == "target" and name == "REJECT":
        return [rules.RuleVerdict(rules.VerdictKind.REJECT)]
    if kind == "target":
        return [
            rules.RuleVerdict(
                rules.VerdictKind.UNKNOWN, why=f"the iptables target `{name}` is not shown by nft"
            )
        ]
    return _anything("a part that only iptables shows")
