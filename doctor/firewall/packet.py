"""The packets of one TCP connection as a rule sees them, and what rules can change on the way."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from doctor.firewall.rules import ADDRESS_TYPES, STATES, TCP, Field
from doctor.firewall.values import WORD, Bits, Interval
from doctor.text.addresses import AnyAddress, canonical

Address: TypeAlias = "str | AnyAddress"

ECN_AND_PUSH = 0xC0 | 0x08
SYN = Bits(0x02, WORD & ~0xC0)
SYN_ACK = Bits(0x12, WORD & ~0xC0)
ACK = Bits(0x10, WORD & ~ECN_AND_PUSH)
ZERO = Bits(0)
ANY_STATE: Interval = (1, 64)
"""From invalid to untracked: the state is unknown."""

UNICAST = (ADDRESS_TYPES["unicast"],) * 2
LOCAL = (ADDRESS_TYPES["local"],) * 2


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet on one side. `interface` is None for an unknown interface other than the loopback."""

    incoming: bool
    first: bool
    reply: bool
    family: int
    source: int
    dest: int
    sport: Interval
    dport: Interval
    interface: str | None
    flags: Bits

    @property
    def loopback(self) -> bool:
        return self.interface == "lo"

    def number(self, field: Field) -> Interval:
        """The interval in which the field's value lies."""
        if field is Field.SOURCE:
            return self.source, self.source
        if field is Field.DEST:
            return self.dest, self.dest
        if field is Field.DPORT:
            return self.dport
        if field is Field.SPORT:
            return self.sport
        if field is Field.PROTO:
            return TCP, TCP
        if field is Field.FAMILY:
            return self.family, self.family
        if field is Field.DIRECTION:
            return int(self.reply), int(self.reply)
        if field is Field.PACKET_TYPE:
            return (0, 0) if self.incoming else (0, 7)
        here = self.incoming if field is Field.DEST_TYPE else not self.incoming
        return LOCAL if here or self.loopback else UNICAST

    def name(self, field: Field) -> str | None:
        """The interface that a rule compares; the interface that this direction lacks has an empty name."""
        return self.interface if (field is Field.IIF) == self.incoming else ""


@dataclass(frozen=True, slots=True)
class PacketState:
    """What rules wrote: marks, and whether connection tracking sees the packet (None: unknown)."""

    mark: Bits = ZERO
    ctmark: Bits = ZERO
    tracked: bool | None = True

    def next_packet(self) -> PacketState:
        """The state with which the next packet of the same connection starts."""
        return PacketState(ctmark=self.ctmark, tracked=self.tracked or None)

    def blurred(self) -> PacketState:
        """The state without its marks, which stands for very many states at once."""
        return replace(self, mark=Bits(0, 0), ctmark=Bits(0, 0), tracked=None)

    def connection(self, packet: Packet, priority: int) -> Interval:
        """The values that `ct state` can have for a chain of this priority: tracking happens at -200."""
        if self.tracked is False:
            return (STATES["untracked"],) * 2
        if self.tracked is None or (priority <= -200 and packet.loopback) or priority == -200:
            return ANY_STATE
        if priority < -200:
            return (STATES["invalid"],) * 2
        return (STATES["new" if packet.first else "established"],) * 2


def journey(
    source: Address, dest: Address, port: int, interface: str | None, ephemeral: Interval, incoming: bool
) -> tuple[Packet, ...]:
    """The packets that every TCP connection needs: SYN, its answer, the answer to that, and a reply."""
    here, there = canonical(source), canonical(dest)
    if here.version != there.version:
        raise ValueError(f"{here} and {there} are addresses of different families")
    if not 0 < port < 65536:
        raise ValueError(f"{port} is not a valid port")
    if here == there or here.is_loopback or there.is_loopback:
        interface = "lo"
    syn = Packet(
        incoming=incoming, first=True, reply=False, family=here.version, source=int(here), dest=int(there),
        sport=ephemeral, dport=(port, port), interface=interface, flags=SYN,
    )  # fmt: skip
    answer = replace(
        syn, incoming=not incoming, first=False, reply=True, source=syn.dest, dest=syn.source,
        sport=syn.dport, dport=syn.sport, flags=SYN_ACK,
    )  # fmt: skip
    return syn, answer, replace(syn, first=False, flags=ACK), replace(answer, flags=ACK)
