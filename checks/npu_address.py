"""Addresses of Ascend devices: present, as configured, and each used by one device only."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address

from doctor.api import (
    HERE,
    PLAN,
    Backend,
    Confidence,
    Damage,
    Evidence,
    Here,
    JobPlan,
    Problem,
    Scope,
    Severity,
    Undecided,
    check,
    grouped,
    maybe,
)
from doctor.facts.ascend.hccn_tool import PerDevice, split_known
from doctor.facts.ascend.network import HCCN_CONF, NPU_ADDRESSES, NPU_DETECT, NPU_GATEWAYS, Address
from doctor.facts.system import DEVICES, Devices
from doctor.rules.devices import HostDevice, OddDevices, named, note_unknown, of_cluster, of_host, problem_of
from doctor.rules.npu_segments import RAILS, continued, fabric_unused, products_of, severity_of

CONF = "/etc/hccn.conf"
SHOWN = 8
Conf = Mapping[int, Mapping[str, str]]
Addresses = Mapping[str, PerDevice[Address | None]]
Differences = tuple[tuple[str, str, str], ...]
"""Key, the file's value, the device's."""


class AddressPattern:
    """The pattern of a cluster's addresses: a sequence on each host, a segment for each device number."""

    def __init__(self, held: Mapping[HostDevice, Address]) -> None:
        self._held = held
        self._on_host: dict[str, dict[int, int]] = defaultdict(dict)
        rails: dict[int, Counter[IPv4Network | IPv6Network]] = defaultdict(Counter)
        for (host, number), address in held.items():
            self._on_host[host][number] = int(ip_address(address.ip))
            rails[number][address.network] += 1
        self._rails = {number: (votes.most_common(2), votes.total()) for number, votes in rails.items()}

    def in_sequence(self, seat: HostDevice) -> bool | None:
        """Whether it continues its host's others; Atlas training servers have two rows, 0-3 and 4-7."""
        host, device = seat
        others = {n: ip for n, ip in self._on_host[host].items() if n != device}
        near = {n: ip for n, ip in others.items() if n // RAILS == device // RAILS}
        own = self._on_host[host][device]
        return next(
            (own == ip for ip in (continued(others, device), continued(near, device)) if ip is not None), None
        )

    def in_rail(self, seat: HostDevice) -> bool | None:
        """Whether it is in the segment of most devices with its number on other hosts."""
        own = self._held[seat].network
        most, held = self._rails[seat[1]]
        usual = (segment for segment, votes in most if 2 * (votes - (segment == own)) > held - 1 > 0)
        return next((own == segment for segment in usual), None)


@check(
    "device-ip-missing",
    NPU_ADDRESSES,
    DEVICES,
    PLAN,
    HERE,
    damage=Damage.BLOCKED,
    remedy="look-at-npu-address",
    causes=("device-ip-not-applied",),
    backends=(Backend.HCCL,),
)
def device_ip_missing(
    addresses: PerDevice[Address | None], devices: Devices, plan: JobPlan, here: Here
) -> Iterator[Problem]:
    """An NPU has no IP address on the training network.

    Why it matters: HCCL connects NPUs of different hosts by these addresses, and rank tables name them.
    Without one the connection to this device fails or is never tried (EI0006, timeouts on all other ranks).

    What to do: give it the address that the network plan has for it
    (`hccn_tool -i N -ip -s address A netmask M`), or apply /etc/hccn.conf if that has one. It is a warning if
    the job does not need it: on one host (except for Atlas training servers, whose rank tables need
    addresses), and on an Atlas A3 host without any, whose super pod has its own network.
    """
    known, why = of_host(addresses, plan, here.name)
    lost = [device for device, address in known.items() if address is None]
    if lost:
        pod_only = devices.product == "atlas-a3" and not why and len(lost) == len(known)
        yield problem_of(
            lost,
            "it has no IP address",
            *(Evidence(f"hccn_tool -i {n} -ip -g", "no ip was preset there") for n in lost[:SHOWN]),
            expected="an address on the training network",
            actual="none is set",
            severity=Severity.WARN if pod_only or fabric_unused(plan, devices.product) else None,
        )
    if why:
        raise Undecided(why)


@check(
    "device-ip-not-applied",
    NPU_ADDRESSES,
    HCCN_CONF,
    PLAN,
    maybe(NPU_GATEWAYS),
    maybe(NPU_DETECT),
    maybe(DEVICES),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    remedy="apply-hccn-conf",
    backends=(Backend.HCCL,),
)
def device_ip_not_applied(
    addresses: Addresses,
    confs: Mapping[str, Conf],
    plan: JobPlan,
    gateways: Mapping[str, PerDevice[str | None]],
    detect: Mapping[str, PerDevice[str | None]],
    devices: Mapping[str, Devices],
) -> Iterator[Problem]:
    """An NPU uses other network settings than /etc/hccn.conf says.

    Why it matters: the file holds the planned settings, and rank tables are made from it. A reset or a driver
    upgrade loses the settings of the device; its peers then connect to an address that no device has.

    What to do: apply the file (`hccn_tool -i N -cfg recovery`), with no job on the device. If the file is
    wrong, set the right value with hccn_tool, which also writes the file. It is a warning for a job on one
    host (except for Atlas training servers), which does not use this network.
    """
    known, silent = of_cluster({host: own for host, own in addresses.items() if host in confs}, plan)
    wrong: dict[str, dict[int, Differences]] = {}
    for (host, device), address in known.items():
        way = split_known(gateways.get(host, {}))[0].get(device)
        detected = split_known(detect.get(host, {}))[0].get(device)
        found = _differences(confs[host].get(device, {}), address, way, detected)
        if found:
            wrong.setdefault(host, {})[device] = found
    for host, own in wrong.items():
        yield _not_applied(host, own, confs[host], severity_of(plan, *products_of(devices)))
    note_unknown(silent)


def _differences(
    conf: Mapping[str, str], address: Address | None, gateway: str | None, detect: str | None
) -> Differences:
    """Settings of the file that the device does not use: key, the file's value, the device's value."""
    pairs = []
    if "address" in conf:
        pairs.append(("address", conf["address"], address.ip if address else "none"))
    if "netmask" in conf and address and ":" not in address.ip:
        pairs.append(("netmask", conf["netmask"], address.netmask))
    if "gateway" in conf and gateway:
        pairs.append(("gateway", conf["gateway"], gateway))
    if "netdetect" in conf and detect:
        pairs.append(("netdetect", conf["netdetect"], detect))
    return tuple(pair for pair in pairs if _plain(pair[1]) != _plain(pair[2]))


def _plain(address: str) -> str:
    try:
        return str(ip_address(address.strip()))
    except ValueError:
        return address.strip()


def _not_applied(
    host: str, wrong: Mapping[int, Differences], conf: Conf, severity: Severity | None
) -> Problem:
    lines = [(device, *one) for device, found in wrong.items() for one in found]

    def listed(column: int) -> str:
        shown = [f"device {line[0]}: {line[1]} {line[column]}" for line in lines[:SHOWN]]
        more = len(lines) - len(shown)
        return "; ".join(shown) + (f"; and {more} more" if more else "")

    only = next(iter(wrong)) if len(wrong) == 1 else None
    settings = conf.get(only, {}) if only is not None else {}
    values: dict[str, str | int | tuple[str, ...]] = {"device": tuple(str(device) for device in wrong)}
    if {"address", "netmask"} <= settings.keys() and any(
        key in ("address", "netmask") for _, key, *_ in lines
    ):
        values |= {"ip": settings["address"], "netmask": settings["netmask"]}
    return problem_of(
        list(wrong),
        f"it does not use what {CONF} says",
        *(
            Evidence(CONF, f"{key}_{device}={ours}; hccn_tool says {theirs}")
            for device, key, ours, theirs in lines[:SHOWN]
        ),
        expected=f"{listed(2)} ({CONF})",
        actual=f"{listed(3)} (hccn_tool)",
        host=host,
        values=values,
        severity=severity,
    )


@check(
    "device-ip-duplicate",
    NPU_ADDRESSES,
    PLAN,
    maybe(HCCN_CONF),
    maybe(DEVICES),
    damage=Damage.BLOCKED,
    scope=Scope.CLUSTER,
    remedy="look-at-npu-address",
    causes=("device-ip-not-applied",),
    backends=(Backend.HCCL,),
)
def device_ip_duplicate(
    addresses: Addresses, plan: JobPlan, confs: Mapping[str, Conf], devices: Mapping[str, Devices]
) -> Iterator[Problem]:
    """Two NPUs have the same IP address.

    Why it matters: packets for one sometimes reach the other: connections open and stall, or time out on
    ranks that have nothing to do with it (EI0006). Addresses must be unique in the whole cluster.

    How the wrong device is known: its own /etc/hccn.conf has another address, or it breaks the sequence of
    addresses of its host or the segment of its number. If nothing decides, all are named.

    What to do: give the wrong one the address that the network plan has for it. It is a warning for a job on
    one host (except for Atlas training servers), which does not use this network.
    """
    known, silent = of_cluster(addresses, plan)
    held = {seat: address for seat, address in known.items() if address is not None}
    holders = grouped((_plain(address.ip), seat) for seat, address in held.items())
    doubled = {ip: tuple(seats) for ip, seats in holders.items() if len(seats) > 1}
    groups: dict[object, list[str]] = {}
    pattern = AddressPattern(held)
    wrong = {ip: _wrong(seats, held, confs, pattern) for ip, seats in doubled.items()}
    for ip, seats in doubled.items():
        at_fault = wrong[ip] or seats
        groups.setdefault((tuple(host for host, _ in at_fault), bool(wrong[ip])), []).append(ip)
    for ips in groups.values():
        decided = bool(wrong[ips[0]])
        seats = tuple(seat for ip in ips for seat in wrong[ip] or doubled[ip])
        shown = [f"{ip} on {named(doubled[ip])}" for ip in ips[:SHOWN]]
        more = f"; and {len(ips) - SHOWN} more" if len(ips) > SHOWN else ""
        expected = "an address of its own for every device of the cluster"
        odd = OddDevices(seats, decided, expected, "; ".join(shown) + more)
        yield _duplicate(odd, held, severity_of(plan, *products_of(devices)))
    note_unknown(silent)


def _wrong(
    seats: tuple[HostDevice, ...],
    held: Mapping[HostDevice, Address],
    confs: Mapping[str, Conf],
    pattern: AddressPattern,
) -> tuple[HostDevice, ...]:
    """All devices with one address except the one that it belongs to; empty if nothing decides."""
    configured = {s: confs.get(s[0], {}).get(s[1], {}).get("address", "") for s in seats}
    by_file = {s: _plain(ip) == _plain(held[s].ip) for s, ip in configured.items() if ip}
    in_sequence = {s: pattern.in_sequence(s) for s in seats}
    for fits in (by_file, in_sequence, {s: pattern.in_rail(s) for s in seats}):
        strays = tuple(seat for seat in seats if fits.get(seat) is False)
        if len(strays) == len(seats) - 1:
            return strays
    return ()


def _duplicate(odd: OddDevices, held: Mapping[HostDevice, Address], severity: Severity | None) -> Problem:
    return odd.problem(
        "another device has its IP address too" if odd.decided else "they have the same IP address",
        *(
            Evidence(f"{seat[0]}: hccn_tool -i {seat[1]} -ip -g", f"ipaddr:{held[seat].ip}")
            for seat in odd.seats[:SHOWN]
        ),
        severity=severity,
        confidence=Confidence.STRONG,
    )
