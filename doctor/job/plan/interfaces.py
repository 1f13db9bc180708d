"""Interfaces of a host, and the variables that choose among them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

INTERFACE_VARIABLES = ("HCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
VIRTUAL = ("lo", "docker", "br-", "veth", "virbr", "cni", "cali", "flannel", "kube", "tunl", "lxc")
"""Prefixes of the names of interfaces that no other host can reach."""


def matching_interfaces(variable: str, wish: str, interfaces: Mapping[str, object]) -> list[str]:
    """Interfaces chosen by a *_SOCKET_IFNAME variable, in host order.

    HCCL and NCCL take prefixes, `=exact` and `^excluded`; gloo takes names as they are.
    """
    if variable.startswith("GLOO"):
        return [interface for interface in interfaces if interface in wish.split(",")]
    negated = wish.startswith("^")
    pattern = wish.removeprefix("^")
    exact = pattern.startswith("=")
    words = [word for word in pattern.removeprefix("=").split(",") if word]

    def named(interface: str) -> bool:
        return any(interface == word if exact else interface.startswith(word) for word in words)

    return [i for i in interfaces if named(i) != negated and not (negated and i == "lo")]


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
