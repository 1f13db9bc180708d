"""Interfaces of a host, and the variables that choose among them."""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

INTERFACE_VARIABLES = ("HCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
VIRTUAL = ("lo", "docker", "br-", "veth", "virbr", "cni", "cali", "flannel", "kube", "tunl", "lxc")
"""Prefixes of the names of interfaces that no other host can reach."""


def matching_interfaces(variable: str, wish: str, interfaces: Mapping[str, object]) -> list[str]:
    """Interfaces chosen by a *_SOCKET_IFNAME variable, in host order; an exclusion is not meant to leave lo.

    HCCL and NCCL take prefixes, `=exact` and `^excluded`; gloo takes names as they are.
    """
    if variable.startswith("GLOO"):
        return [interface for interface in interfaces if interface in wish.split(",")]
    return [i for i in fitting(wish, interfaces) if not (wish.startswith("^") and i == "lo")]


def is_untold(wish: str) -> bool:
    """Whether the launch sets the variable to something that is only known on the hosts."""
    return "$" in wish


def missing_interfaces(variable: str, wish: str, interfaces: Mapping[str, object]) -> str:
    """The part of a *_SOCKET_IFNAME variable that names no interface; empty if there is none.

    gloo needs every interface of a list, the other libraries only one. gloo and NCCL ignore a value of one
    character.
    """
    if not wish or is_untold(wish) or (len(wish) == 1 and not variable.startswith("HCCL")):
        return ""
    if variable.startswith("GLOO"):
        return ",".join(word for word in wish.split(",") if word not in interfaces)
    return "" if matching_interfaces(variable, wish, interfaces) else wish


def fitting(wish: str, interfaces: Iterable[str]) -> list[str]:
    """Interfaces that NCCL and HCCL would take: prefixes, `=exact`, `^excluded` and `^=` both; in host order.

    An exclusion that does not name lo leaves it in, and it comes first.
    """
    negated = wish.startswith("^")
    pattern = wish.removeprefix("^")
    exact = pattern.startswith("=")
    words = [word for word in pattern.removeprefix("=").split(",") if word]

    def named(interface: str) -> bool:
        return any(interface == word if exact else interface.startswith(word) for word in words)

    return [interface for interface in interfaces if named(interface) != negated]


def interface_with(address: str, interfaces: Mapping[str, Sequence[str]]) -> str:
    """The interface that has the address; empty if it is unknown."""
    named = (name for name, held in interfaces.items() if address in held)
    return next(named, "lo" if is_loopback(address) else "")


@cache
def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
