"""The questions that a whole rule set answers: would this connection work, and which rule decides.

Every base chain must let a packet through: those of nft and of iptables on either backend, in all tables. The
packets of the handshake and the data are followed: a connection fails too if its answer is dropped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

from doctor.firewall.decision import Action, Decision, accepted, stopped
from doctor.firewall.evaluate import Budget, BudgetExceeded, Fate, PacketPath, Walk
from doctor.firewall.packet import Address, Packet, PacketState, journey
from doctor.firewall.rules import ADDRESSES, Chain, Compare, Field, Hook, Rule, RuleTable, VerdictMap
from doctor.firewall.values import Interval, Spans
from doctor.text.addresses import LOOPBACK, canonical

MAX_RULES = 20_000
PORTS = (Field.SPORT, Field.DPORT)


@dataclass(frozen=True, slots=True)
class PortSpan:
    """Neighbouring ports with the same decision."""

    first: int
    last: int
    decision: Decision

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class Ruleset:
    """All rules of one host. A decision is reused for all addresses that no rule distinguishes."""

    tables: tuple[RuleTable, ...] = ()
    _decided: dict[tuple[object, ...], tuple[PortSpan, ...]] = field(default_factory=dict, compare=False)
    _variants: dict[tuple[object, ...], Ruleset] = field(default_factory=dict, compare=False)

    def decide_ports(
        self,
        source: Address,
        dest: Address,
        first: int,
        last: int,
        interface: str | None,
        ephemeral: Interval,
        *,
        incoming: bool = True,
    ) -> tuple[PortSpan, ...]:
        """The decisions for new connections to these ports: to our own `dest`, or from our own `source` if
        not `incoming`.

        `interface` is where the peer's traffic passes in both directions; None is an unknown interface other
        than the loopback. The caller's own port is one of `ephemeral`. The answer is exact: one question for
        each range of ports that no rule divides, and one budget for all, so that thousands of boundaries cost
        seconds, not hours.
        """
        both = canonical(source), canonical(dest)
        # Equal for all addresses that no rule distinguishes.
        ends = tuple((each.version, bisect_right(self._bounds, int(each))) for each in both)
        question = (*ends, source == dest, first, last, interface, ephemeral, incoming)
        if question not in self._decided:
            self._decided[question] = self._spans(
                first, last, lambda port: journey(source, dest, port, interface, ephemeral, incoming)
            )
        return self._decided[question]

    def _spans(
        self, first: int, last: int, packets: Callable[[int], tuple[Packet, ...]]
    ) -> tuple[PortSpan, ...]:
        budget = Budget()
        starts = sorted({first} | {cut for cut in self._cuts(PORTS) if first < cut <= last})
        spans = (
            PortSpan(low, high, self._decide(packets(low), budget))
            for low, high in zip(starts, [start - 1 for start in starts[1:]] + [last], strict=True)
        )
        alike = (list(run) for _, run in groupby(spans, lambda span: span.decision))
        return tuple(replace(run[0], last=run[-1].last) for run in alike)

    def with_rules(self, title: str, tool: str, chain: str, first: tuple[Rule, ...]) -> Ruleset:
        """The rule set with these rules at the head of a chain; made once for all hosts with this one."""
        key = (title, tool, chain, first)
        if key not in self._variants:
            tables = (
                table.with_rules(chain, first) if (table.title, table.tool) == (title, tool) else table
                for table in self.tables
            )
            self._variants[key] = Ruleset(tuple(tables))
        return self._variants[key]

    @cached_property
    def _bounds(self) -> list[int]:
        return sorted({*self.address_cuts, *LOOPBACK})

    @cached_property
    def address_cuts(self) -> set[int]:
        """The bounds of the addresses in rules: between two cuts, all addresses of a version fare alike."""
        return self._cuts(ADDRESSES)

    @cached_property
    def rules(self) -> int:
        return sum(len(chain.rules) for table in self.tables for chain in table.chains.values())

    def _cuts(self, fields: Sequence[Field]) -> set[int]:
        chains = (chain for table in self.tables for chain in table.chains.values())
        return {cut for chain in chains for rule in chain.rules for cut in _cuts(rule, fields)}

    def _decide(self, packets: tuple[Packet, ...], budget: Budget) -> Decision:
        if self.rules > MAX_RULES:
            reason = f"the rule set has {self.rules:,} rules, too many to follow"
            return Decision(Action.UNKNOWN, reason=reason)
        states = {PacketState(): PacketPath()}
        answer = Decision(Action.ACCEPT)
        try:
            for packet in packets:
                fate = Fate(alive=states)
                # Over the loopback a packet leaves this host and enters it again.
                for side in (False, True) if packet.loopback else (packet.incoming,):
                    fate = self._travel(replace(packet, incoming=side), fate.alive, budget)
                    if fate.ends:
                        return stopped(fate, packet)
                if packet is packets[0]:
                    answer = accepted(fate)
                states = {state.next_packet(): replace(way, place=None) for state, way in fate.alive.items()}
        except BudgetExceeded:
            return Decision(Action.UNKNOWN, reason=f"the {self.rules:,} rules are too complex to be followed")
        return answer

    def _travel(self, packet: Packet, states: dict[PacketState, PacketPath], budget: Budget) -> Fate:
        fate = Fate(alive=states)
        for table, chain, hook, certain in self._base_chains(packet):
            one = Walk(table, chain, hook, packet, budget).whole(fate.alive)
            if not certain and one.ends:
                doubt = f"whether the packet passes the {hook.name} hook of table {table.title} is not known"
                for kind, way in one.ends.items():
                    fate.end(kind, replace(way, doubt=doubt))
                for state, way in (*fate.alive.items(), *one.alive.items()):
                    one.live(state, way)
            else:
                for kind, way in one.ends.items():
                    fate.end(kind, way)
            fate.alive = one.alive
        return fate

    def _base_chains(self, packet: Packet) -> list[tuple[RuleTable, Chain, Hook, bool]]:
        """The chains that see the packet, in order, and whether it is certain that they do."""
        found = []
        order = ("ingress", "prerouting", "input") if packet.incoming else ("output", "postrouting", "egress")
        family = "ip" if packet.family == 4 else "ip6"
        for table in self.tables:
            for chain in table.chains.values():
                hook = chain.hook
                if hook is None or hook.name not in order or (hook.nat and not packet.first):
                    continue
                device = hook.name in ("ingress", "egress")
                if table.family in (family, "inet") and not device:
                    found.append((table, chain, hook, True))
                elif table.family == "bridge" and not packet.loopback:
                    found.append((table, chain, hook, False))
                elif table.family in ("netdev", "inet") and device and not packet.loopback:
                    found.append((table, chain, hook, packet.interface in hook.devices))
        return sorted(found, key=lambda one: (order.index(one[2].name), one[2].priority))


def combine(nft: Iterable[RuleTable] = (), iptables: Iterable[RuleTable] = ()) -> Ruleset:
    """`nft` is from `parse_nft`, `iptables` from every save of the host, of both backends and both families.

    nft also lists what iptables-nft writes, with parts that nft cannot show. Such a table is taken from
    iptables-save if both show the same chains with the same number of rules. If they differ, the rules were
    changed in the meantime, or nft has rules that iptables cannot show: then both count, and each can only
    add a doubt or a block that really exists.
    """
    saved = tuple(iptables)
    ours = {(table.family, table.name): table for table in saved if table.tool == "iptables-nft"}
    kept = [table for table in nft if not _same(table, ours.get((table.family, table.name)))]
    return Ruleset((*kept, *saved))


def _same(listed: RuleTable, saved: RuleTable | None) -> bool:
    """Whether two tables are the same, not counting the base chains that a save shows before they exist."""
    chains = saved.chains.items() if saved else ()
    shapes = {name: _shape(chain) for name, chain in chains if chain.rules or name in listed.chains}
    return saved is not None and shapes == {name: _shape(chain) for name, chain in listed.chains.items()}


def _shape(chain: Chain) -> tuple[object, ...]:
    return len(chain.rules), chain.hook and (chain.hook.name, chain.hook.policy)


def _cuts(rule: Rule, fields: Sequence[Field]) -> Iterator[int]:
    for step in rule.steps:
        if isinstance(step, Compare):
            elements = step.elements
        elif isinstance(step, VerdictMap):
            elements = tuple(element for element, _ in step.elements)
        else:
            continue
        for element in elements:
            for name, matcher in zip(step.fields, element, strict=True):
                if name in fields and isinstance(matcher, Spans):
                    yield from matcher.cuts()
