"""The outcome of a connection, in terms that the owner of the rules understands."""

from dataclasses import dataclass, replace
from enum import Enum

from doctor.firewall.evaluate import Fate, PacketPath
from doctor.firewall.packet import Packet
from doctor.firewall.rules import REWRITING, RuleTable, VerdictKind

_UFW = ("ufw-", "ufw6-")


class Action(str, Enum):
    ACCEPT = "accept"
    DROP = "drop"
    REJECT = "reject"
    UNKNOWN = "unknown"


class Manager(str, Enum):
    """The tool that owns the rules, and so the command that changes them permanently."""

    UFW = "ufw"
    FIREWALLD = "firewalld"
    NFT = "nft"
    IPTABLES = "iptables"


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a connection and the rule that decided it; all names are empty if no rule did."""

    action: Action
    rule: str = ""
    table: str = ""
    chain: str = ""
    manager: Manager | None = None
    reason: str = ""
    tool: str = ""
    """The tool that listed the rule: rules of iptables-legacy, for example, must be changed with it."""
    varies: bool = False
    """Unknown, and may differ for the next packet, so that a connection that worked does not settle it."""
    diverts: bool = False
    """Unknown, but the rule surely matches: it sends the connection elsewhere or has a program decide."""
    base: str = ""
    """The base chain from which the kernel came to `chain`, and the hook at which it is called."""
    hook: str = ""

    @property
    def blocked(self) -> bool:
        """Certainly dropped or rejected."""
        return self.action in (Action.DROP, Action.REJECT)


def manager_of(table: RuleTable, chain: str = "") -> Manager:
    """The tool that wrote the rules of a table; with `chain`, the rules of that chain.

    ufw and firewalld mark their chains by name. A rule that a person put directly into a base chain beside
    ufw's is not ufw's to remove, so a base chain counts as ufw's only for its policy (call without a chain).
    """
    tool = Manager.IPTABLES if table.tool.startswith(("iptables", "ip6tables")) else Manager.NFT
    if table.name == "firewalld" or {"INPUT_ZONES", "INPUT_direct"} & table.chains.keys():
        return Manager.FIREWALLD
    if any(name.startswith(_UFW) for name in table.chains) and (not chain or chain.startswith(_UFW)):
        return Manager.UFW
    return tool


def accepted(fate: Fate) -> Decision:
    """The decision for a packet that every chain let through, with the last rule that did so."""
    ways = [way for way in fate.alive.values() if way.place is not None]
    return _decision(Action.ACCEPT, ways[0], "") if ways else Decision(Action.ACCEPT)


def stopped(fate: Fate, packet: Packet) -> Decision:
    """The decision for a packet that is not accepted on some or all paths."""
    following = "the answers to the first packet" if packet.reply else "the packets after the first"
    which = "" if packet.first else following
    sure = not fate.alive and VerdictKind.UNKNOWN not in fate.ends
    if sure and len(fate.ends) == 1:
        kind, way = next(iter(fate.ends.items()))
        return _decision(Action(kind.value), way, which)
    if sure:
        reason = " ".join(filter(None, (which, "dropped or rejected")))
        return _decision(Action.DROP, fate.ends[VerdictKind.DROP], reason)
    way = fate.ends.get(VerdictKind.UNKNOWN) or next(iter(fate.ends.values()))
    ways = sorted((way, *fate.ends.values(), *fate.alive.values()), key=lambda each: not each.varies)
    reason = next(filter(None, (each.doubt for each in ways)), "the rules leave it open")
    decision = _decision(Action.UNKNOWN, way, f"{which}: {reason}" if which else reason)
    matches = not fate.alive and {*fate.ends} == {VerdictKind.UNKNOWN}
    diverts = matches and not ways[0].varies and reason.endswith(tuple(REWRITING.values()))
    return replace(decision, varies=ways[0].varies, diverts=diverts)


def _decision(action: Action, way: PacketPath, reason: str) -> Decision:
    place = way.place
    if place is None:
        return Decision(action, reason=reason)
    return Decision(
        action,
        place.rule,
        place.table.title,
        place.chain,
        manager_of(place.table, "" if place.rule.startswith("policy ") else place.chain),
        reason,
        place.table.tool,
        base=place.base.name,
        hook=place.base.hook.name if place.base.hook else "",
    )
