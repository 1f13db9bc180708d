"""The Ascend products that the lab emulates: how many devices, which names and addresses, which versions."""

from dataclasses import dataclass

from tests.support.cases import from_cases

Where = tuple[str, str]
"""An address and its netmask."""


@dataclass(frozen=True, slots=True)
class Product:
    """What differs from product to product; everything is computed from the number of a host or device.

    `chips` is the number of devices on a card. `speed` is in Mb/s. `pci` is vendor and device together.
    `idle_mb` is the memory in use on a device without processes.
    """

    name: str
    pci: str
    devices: int
    chips: int
    chip: str
    hbm_mb: int
    idle_mb: int
    speed: int
    driver: str
    driver_fw: str
    firmware: str
    cann: str

    @property
    def modern(self) -> bool:
        """Whether it is Atlas A2 or later, which print more than the first products."""
        return self.name != "atlas-training"

    def card(self, device: int) -> tuple[int, int]:
        """The card of a device, and the chip on it."""
        return divmod(device, self.chips)

    def bus(self, device: int) -> str:
        return f"0000:{0x01 + 8 * device:02X}:00.0"

    def address(self, host: int, device: int) -> Where:
        """Atlas training: devices 0 and 4, 1 and 5, … share a segment. Others: one segment for all."""
        if self.name == "atlas-training":
            return f"192.168.{100 + device % 4}.{98 + 2 * host + (device < 4)}", "255.255.255.0"
        return f"{self._network}.{host}.{10 + device}", "255.255.0.0"

    def detect(self, device: int) -> str:
        """The address that the device probes: the switch in its segment."""
        return f"192.168.{100 + device % 4}.1" if self.name == "atlas-training" else f"{self._network}.0.1"

    @property
    def gateway(self) -> str | None:
        return f"{self._network}.0.1" if self.modern else None

    @property
    def routers(self) -> frozenset[str]:
        """Addresses of the switches."""
        return frozenset(self.detect(device) for device in range(self.devices))

    def vnic(self, host: int, device: int) -> Where:
        """The address on the links inside the server or the super pod."""
        return f"192.168.{host}.{199 + device}", "255.255.255.0"

    @property
    def installed(self) -> dict[str, str]:
        """The files that show the installed versions: path -> text."""
        toolkit = "ascend-toolkit/latest/aarch64-linux/ascend_toolkit_install.info"
        files = {"driver/version.info": _DRIVER, "firmware/version.info": _FIRMWARE, toolkit: _CANN}
        return {f"/usr/local/Ascend/{path}": text.format(self) for path, text in files.items()}

    @property
    def _network(self) -> str:
        return "10.30" if self.name == "atlas-a3" else "10.20"


_DRIVER = from_cases(__file__, "_DRIVER", str)
_FIRMWARE = from_cases(__file__, "_FIRMWARE", str)
_CANN = from_cases(__file__, "_CANN", str)

PRODUCTS = from_cases(__file__, "PRODUCTS", dict[str, Product])
