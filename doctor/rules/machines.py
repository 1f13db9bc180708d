"""Hosts compared with each other: one machine under several names, and values that differ from most."""

from collections.abc import Hashable, Mapping
from typing import TypeVar

from doctor.api import grouped, is_loopback
from doctor.facts.system import Machine

K = TypeVar("K", bound=Hashable)


def votes_of(values: Mapping[str, K]) -> tuple[list[tuple[K, tuple[str, ...]]], bool]:
    """Each value with its hosts, that of most hosts first; and whether two are equally frequent there."""
    hosts = grouped((value, host) for host, value in values.items())
    votes = sorted(((value, tuple(own)) for value, own in hosts.items()), key=lambda vote: -len(vote[1]))
    return votes, len(votes) > 1 and len(votes[0][1]) == len(votes[1][1])


def named_twice(
    identities: Mapping[str, str],
    machines: Mapping[str, Machine],
    addresses: Mapping[str, Mapping[str, tuple[str, ...]]],
) -> dict[str, str]:
    """Surplus name -> the first name of its machine; containers and copied machines are told apart."""
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
