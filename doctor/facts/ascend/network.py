"""The network of Ascend devices: addresses and links, as hccn_tool and /etc/hccn.conf show them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
)

from doctor.api import Capture, Fact, Run, UnreadableOutput
from doctor.facts.ascend.hccn_tool import HCCN, PerDevice, hccn
from doctor.facts.device_tools import ToolCall
from doctor.facts.key_values import value_of


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a device's own network port."""

    ip: str
    prefix: int

    @property
    def _interface(self) -> IPv4Interface | IPv6Interface:
        return ip_interface(f"{self.ip}/{self.prefix}")

    @property
    def netmask(self) -> str:
        return str(self._interface.netmask)

    @property
    def network(self) -> IPv4Network | IPv6Network:
        return self._interface.network


def _ip(text: str) -> IPv4Address | IPv6Address | None:
    """The address; None if none is set, which the tool prints as 0.0.0.0."""
    try:
        found = ip_address(text)
    except ValueError:
        raise UnreadableOutput("") from None
    if "%" in text:
        raise UnreadableOutput("its address has a scope")  # a scope may be any text
    return None if found.is_unspecified else found


def _prefix(netmask: str) -> int:
    try:
        bits = int(IPv4Address(netmask))
    except ValueError:
        raise UnreadableOutput(f"its netmask is {netmask[:40]!r}") from None
    ones = bits.bit_count()
    if bits != (0xFFFFFFFF << (32 - ones)) & 0xFFFFFFFF:
        raise UnreadableOutput(f"its netmask is {netmask!r}")
    return ones


def _address(call: ToolCall) -> Address | None:
    if re.search(r"^(?:ipaddr|ipv6_address)\s{0,20}:", call.text, re.MULTILINE) is None:
        if "no ip was preset" in call.text:
            return None
        raise UnreadableOutput("")
    ip = _ip(value_of(call.text, "ipaddr", "ipv6_address"))
    if ip is None:
        return None
    if isinstance(ip, IPv4Address):
        return Address(str(ip), _prefix(value_of(call.text, "netmask")))
    length = value_of(call.text, "prefix_length")
    if not re.fullmatch(r"[0-9]{1,3}", length) or int(length) > 128:
        raise UnreadableOutput(f"its prefix length is {length[:40]!r}")
    return Address(str(ip), int(length))


NPU_ADDRESSES: Fact[PerDevice[Address | None]] = hccn(
    "npu-addresses",
    "-i $n -ip -g",
    _address,
    then="case $o in *'no ip was preset'*) q $n -i $n -ip -inet6 -g; esac",
    everywhere=True,
)
"""The address of each device; None if no address is set."""


def _link(call: ToolCall) -> bool:
    state = value_of(call.text, "link status").upper()
    if state not in ("UP", "DOWN"):
        raise UnreadableOutput("")
    return state == "UP"


NPU_LINKS: Fact[PerDevice[bool]] = hccn("npu-links", "-i $n -link -g", _link, everywhere=True)
"""Whether the link is up."""


NPU_NET_HEALTH: Fact[PerDevice[str]] = hccn(
    "npu-net-health", "-i $n -net_health -g", lambda call: value_of(call.text, "net health status")[:80]
)
"""The health as the tool prints it: some versions print "Socket fail", others "Socket failed"."""


def _detect(call: ToolCall) -> str | None:
    ip = _ip(value_of(call.text, "netdetect address", "netdetect addr"))
    return str(ip) if ip else None


NPU_DETECT: Fact[PerDevice[str | None]] = hccn("npu-detect", "-i $n -netdetect -g", _detect)
"""The address used to test the device's network health; None if none is set."""


def _gateway(call: ToolCall) -> str | None:
    if "no gateway was preset" in call.text:
        return None
    ip = _ip(re.split(r"[,\s]", value_of(call.text, "default gateway"), maxsplit=1)[0])
    return str(ip) if ip else None


NPU_GATEWAYS: Fact[PerDevice[str | None]] = hccn("npu-gateways", "-i $n -gateway -g", _gateway)
"""The gateway of each device; None if no gateway is set."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Whether a device encrypts. `expired` is the end date of a certificate that the tool calls expired."""

    on: bool
    expired: str = ""


def _tls(call: ToolCall) -> Tls:
    """Whether TLS is on. The warning about an expired certificate goes to stderr and may come first."""
    if "No certificate found" in call.text:
        return Tls(on=False)
    switch = re.search(r"\btls switch\[([01])\]", call.text)
    if not switch:
        raise UnreadableOutput("")
    ends = re.findall(r"\bend_time\[([^\]\n]{1,60})\]", call.text)
    expired = "tls expiration status[2]" in call.text
    return Tls(switch[1] == "1", min(ends, key=_when, default="at an unknown time") if expired else "")


def _when(text: str) -> float:
    """The time as a sort key: of several certificates, the one that ended first counts."""
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y GMT").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        return float("inf")


NPU_TLS: Fact[PerDevice[Tls]] = hccn("npu-tls", "-i $n -tls -g", _tls, writes="tls_enable")
"""TLS is off if there is no certificate."""


def _speed(call: ToolCall) -> int | None:
    said = value_of(call.text, "speed")
    if said.startswith("Unknown"):
        return None
    number = re.match(r"([0-9]{1,9})\s?Mb/s", said)
    if not number:
        raise UnreadableOutput("")
    return int(number[1])


NPU_SPEEDS: Fact[PerDevice[int | None]] = hccn("npu-speeds", "-i $n -speed -g", _speed)
"""In Mb/s; None if the tool does not know the speed."""

_CONF = "/etc/hccn.conf"


def _conf(capture: Capture) -> Mapping[int, Mapping[str, str]]:
    if capture.rc:
        absent = "No such file" in capture.stderr
        raise UnreadableOutput(f"{_CONF} {'is not there' if absent else 'cannot be read'}")
    found: dict[int, dict[str, str]] = {}
    for key, device, value in re.findall(
        r"^[ \t]{0,20}([a-z][a-z0-9_]{0,40})_([0-9]{1,3})[ \t]{0,20}=(.{0,200})", capture.stdout, re.MULTILINE
    ):
        found.setdefault(int(device), {})[key] = value.strip()
    return dict(sorted(found.items()))


HCCN_CONF: Fact[Mapping[int, Mapping[str, str]]] = Fact(
    "hccn-conf", Run(f"cat {_CONF}"), _conf, needs_root=True, ok_rc=(0, 1), cap=100_000, group=HCCN
)
"""Device -> key without its _N -> value: the settings applied when the host starts."""


def _hccp_exists(call: ToolCall) -> bool:
    state = value_of(call.text, "device hccp process")
    if state not in ("exist", "not exist"):
        raise UnreadableOutput("it does not say whether the process exists")
    return state == "exist"


HCCP: Fact[PerDevice[bool]] = hccn("npu-hccp", "-process -g", _hccp_exists)
"""Whether an NPU still has the process that HCCL starts on it; until it is gone, HCCL refuses a new one."""
