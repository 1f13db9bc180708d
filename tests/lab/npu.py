"""One emulated NPU, and every fault that it can have."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING

from . import hccn_texts as says
from .smi_tables import Process

if TYPE_CHECKING:
    from .npus import NpuHost


class Npu:
    """Assigned settings are also written to /etc/hccn.conf, as when a person runs hccn_tool."""

    def __init__(self, host: NpuHost, device: int) -> None:
        self.host = host
        self.device = device
        self.optical = Lines(self, "optical", " : ", 21)
        self.counters = Lines(self, "stat", ":", 0)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        return f"{self.host.host.name}.{self.device}"

    # Any output of hccn_tool.

    def says(self, query: str, text: str) -> None:
        """Set the output of `hccn_tool -i N -QUERY -g`."""
        self._silence(query)
        self.host.put(f"{self.device}/{query}", text)

    def fails(self, query: str, text: str, code: int = 1, stream: int = 2) -> None:
        """Make the query fail with this message on stdout (1) or stderr (2)."""
        self._silence(query)
        self.host.put(f"{self.device}/{query}.fail", f"{code} {stream} {text}\n")

    def said(self, query: str) -> str | None:
        """The output of a query; None if it fails."""
        if self.host.read(f"{self.device}/{query}.fail") is not None:
            return None
        own = self.host.read(f"{self.device}/{query}")
        common = self.host.read(f"all/{query}") if own is None else None
        return own if common is None else common.replace("@", str(self.device))

    # The network.

    @property
    def address(self) -> str | None:
        return self._value("ip", r"ipaddr:(\S+)")

    @address.setter
    def address(self, address: str | None) -> None:
        netmask = self.netmask or self.host.product.address(self.host.number, self.device)[1]
        self._set_ip(address, netmask)

    @property
    def netmask(self) -> str | None:
        return self._value("ip", r"netmask:(\S+)")

    @netmask.setter
    def netmask(self, netmask: str) -> None:
        self._set_ip(self.address, netmask)

    @property
    def gateway(self) -> str | None:
        return self._value("gateway", r"default gateway:([^,\s]+)")

    @gateway.setter
    def gateway(self, address: str | None) -> None:
        if address is None:
            self._fail("gateway", says.NO_GATEWAY)
        else:
            self.says("gateway", says.gateway(address, self.device))
        self.host.configure(self.device, gateway=address)

    @property
    def detect(self) -> str | None:
        """The address that the device probes."""
        address = self._value("netdetect", r": (\S+)")
        return None if address == "0.0.0.0" else address

    @detect.setter
    def detect(self, address: str | None) -> None:
        words = (self.said("netdetect") or "netdetect address: ").rpartition(" ")[0]
        self.says("netdetect", f"{words} {address or '0.0.0.0'}\n")
        self.host.configure(self.device, netdetect=address)

    @property
    def tls(self) -> bool | None:
        """None means that there is no certificate, and therefore no TLS."""
        switch = self._value("tls", r"tls switch\[([01])\]")
        return None if switch is None else switch == "1"

    @tls.setter
    def tls(self, on: bool | None) -> None:
        if on is None:
            self._fail("tls", says.NO_CERTIFICATE)
        else:
            self.says("tls", says.tls(self.host.product, self.device, on))
        self.host.configure(self.device, tls_enable=None if on is None else str(int(on)))

    def certificate(self, days_left: int) -> None:
        """Set the expiry of the certificate; the tool reports an expired one on stderr."""
        product = self.host.product
        self.says("tls", says.tls(product, self.device, bool(self.tls), days_left))
        if product.modern and days_left <= 0:
            self.host.put(f"{self.device}/tls.err", f"{says.expiry(2)}\n")

    @property
    def link_up(self) -> bool:
        return self._value("link", r"link status: (\S+)") == "UP"

    @link_up.setter
    def link_up(self, up: bool) -> None:
        """The state of the link as a cable or a module changes it: no setter of hccn_tool helps."""
        if self.host.product.name == "atlas-950":
            self.says("dev_info", says.ports(up))
            return
        self.says("link", says.link(up))
        self.host.remove(f"{self.device}/shut")
        self.link_changes(*([] if up else [(600.0, False)]), *says.HEALTHY)

    def link_changes(self, *changes: tuple[float, bool]) -> None:
        """Set how many seconds ago the link changed, and whether it came up; newest first."""
        self.says("link_stat", says.link_stat(self.host.product, self.device, changes))

    @property
    def net_health(self) -> str | None:
        """None if it follows from the link, the probed address and the fabric."""
        return self._value("net_health", r"net health status: (.*)")

    @net_health.setter
    def net_health(self, status: str) -> None:
        self.says("net_health", f"net health status: {status}\n")

    def neighbour(self, port: str, system: str) -> None:
        """Set how the switch describes itself over LLDP."""
        self.says("lldp", says.lldp(port, system))

    def speed(self, megabits: int | None) -> None:
        self.says("speed", f"Speed: {'Unknown!' if megabits is None else f'{megabits} Mb/s'}\n")

    def without_module(self) -> None:
        """Nothing is plugged into the optical cage."""
        self._fail("optical", says.NO_MODULE)

    def unconfigured(self) -> None:
        """As after a reset without a recovery: the device has lost the settings in /etc/hccn.conf."""
        self._fail("ip", says.NO_ADDRESS)
        self._fail("gateway", says.NO_GATEWAY)
        words = (self.said("netdetect") or "").rpartition(" ")[0]
        self.says("netdetect", f"{words} 0.0.0.0\n")

    # What npu-smi shows.

    def health(self, state: str, *codes: str, errors: tuple[str, ...] = ()) -> None:
        """Set OK, Warning, Alarm, Critical or UNKNOWN, with fault codes such as 80E18400."""
        self._chip(health=state, codes=codes, errors=errors)

    def processes(self, *running: tuple[str, int, int]) -> None:
        """Name, process id and memory in MB of each; a blank name belongs to another container."""
        self._chip(processes=tuple(Process(*process) for process in running))

    def memory(self, megabytes: int) -> None:
        """Set the HBM in use although no listed process uses it."""
        self._chip(idle_hbm_mb=megabytes)

    def ecc(self, **counts: int) -> None:
        """Set counts of HBM errors, such as double_bit_error_count=2."""
        self._chip(ecc={f"HBM {name.replace('_', ' ').title()}": count for name, count in counts.items()})

    def _silence(self, query: str) -> None:
        for end in ("", ".err", ".fail"):
            self.host.remove(f"{self.device}/{query}{end}")

    def _chip(self, **changes: object) -> None:
        self.host.chips[self.device] = replace(self.host.chips[self.device], **changes)  # type: ignore[arg-type]
        self.host.tell()

    def _set_ip(self, address: str | None, netmask: str) -> None:
        if address is None:
            self._fail("ip", says.NO_ADDRESS)
        else:
            self.says("ip", says.ip(self.host.product, address, netmask))
        self.host.configure(self.device, address=address, netmask=netmask if address else None)

    def _value(self, query: str, pattern: str) -> str | None:
        found = re.search(pattern, self.said(query) or "")
        return found[1] if found else None

    def _fail(self, query: str, failure: str) -> None:
        code, stream, text = failure.strip().split(" ", 2)
        self.fails(query, text, int(code), int(stream))


class Lines(MutableMapping[str, str]):
    """`key : value` lines of a query, to be changed one by one."""

    def __init__(self, npu: Npu, query: str, colon: str, width: int) -> None:
        self._npu = npu
        self._query = query
        self._colon = colon
        self._width = width

    def __getitem__(self, key: str) -> str:
        return self._read()[key]

    def __setitem__(self, key: str, value: object) -> None:
        self._write({**self._read(), key: str(value)})

    def __delitem__(self, key: str) -> None:
        lines = self._read()
        del lines[key]
        self._write(lines)

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def _read(self) -> dict[str, str]:
        lines = (self._npu.said(self._query) or "").splitlines()[1:]
        pairs = (line.partition(self._colon.strip()) for line in lines)
        return {key.strip(): value.strip() for key, _, value in pairs}

    def _write(self, lines: dict[str, str]) -> None:
        head = (self._npu.said(self._query) or "").partition("\n")[0]
        body = "".join(f"{key:<{self._width}}{self._colon.lstrip()}{value}\n" for key, value in lines.items())
        self._npu.says(self._query, f"{head}\n{body}")
