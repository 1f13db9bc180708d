"""What a rule set does with a connection to one port."""

from doctor.firewall import Decision, Ruleset

EPHEMERAL = (32768, 60999)
"""The ports that Linux gives by default."""


def decide(
    rules: Ruleset,
    source: str,
    dest: str,
    port: int,
    interface: str | None = None,
    ephemeral: tuple[int, int] = EPHEMERAL,
    *,
    incoming: bool = True,
) -> Decision:
    (span,) = rules.decide_ports(source, dest, port, port, interface, ephemeral, incoming=incoming)
    return span.decision
