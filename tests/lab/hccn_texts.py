"""What hccn_tool prints, product by product. Pure: a file's name -> its text.

`QUERY` is printed on stdout for `-QUERY -g`, and `QUERY.err` on stderr. If `QUERY.fail` exists, the query
fails: that file holds the exit code, the stream (1 or 2) and the message.
"""

import time
from collections.abc import Sequence

from tests.support.captures import sample
from tests.support.cases import from_cases

from .npu_products import Product

NO_ADDRESS = "13 2 Get ipconf failed, because no ip was preset there!\n"
NO_GATEWAY = "2 2 Get gateway failed, because no gateway was preset there!\n"
NO_CERTIFICATE = "14 2 No certificate found, please set certs firstly!\n"
NO_MODULE = "20 1 Optical module is not present.\n"

DAY = 86400
LAST_FLAP = 30 * DAY
"""A healthy link came up this many seconds ago."""

Device = int | str
"""The number of a device, or a placeholder for it."""

Changes = Sequence[tuple[float, bool]]
"""How long ago a link changed, in seconds, and whether it came up; newest first."""

HEALTHY: Changes = ((LAST_FLAP, True), (LAST_FLAP + 1, False), (LAST_FLAP + 15, True))

_OPTICAL = from_cases(__file__, "_OPTICAL", str)

_PORTS = from_cases(__file__, "_PORTS", str)
_LLDP = from_cases(__file__, "_LLDP", str)
_CAPTURED = from_cases(__file__, "_CAPTURED", dict[str, str])
"""Queries, and the file with a real answer."""


def own(product: Product, host: int, device: int) -> dict[str, str]:
    """The files of one device only; hosts are numbered from 1."""
    if product.name == "atlas-950":
        return {"dev_info": ports(True)}
    address, netmask = product.address(host, device)
    inside, inside_mask = product.vnic(host, device)
    return {
        "ip": ip(product, address, netmask),
        "mac": f"mac addr: 84:46:fe:00:{host & 255:02x}:{device:02x}\n",
        "vnic": f"vnic link status: UP\nvnic ipaddr: {inside}\nvnic netmask: {inside_mask}\n",
    } | ({} if product.modern else {"netdetect": f"netdetect address: {product.detect(device)}\n"})


def common(product: Product, host: int) -> dict[str, str]:
    """The files of all devices of a host that have no file of their own; @ stands for their number.

    An empty answer depends on the fabric, and the tool computes it.
    """
    if product.name == "atlas-950":
        return {}
    files = {
        "link": link(True),
        "netdetect": f"{_detect(product)}: {product.detect(0)}\n",
        "lldp": lldp(f"400GE1/{host}/@:1"),
        "optical": _OPTICAL.format(serial=f"{host:03}@"),
        "link_stat": link_stat(product, "@", HEALTHY),
        "tls": tls(product, "@"),
        "stat": stat(product),
        "speed": f"Speed: {product.speed} Mb/s\n",
        **{query: sample(f"hccn_tool/{name}.txt") for query, name in _CAPTURED.items()},
        "cfg": "config status:SUCCESS\n",
        "net_health": "",
        "ping": "",
    }
    if product.modern:
        files["ip-inet6.fail"] = NO_ADDRESS
    if product.gateway:
        files["gateway"] = gateway(product.gateway, "@")
    else:
        files["gateway.fail"] = NO_GATEWAY
    if product.name == "atlas-a3":
        files["hccs_ping"] = ""
    return files


def conf(product: Product, host: int) -> str:
    """The text of /etc/hccn.conf as the setters write it."""
    lines = []
    for device in range(product.devices) if product.name != "atlas-950" else ():
        address, netmask = product.address(host, device)
        lines += [f"address_{device}={address}", f"netmask_{device}={netmask}"]
        lines += [f"netdetect_{device}={product.detect(device)}"]
        lines += [f"gateway_{device}={product.gateway}"] if product.gateway else []
        lines += [f"send_arp_status_{device}=1", f"tls_enable_{device}=0"]
    return "".join(f"{line}\n" for line in lines)


def ip(product: Product, address: str, netmask: str) -> str:
    return f"ipaddr:{address}\nnetmask:{netmask}\n" + ("" if product.modern else "\n")


def link(up: bool) -> str:
    return f"link status: {'UP' if up else 'DOWN'}\n"


def gateway(address: str, device: Device) -> str:
    return f"default gateway:{address}, Iface:eth{device}\n"


def ports(up: bool) -> str:
    """The ports of a device that has several."""
    return _PORTS.format(state="UP" if up else "DOWN")


def lldp(port: str, system: str = "Versatile Routing Platform Software") -> str:
    return _LLDP.format(port=port, system=system)


def stat(product: Product) -> str:
    return sample(f"hccn_tool/stat_g_{'full_910b_fieldorder' if product.modern else 'short_910A'}.txt")


def link_stat(product: Product, device: Device, changes: Changes) -> str:
    """The link history, with times of the device's clock."""
    now = time.time()
    head = f"[devid {device}]"
    lines = [f"current time        : {time.ctime(now)}"]
    lines += [f"link up count       : {sum(up for _, up in changes)}"]
    if product.modern:
        lines += [f"link down count     : {sum(not up for _, up in changes)}"]
    lines += [f"link change records :{'' if changes else ' NA'}"]
    lines += [f"    {time.ctime(now - ago)}    LINK {'UP' if up else 'DOWN'}" for ago, up in changes]
    return "".join(f"{head}{line}\n" for line in lines)


def tls(product: Product, device: Device, on: bool = False, days_left: int = 3650) -> str:
    """The answer about TLS. The expiry line of an expired certificate is left out: it goes to stderr."""
    lines = [
        f"dev_id:{device}, tls switch[{on:d}](0:disable, 1:enable), tls preconfigured[1]"
        "(0:non-preset, 1:preset), tls alarm time threshold[60]days"
    ]
    for kind, name in (("pub", "server"), ("ca1", "Huawei Equipment CA")):
        until = time.time() + DAY * (days_left if kind == "pub" else 3650)
        lines += [f"dev_id:{device}, [{kind} cert] info:"]
        lines += [f"\t subject[/C=CN/O=Huawei/CN={name}]"] if product.modern else []
        lines += ["\t issuer[/C=CN/O=Huawei/CN=Huawei Equipment CA]"]
        lines += ["\t start_time[Wed Feb 19 03:19:21 2020 GMT]"]
        lines += [f"\t end_time[{time.asctime(time.gmtime(until))} GMT]"]
        if until > time.time():
            lines += [expiry(until < time.time() + 60 * DAY)] if product.modern else []
    return "".join(f"{line}\n" for line in lines)


def expiry(status: int) -> str:
    return f"\t tls expiration status[{status:d}](0:normal, 1:near expiration, 2:has expired)"


def _detect(product: Product) -> str:
    """The newer tool has a shorter message."""
    return "netdetect addr" if product.name == "atlas-a3" else "netdetect address"
