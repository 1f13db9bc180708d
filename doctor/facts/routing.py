"""Policy routing: the rules of `ip rule`, the tables they lead to, and the way a packet takes by them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from itertools import pairwise

from doctor.api import Capture, Fact, Run, grouped
from doctor.facts.network import Route, best_route
from doctor.text.hostprogram import host_program

EVERYWHERE = IPv4Network("0.0.0.0/0")
DISCARDS = ("blackhole", "unreachable", "prohibit")
_OTHERWISE = ("local", "broadcast", "multicast", "anycast", "nat", "throw")
MAIN = "main"
KERNELS = (MAIN, "default")
"""The tables of the rules that every host has, apart from that of its own addresses."""


@dataclass(frozen=True, slots=True)
class RoutingRule:
    """One line of `ip rule`, for packets that a program of this host sends without marks.

    `action` is a table, or how the packet is discarded. `unclear`: it is unknown to which packets the rule
    applies, because that depends on a user, a port or an interface, or on a later rule. Routes with a prefix
    of up to `ignores` bits do not count.
    """

    text: str
    source: IPv4Network
    target: IPv4Network
    action: str
    unclear: bool = False
    ignores: int = -1

    def takes(self, source: IPv4Address, target: IPv4Address) -> bool:
        return source in self.source and target in self.target


@dataclass(frozen=True, slots=True)
class TableWay:
    """The rule and the route that a packet takes; a rule may discard it without a route."""

    rule: RoutingRule
    route: Route | None
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.rule.text}" + (f": {self.route}" if self.route else "")


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules in order, without those that every host has, and the tables; empty on most hosts."""

    rules: tuple[RoutingRule, ...] = ()
    tables: Mapping[str, tuple[Route, ...]] | None = None

    def way(self, source: str, target: str) -> TableWay | None:
        """The way by a rule before that of the main table; None if there is none or it is unclear."""
        own, there = IPv4Address(source), IPv4Address(target)
        for rule in self.rules:
            if not rule.takes(own, there):
                continue
            if rule.unclear:
                return None
            if rule.action in DISCARDS:
                return TableWay(rule, None, rule.action)
            route = best_route((self.tables or {}).get(rule.action, ()), there, rule.ignores)
            if route is not None and route.kind not in _OTHERWISE:
                return None if rule.action == MAIN else TableWay(rule, route, route.kind)
        return None

    def is_near(self, target: str) -> bool:
        """Whether the main table leads to this address without a gateway."""
        route = best_route((self.tables or {}).get(MAIN, ()), IPv4Address(target))
        return route is not None and not route.gateway and not route.kind


_ASK = host_program(__file__, "routing.sh")
"""Most hosts have only the three rules of the kernel, and then no table is read."""


def _policy(capture: Capture) -> Policy:
    rules, _, routes = capture.stdout.partition("tables\n")
    numbered = re.findall(r"^(\d{1,10}):\s+(.{1,400}?)\s*$", rules, re.MULTILINE)
    known = [rule for number, text in numbered if (rule := _rule(f"{number}: {text}", text.split()))]
    if all(rule.action in KERNELS for rule in known):
        return Policy()
    tables = grouped(found for line in routes.splitlines() if (found := _route(line.split())))
    return Policy(tuple(known), {name: tuple(own) for name, own in tables.items()})


def _rule(text: str, words: list[str]) -> RoutingRule | None:
    """The rule; None if it never takes a packet that a program of this host sends without a mark."""
    inverted = words[:1] == ["not"]
    given = dict(zip(words[inverted::2], words[inverted + 1 :: 2], strict=False))
    last = words[-1] if words else ""
    action = given.get("lookup") or (last if last in DISCARDS else "goto" if "goto" in given else "")
    if not action or action == "local" or "[" in action:
        return None
    source, target = _network(given.get("from", "all")), _network(given.get("to", "all"))
    if source is None or target is None:
        return None
    rest = given.keys() - {"from", "to", "lookup", "suppress_prefixlength", "proto", *DISCARDS}
    marked = "fwmark" in rest and not re.fullmatch(r"(?:0x)?0+(?:/.*)?", given["fwmark"])
    if (marked and not inverted) or given.get("iif", "lo") != "lo" or "oif" in rest:
        return None
    unclear = bool(rest - {"fwmark", "iif"}) or (inverted and not marked)
    ignores = given.get("suppress_prefixlength", "")
    return RoutingRule(text, source, target, action, unclear, int(ignores) if ignores.isdecimal() else -1)


def _network(text: str) -> IPv4Network | None:
    if text in ("all", "default"):
        return EVERYWHERE
    try:
        return IPv4Network(text, strict=False)
    except ValueError:
        return None


def _route(words: list[str]) -> tuple[str, Route] | None:
    """The table of a route, and the route."""
    kind = words[0] if words and words[0] in (*DISCARDS, *_OTHERWISE, "unicast") else ""
    rest = words[bool(kind) :]
    target = _network(rest[0]) if rest else None
    if target is None:
        return None
    given = dict(pairwise(rest))
    metric = given.get("metric", "")
    return given.get("table", MAIN), Route(
        given.get("dev", ""),
        target,
        int(metric) if metric.isdecimal() else 0,
        given.get("via", ""),
        "" if kind == "unicast" else kind,
    )


POLICY = Fact("policy", Run(_ASK), _policy)
