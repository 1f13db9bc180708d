"""The network as the host itself sees it: interfaces, addresses, routes, listeners, names."""

import ipaddress
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from doctor.api import Capture, Fact, Read, Run, UnreadableOutput, files
from doctor.text.hostprogram import host_program
from doctor.text.nodeset import is_ip


@dataclass(frozen=True, slots=True)
class Counters:
    """`speed` is in Mb/s; `down`: no link; `lower` is shared by the ipvlan interfaces of one machine."""

    mtu: int
    speed: int | None
    errors: int
    mac: str = ""
    down: bool = False
    lower: int = 0


_ASKED = "addresses:"
"""Printed before them, so that a host without any address differs from one whose answer is lost."""


def _addresses(capture: Capture) -> Mapping[str, tuple[str, ...]]:
    """An address may have a name of its own, as `eth0:1`, and is listed under both."""
    found: dict[str, list[str]] = {}
    for name, address, rest in re.findall(
        r"^\d+:\s+(\S+?)(?:@\S+)?\s+inet6?\s+([0-9a-fA-F.:]+)(?:/\d+)?( .*)?$", capture.stdout, re.MULTILINE
    ):
        if _is_address(address) and "deprecated" not in rest:
            found.setdefault(name, []).append(address)
            if label := re.search(rf" ({re.escape(name)}:\S{{1,15}}?)(?:\\|\s|$)", rest):
                found.setdefault(label[1], []).append(address)
    plain = re.match(r"no ip: (.*)", capture.stdout)
    if plain:
        found = {UNNAMED: [word for word in plain[1].split() if _is_address(word)]}
    if not any(found.values()) and (capture.stdout.strip() != _ASKED or capture.stderr.strip()):
        raise UnreadableOutput("ip addr printed no address")
    return {name: tuple(sorted(a, key=lambda x: ":" in x)) for name, a in found.items()}


UNNAMED = "?"
"""The interface name for addresses where neither `ip` nor a language that can ask the kernel is installed."""
ADDRESSES = Fact("addresses", Run(host_program(__file__, "network_addresses.sh")), _addresses)


def _links(capture: Capture) -> Mapping[str, Counters]:
    values: dict[str, dict[str, str]] = {}
    for path, text in files(capture).items():
        place = re.fullmatch(r"/sys/class/net/([^/]+)/(?:statistics/)?(\w+)", path)
        if place:
            values.setdefault(place[1], {})[place[2]] = text.strip()
    links = {}
    for name, seen in values.items():
        speed, flags = seen.get("speed", ""), seen.get("flags", "")
        links[name] = Counters(
            mtu=_number(seen.get("mtu", "")),
            speed=int(speed) if re.fullmatch(r"[1-9]\d{0,7}", speed) else None,
            errors=sum(_number(seen.get(key, "")) for key in ("rx_errors", "tx_errors", "rx_crc_errors")),
            mac=seen.get("address", "").lower(),
            lower=_number(seen.get("iflink", "")),
            down=seen.get("operstate", "") in ("down", "lowerlayerdown")
            or (re.fullmatch(r"0x[0-9a-f]{1,8}", flags) is not None and not int(flags, 16) & _UP),
        )
    return links


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,20}", text) else 0


LINKS = Fact(
    "links",
    Read(
        tuple(f"/sys/class/net/*/{name}" for name in ("mtu", "speed", "address", "iflink", "operstate"))
        + tuple(f"/sys/class/net/*/statistics/{name}" for name in ("rx_errors", "tx_errors", "rx_crc_errors"))
        + ("/sys/class/net/lo/flags",)
    ),
    _links,
)


@dataclass(frozen=True, slots=True)
class Route:
    """One IPv4 route of the main table. `kind` is "blackhole" or "unreachable" if it has no interface."""

    interface: str
    target: ipaddress.IPv4Network
    metric: int
    gateway: str = ""
    kind: str = ""

    def __str__(self) -> str:
        way = f" via {self.gateway}" if self.gateway else ""
        return f"{self.kind} {self.target}" if self.kind else f"{self.target}{way} dev {self.interface}"


@dataclass(frozen=True, slots=True)
class Routes:
    routes: tuple[Route, ...]

    def route_to(self, address: str) -> Route | None:
        """The route for traffic to an IPv4 address, by the main table (policy routing is not considered)."""
        try:
            wanted = ipaddress.IPv4Address(address)
        except ValueError:
            return None
        return best_route(self.routes, wanted)

    @property
    def cuts(self) -> set[int]:
        """The bounds of all routes: all addresses between two cuts take the same route."""
        ends = ((int(route.target[0]), int(route.target[-1]) + 1) for route in self.routes)
        return {cut for both in ends for cut in both}

    def towards(self, address: str) -> str | None:
        """The interface through which traffic to an IPv4 address leaves; None if it does not."""
        best = self.route_to(address)
        return best.interface if best and not best.kind else None

    @property
    def default_interface(self) -> str | None:
        return self.towards("192.0.2.1")


def best_route(routes: Iterable[Route], target: ipaddress.IPv4Address, ignores: int = -1) -> Route | None:
    """The one that a packet takes; those with a prefix of up to `ignores` bits do not count."""
    fitting = (route for route in routes if target in route.target and route.target.prefixlen > ignores)
    return min(fitting, key=lambda route: (-route.target.prefixlen, route.metric), default=None)


_UP, _REJECT = 0x1, 0x200


def _routes(capture: Capture) -> Routes:
    text = files(capture).get("/proc/net/route", "")
    routes = []
    for row in (line.split() for line in text.splitlines()[1:]):
        if len(row) < 8 or not all(re.fullmatch(r"[0-9A-Fa-f]{8}", row[i]) for i in (1, 2, 7)):
            continue
        if not re.fullmatch(r"[0-9A-Fa-f]{4}", row[3]) or not int(row[3], 16) & _UP:
            continue
        base, gateway, mask = (int.from_bytes(bytes.fromhex(row[i])[::-1], "big") for i in (1, 2, 7))
        target = ipaddress.IPv4Network((base & mask, bin(mask).count("1")), strict=False)
        routes.append(
            Route(
                row[0],
                target,
                _number(row[6]),
                str(ipaddress.IPv4Address(gateway)) if gateway else "",
                ("unreachable" if int(row[3], 16) & _REJECT else "blackhole") if row[0] == "*" else "",
            )
        )
    return Routes(tuple(routes))


ROUTES = Fact("routes", Read(("/proc/net/route",)), _routes)


def _fixed_neighbours(capture: Capture) -> Mapping[str, str]:
    rows = (line.split() for line in files(capture).get("/proc/net/arp", "").splitlines()[1:])
    return {
        row[0]: row[3].lower()
        for row in rows
        if len(row) == 6 and re.fullmatch("0x[0-9a-f]{1,4}", row[2]) and int(row[2], 16) & _PERMANENT
    }


_PERMANENT = 0x4
FIXED_NEIGHBOURS = Fact("fixed-neighbours", Read(("/proc/net/arp",)), _fixed_neighbours)
"""IPv4 address -> MAC address, for neighbours entered by hand: the kernel never asks for them."""


@dataclass(frozen=True, slots=True)
class BoundPort:
    """`process` and `pids`, its and its parent's, only of the job's ports; `peer` is empty for a listener."""

    address: str
    port: int
    process: str
    pids: tuple[int, ...] = ()
    peer: str = ""
    """The other end of the connection that holds the port; only the job's ports are looked up for this."""

    def covers(self, address: str | None) -> bool:
        """Whether binding `address` on the same port would collide."""
        return self.address in ("0.0.0.0", "::", address or "") or address is None


_LISTENERS = host_program(__file__, "network_listeners.sh")
"""It does not call `ss`, which makes the kernel load a module. It looks up only owners of the job's ports.

Of connections, those on the job's ports count, other than logins over SSH and those of whoever asks: doctor
itself may be given such a port for as long as it runs.
"""


def _listeners(capture: Capture) -> tuple[BoundPort, ...]:
    if not capture.stdout.startswith("listeners"):
        raise UnreadableOutput("the list of listeners has no head")
    owners = {
        inode: (pid, name)
        for inode, pid, name in re.findall(r"^owner (\d+) (\d{1,10}) (.*)$", capture.stdout, re.MULTILINE)
    }
    parents = dict(re.findall(r"^parent (\d{1,10}) (\d{1,10})$", capture.stdout, re.MULTILINE))
    ours = {*re.findall(r"^ours (\d{1,10})$", capture.stdout, re.MULTILINE)}
    found = []
    for row in (line.split() for line in capture.stdout.splitlines()):
        ends = [_END.fullmatch(word) for word in row[1:3]] if len(row) > 9 else []
        local, remote = ends if len(ends) == 2 else (None, None)
        pid, name = owners.get(row[9], ("", "")) if local else ("", "")
        if local and remote and (row[3] == "0A" or (row[3] in _CONNECTED and pid not in ours)):
            pids = tuple(int(known) for known in (pid, parents.get(pid, "")) if known)
            process = f"{name} (pid {pid})" if pid else ""
            peer = "" if row[3] == "0A" else f"{_unpacked(remote[1])}:{int(remote[2], 16)}"
            found.append(BoundPort(_unpacked(local[1]), int(local[2], 16), process, pids, peer))
    return tuple(found)


_END = re.compile(r"([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})")
_CONNECTED = ("01", "02", "08")
"""The states of a connection whose process still holds it."""


def _unpacked(text: str) -> str:
    """An address of /proc/net/tcp: 32-bit words in the machine's byte order (little-endian)."""
    words = (bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8))
    address = ipaddress.ip_address(b"".join(words))
    return str(getattr(address, "ipv4_mapped", None) or address)


LISTENERS = Fact(
    "listeners",
    Run(lambda ask: _LISTENERS.replace("WANTED", " ".join(f"{port:04X}" for port in ask.ports) or "none")),
    _listeners,
)


@dataclass(frozen=True, slots=True)
class ResolvedNames:
    """The addresses that this host resolves names to, in the resolver's order; an empty tuple: not found."""

    addresses: Mapping[str, tuple[str, ...]]
    own: str


_LOOK_UP = host_program(__file__, "network_names.sh")
"""All names in one process: only the first line of each ends with a name. If one fails to resolve, or this
takes long, they are resolved one by one, because the output does not show which one failed. If `q` is set,
the probe itself ends all of it soon."""


def _names(capture: Capture) -> ResolvedNames:
    found: dict[str, list[str]] = {}
    own = ""
    current: list[str] | None = None
    for line in capture.stdout.splitlines():
        if line.startswith("? "):
            own = own or line[2:].strip()
            current = found.setdefault(line[2:].strip(), [])
        elif current is not None:
            word = line.split(None, 1)[0] if line.strip() else ""
            if _is_address(word) and word not in current:
                current.append(word)
    if capture.rc and not current:
        found.pop(next(reversed(found), ""), None)  # its lookup was cut short
    if own not in found:
        raise UnreadableOutput(
            "looking up names did not end in time" if capture.rc else "no name was looked up"
        )
    return ResolvedNames({name: tuple(addresses) for name, addresses in found.items()}, own)


_is_address = lru_cache(4096)(is_ip)
_ASK = Run(lambda ask: _LOOK_UP.replace("NAMES", " ".join(map(shlex.quote, ask.names))))
"""The host's own name is first: a dead DNS server may end the list early."""
NAMES = Fact("names", _ASK, _names, timeout=12, slow=True, partial=True)
