"""Sentences about what lies between this machine and a host: jump hosts and ProxyCommand."""

from __future__ import annotations

import shlex

from doctor.model import UnreachedKind
from doctor.transport.errors import CannotReach, Destination, knock, quoted, rounded


def tunnel_refused(to: Destination, jump: str, code: int, words: str, seconds: float) -> CannotReach:
    """The jump host is fine, but did not connect us onwards. Its own words say why."""
    low = words.lower()
    if code == 1:
        return CannotReach(
            UnreachedKind.JUMP,
            f"The jump host {jump} does not forward connections: {quoted(words) or 'prohibited'}.",
            "Allow it there (AllowTcpForwarding yes in sshd_config), or use another jump host.",
            [f"ssh {shlex.quote(jump)} grep -ri AllowTcpForwarding /etc/ssh"],
            quoted(words),
        )
    seen = f" (seen from the jump host {jump})"
    look = f"ssh {shlex.quote(jump)} {shlex.quote(knock(to))}"
    if "name" in low or "resol" in low or "not known" in low:
        return CannotReach(
            UnreachedKind.NAME,
            f"The name cannot be resolved{seen}.",
            "Correct the name, or give an address that the jump host can use.",
            [f"ssh {shlex.quote(jump)} getent ahosts {shlex.quote(to.address)}"],
            quoted(words),
        )
    if "refused" in low:
        kind, what = UnreachedKind.REFUSED, f"Connection refused: nothing listens on port {to.port}{seen}."
        remedy = "Start the SSH server on the host, or give the port that it listens on."
    elif "route" in low or "unreachable" in low:
        kind, what = UnreachedKind.NO_ROUTE, f"No route to the host{seen}."
        remedy = "Check the address and the routes of the jump host."
    elif "timed out" in low or not words:
        kind, what = (
            UnreachedKind.TIMEOUT,
            f"No answer from port {to.port} within {rounded(seconds)} s{seen}.",
        )
        remedy = "Check that the host is powered on and that no firewall stands between it and the jump host."
    else:
        kind, what = UnreachedKind.OTHER, f"Cannot connect to port {to.port}{seen}: {quoted(words)}."
        remedy = "Try the same connection by hand from the jump host."
    return CannotReach(kind, what, remedy, [look], quoted(words))


def jump_failed(jump: str, why: CannotReach) -> CannotReach:
    """Equal for every target behind the jump host, so that they fold into one finding."""
    return CannotReach(
        UnreachedKind.JUMP,
        f"The jump host {jump} cannot be used: {why.summary}",
        why.remedy,
        why.commands,
        why.detail,
    )


def proxy_failed(to: Destination, command: str, said: str) -> CannotReach:
    because = f": {quoted(said)}" if said else " before an SSH server answered"
    return CannotReach(
        UnreachedKind.OTHER,
        f"The ProxyCommand ended{because}.",
        "Run the ProxyCommand by hand; it must print an SSH banner.",
        [to.ssh("-v")],
        quoted(command, 400),
    )


def jump_loop(depth: int) -> CannotReach:
    return CannotReach(
        UnreachedKind.JUMP,
        f"Its own ProxyJump leads through more than {depth} jump hosts, or in a circle.",
        "Correct ProxyJump in ~/.ssh/config.",
    )
