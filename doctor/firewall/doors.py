"""What to type so that a rule set lets addresses through, proved on the rule set before it is typed.

A rule that accepts is put in front of the one that stops a packet: in the same table, since no other can undo
its verdict, and by the tool that owns it. If the packet is then stopped elsewhere, a rule is added there too.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from shlex import quote

from doctor.firewall.decide import Ruleset
from doctor.firewall.decision import Decision, Manager
from doctor.firewall.rules import Compare, Field, Rule, RuleVerdict, VerdictKind
from doctor.firewall.values import Spans

MOST = 8
"""The most doors: a packet passes few tables."""
LOOK = ("sudo nft list ruleset", "sudo iptables-save")
"""The commands that show the rules, for a rule set that no added rule opens."""
INCOMING = ("ingress", "prerouting", "input")
_BUILT_IN = "filter"
"""The table that iptables takes if none is named."""
_NAMES = re.compile(r"[\w.+/-]+(?: [\w.+/-]+){2}")
"""Names that nft reads as nothing but names: it parses its arguments as a language."""
Network = IPv4Network | IPv6Network
Stops = Callable[[Ruleset], Collection[Decision]]
"""A function from a rule set to what it stops."""


@dataclass(frozen=True, slots=True)
class Door:
    """An accepting rule at the head of a chain. `manager` is the tool that puts it there."""

    manager: Manager
    table: str
    tool: str
    chain: str
    incoming: bool
    lasts: bool = True
    """Whether it is still there when the owner of the rules loads them again."""

    def within(self, networks: Sequence[Network]) -> tuple[Network, ...]:
        """Those of the networks that the rules of this table can name."""
        version = {"ip": 4, "ip6": 6}.get(self.table.partition(" ")[0])
        return tuple(network for network in networks if version in (None, network.version))

    def typed(self, networks: Sequence[Network]) -> Iterator[str]:
        for network in self.within(networks):
            alone = network.num_addresses == 1
            yield from self._typed(str(network.network_address if alone else network), network.version)

    def _typed(self, address: str, version: int) -> Iterator[str]:
        if self.manager is Manager.UFW:
            yield f"sudo ufw prepend allow {'from' if self.incoming else 'out to'} {address}"
        elif self.manager is Manager.FIREWALLD:
            for how in ("--permanent ", ""):
                yield f"sudo firewall-cmd {how}--zone=trusted --change-source={address}"
        elif self.manager is Manager.IPTABLES:
            legacy = self.tool.endswith("-legacy")
            name = f"ip{'6' * (version == 6)}tables{'-legacy' * legacy}"
            table = self.table.partition(" ")[2]
            where = f"{'' if table == _BUILT_IN else f'-t {quote(table)} '}-I {quote(self.chain)}"
            remark = "    # plain iptables on systems without it" * legacy or self._remark
            yield f"sudo {name} {where} -p tcp {'-s' if self.incoming else '-d'} {address} -j ACCEPT{remark}"
        else:
            place = " ".join(map(quote, (*self.table.split(" ", 1), self.chain)))
            field = f"{'ip6' if version == 6 else 'ip'} {'saddr' if self.incoming else 'daddr'}"
            yield f"sudo nft insert rule {place} {field} {address} accept{self._remark}"

    @property
    def _remark(self) -> str:
        kept = "nftables.conf" if self.manager is Manager.NFT else "the file of iptables-save"
        until = f"the next boot; for good: {kept}" if self.lasts else "its rules are loaded again"
        return f"    # until {until}"


def opening(rules: Ruleset, networks: Sequence[str], stops: Stops) -> tuple[str, ...]:
    """The commands that let the networks through, or those that show the rules if no added rule does."""
    let_in = [ip_network(network) for network in networks]
    commands: list[str] = []
    tried: set[Door] = set()
    while len(tried) < MOST and (stopped := next(iter(stops(rules)), None)):
        door = next((door for door in _doors(rules, stopped) if door not in tried), None)
        if door is None:
            break
        tried.add(door)
        opened = _opened(rules, door, let_in)
        if stopped not in stops(opened):
            rules = opened
            commands += door.typed(let_in)
    return tuple(commands) or LOOK


def _doors(rules: Ruleset, stopped: Decision) -> Iterator[Door]:
    """The doors to try for a decision: by the tool that owns the rule, then at the head of the base chain."""
    incoming = stopped.hook in INCOMING
    chains = next((t.chains for t in rules.tables if (t.title, t.tool) == (stopped.table, stopped.tool)), {})
    own = {
        Manager.UFW: ("ufw-user-input", "ufw6-user-input")
        if incoming
        else ("ufw-user-output", "ufw6-user-output"),
        Manager.FIREWALLD: ("filter_INPUT_ZONES", "INPUT_ZONES") if incoming else (),
    }
    for manager, names in own.items():
        for name in names:
            if manager is stopped.manager and name in chains:
                yield Door(manager, stopped.table, stopped.tool, name, incoming)
    direct = Manager.IPTABLES if stopped.tool.startswith("iptables") else Manager.NFT
    if stopped.base in chains and _NAMES.fullmatch(f"{stopped.table} {stopped.base}"):
        yield Door(
            direct, stopped.table, stopped.tool, stopped.base, incoming, lasts=stopped.manager not in own
        )


def _opened(rules: Ruleset, door: Door, networks: Sequence[Network]) -> Ruleset:
    """The rule set with the door."""
    spans: dict[int, list[tuple[int, int]]] = {4: [], 6: []}
    for network in door.within(networks):
        spans[network.version].append((int(network.network_address), int(network.broadcast_address)))
    field = Field.SOURCE if door.incoming else Field.DEST
    accept = tuple(
        Rule(
            (
                Compare((Field.FAMILY, field), ((Spans.of([(version, version)]), Spans.of(own)),)),
                RuleVerdict(VerdictKind.ACCEPT),
            ),
            "the door",
        )
        for version, own in spans.items()
        if own
    )
    return rules.with_rules(door.table, door.tool, door.chain, accept)
