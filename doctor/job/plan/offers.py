"""The address that ranks of a host offer to their peers, by the rules of the library that connects them.

gloo takes what the host's own name resolves to; NCCL and HCCL take the first interface in an order of their
own. A variable overrides that.
"""

import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from doctor.job.plan.interfaces import fitting, interface_with, is_loopback, is_untold
from doctor.model import Backend

LOOPBACK = "127.0.0.1"
Interfaces = Mapping[str, Sequence[str]]
"""Interface -> its addresses, in the order of the kernel; those of unnamed interfaces are under ""."""


@dataclass(frozen=True, slots=True)
class Offer:
    """`interface` is empty if it is unknown which one has the address. `why` names what chose the address."""

    address: str
    interface: str
    why: str

    def __str__(self) -> str:
        return f"{self.address}{f' on {self.interface}' if self.interface else ''} ({self.why})"


@dataclass(frozen=True, slots=True)
class Library:
    """`variable` names its interface. `emulated`: its rules were read in its source, not seen at work."""

    name: str
    variable: str
    offer: Callable[[Mapping[str, str], Interfaces, Sequence[str]], Offer | None]
    """From the ranks' environment, the interfaces, and what the host's own name resolves to; None if the
    rules leave it open."""
    emulated: bool = True

    def __call__(self, env: Mapping[str, str], interfaces: Interfaces, own: Sequence[str]) -> Offer | None:
        return None if is_untold(env.get(self.variable, "")) else self.offer(env, interfaces, own)


def _of_gloo(env: Mapping[str, str], interfaces: Interfaces, own: Sequence[str]) -> Offer | None:
    wish = env.get("GLOO_SOCKET_IFNAME", "")
    if len(wish) > 1:
        return _first_address([wish.partition(",")[0]], interfaces, f"GLOO_SOCKET_IFNAME={wish}")
    held = {address for addresses in interfaces.values() for address in addresses}
    for address in own:
        if is_loopback(address) or address in held:
            return Offer(address, interface_with(address, interfaces), "its own name resolves to it")
    return Offer(LOOPBACK, "lo", "its own name resolves to no address of its own")


def _of_nccl(env: Mapping[str, str], interfaces: Interfaces, _: Sequence[str]) -> Offer | None:
    versions = {"AF_INET": (4,), "AF_INET6": (6,)}.get(env.get("NCCL_SOCKET_FAMILY", ""), (4, 6))
    wish = env.get("NCCL_SOCKET_IFNAME", "")
    if len(wish) > 1:
        return _first_address(fitting(wish, interfaces), interfaces, f"NCCL_SOCKET_IFNAME={wish}", versions)
    if len(env.get("NCCL_COMM_ID", "")) > 1:
        return None  # it takes the interface in the network of that address
    orders = (fitting(order, interfaces) for order in ("ib", "^docker,lo,virbr", "docker", "lo", "virbr"))
    offers = (_first_address(names, interfaces, "NCCL's own order", versions) for names in orders)
    return next(filter(None, offers), None)


def _of_hccl(env: Mapping[str, str], interfaces: Interfaces, _: Sequence[str]) -> Offer | None:
    versions = (6, 4) if env.get("HCCL_SOCKET_FAMILY") == "AF_INET6" else (4, 6)
    address = env.get("HCCL_IF_IP", "")
    if address:
        interface = interface_with(address, interfaces)
        return Offer(address, interface, "HCCL_IF_IP") if interface else None
    wish = env.get("HCCL_SOCKET_IFNAME", "")
    if wish:
        return _first_address(fitting(wish, interfaces), interfaces, f"HCCL_SOCKET_IFNAME={wish}", versions)
    names = sorted(interfaces, key=lambda name: (name.startswith("lo"), name.startswith("docker"), name))
    return _first_address(names, interfaces, "HCCL's own order", versions)


def _first_address(
    names: Iterable[str], interfaces: Interfaces, why: str, versions: Sequence[int] = (4, 6)
) -> Offer | None:
    """The first address of the first version that these interfaces have at all."""
    found = [(address, name) for name in names if name for address in interfaces.get(name, ())]
    for version in versions:
        for address, name in found:
            if ipaddress.ip_address(address).version == version and address != "::1":
                return Offer(address, name, why)
    return None


LIBRARIES: Mapping[Backend, Library] = {
    Backend.GLOO: Library("gloo", "GLOO_SOCKET_IFNAME", _of_gloo, emulated=False),
    Backend.NCCL: Library("NCCL", "NCCL_SOCKET_IFNAME", _of_nccl),
    Backend.HCCL: Library("HCCL", "HCCL_SOCKET_IFNAME", _of_hccl),
}
