"""The network interface that the ranks must use: the one with the host's data address."""

import contextlib
import fcntl
import ipaddress
import os
import socket
import struct
from collections.abc import Mapping

# Each backend reads its own variable; gloo and HCCL guess by host name, and guess wrong on many machines.
VARIABLES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME")
_SIOCGIFADDR = 0x8915


def interface_of(address: str) -> "str | None":
    """The interface with this address; None for an alias, a name, or an address of another host."""
    try:
        wanted = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if wanted.is_loopback:
        return "lo"
    return _of_ipv6(wanted) if wanted.version == 6 else _of_ipv4(wanted)


def _of_ipv4(wanted: "ipaddress.IPv4Address") -> "str | None":
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if answer[20:24] == wanted.packed:
                    return name
    return None


def _of_ipv6(wanted: "ipaddress.IPv6Address") -> "str | None":
    with contextlib.suppress(OSError), open("/proc/net/if_inet6") as table:
        for line in table:
            fields = line.split()
            if len(fields) == 6 and fields[0] == wanted.packed.hex():
                return fields[5]
    return None


def environment(given: "Mapping[str, str]", interface: "str | None") -> "dict[str, str]":
    """The variables of the ranks' interpreter: ours, the requested ones, and what a quiet run needs."""
    chosen = dict(os.environ)
    chosen.update(given)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        chosen[name] = "1"
    chosen["PYTHONDONTWRITEBYTECODE"] = chosen["PYTHONUNBUFFERED"] = "1"
    # A device's library starts threads and must not be loaded before the ranks are forked:
    # https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html
    chosen["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    # The last words of a rank should be its own, not torch's remarks on names and on coming changes.
    chosen.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    chosen.setdefault("PYTHONWARNINGS", "ignore")
    if interface:
        for name in VARIABLES:
            chosen.setdefault(name, interface)
    return chosen
