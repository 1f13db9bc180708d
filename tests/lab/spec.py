"""Who is who on the lab's network: names, addresses and hardware addresses, all computed from a number."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from pathlib import Path

# Reserved for benchmarks (RFC 2544): never a real peer of the machine.
NETWORK = IPv4Address("198.18.0.0")
DATA_NETWORK = IPv4Address("198.19.0.0")
NETWORK6 = IPv6Address("fd00:c612::")
CONTROLLER = IPv4Interface("198.18.0.1/16")
CONTROLLER6 = IPv6Interface("fd00:c612::1/64")


@dataclass(frozen=True, slots=True)
class Cable:
    """From an interface of a host to a port of a switch; both are interfaces."""

    interface: str
    switch: str
    port: str
    mac: str

    def plug(self, pid: int) -> list[str]:
        """Lines for `ip -batch` on the controller; the host is the one of process `pid`."""
        return [
            f"link add {self.port} type veth peer name {self.interface} address {self.mac} netns {pid}",
            f"link set {self.port} master {self.switch} up",
        ]

    @property
    def unplug(self) -> str:
        return f"link del {self.port}"


@dataclass(frozen=True, slots=True)
class Spec:
    """One host before it runs. Its addresses, including the hardware address, survive a reboot, so that
    neighbours need not learn them again.
    """

    index: int
    name: str
    directory: Path
    disk: str
    keep: tuple[Path, ...]
    data: bool

    @property
    def address(self) -> str:
        return str(NETWORK + 10 + self.index)

    @property
    def address6(self) -> str:
        return str(NETWORK6 + 10 + self.index)

    @property
    def data_address(self) -> str:
        """Its address on the second network if there is one, otherwise its only address."""
        return str(DATA_NETWORK + 10 + self.index) if self.data else self.address

    @property
    def cables(self) -> tuple[Cable, ...]:
        low = f"{self.index >> 8:02x}:{self.index & 255:02x}"
        first = Cable("eth0", "lan", f"port{self.index}", f"02:00:c6:12:{low}")
        second = Cable("eth1", "data", f"data{self.index}", f"02:00:c6:13:{low}")
        return (first, second) if self.data else (first,)

    @property
    def key(self) -> Path:
        return self.directory / "host_key"
