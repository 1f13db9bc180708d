"""Hosts of a list that are one machine under several names, which is a mistake in the list."""

from collections.abc import Mapping

from doctor.api import is_loopback
from doctor.facts.system import Machine


def named_twice(
    identities: Mapping[str, str],
    machines: Mapping[str, Machine],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> dict[str, str]:
    """Surplus name -> the first name of the same machine.

    Containers on one machine have root file systems of their own; virtual machines copied while running have
    addresses of their own.
    """
    firsts: dict[tuple[str, Machine, frozenset[str]], str] = {}
    found = {}
    for host, machine in machines.items():
        own = frozenset(a for held in addresses.get(host, {}).values() for a in held if not is_loopback(a))
        if not own or not machine.known:
            continue
        first = firsts.setdefault((identities.get(host, ""), machine, own), host)
        if first != host:
            found[host] = first
    return found
