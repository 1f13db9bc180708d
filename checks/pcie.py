"""PCIe: whether devices are joined to their host by as many lanes, as fast, as their like."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from doctor.api import (
    VENDORS,
    Capture,
    Confidence,
    Damage,
    Evidence,
    Fact,
    Group,
    Place,
    Problem,
    Run,
    Scope,
    Skip,
    Undecided,
    check,
    maybe,
)
from doctor.facts.gpus import Gpus, gpus_named
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS, NvidiaHealth

NEARLY_ALL = 0.9
ENOUGH = 3
"""The number of other devices of the host that must agree before they alone accuse one that differs."""
SHOWN = 4


@dataclass(frozen=True, slots=True)
class PcieLink:
    """`kind`: class, vendor and device: "0302 10de2330". `lanes` are in use at `at`, of those that all places
    on the way to the processor have; `speed` is in GT/s. 0 is unknown.
    """

    kind: str
    lanes: int
    of_lanes: int
    speed: float
    of_speed: float
    at: str

    @property
    def is_network(self) -> bool:
        return self.kind.startswith("02")


_ROW = re.compile(r"([0-9a-f]{4,8}:[0-9a-f:.]{7}) 0x([0-9a-f]{4})[0-9a-f]{2} 0x(\w{4}) 0x(\w{4})\|(.+)")
_PLACE = re.compile(r"([0-9a-f]{4,8}:[0-9a-f:.]{7}) (\d{1,3}) (\d{1,3}) ([\d.]{1,5}|\w*) ([\d.]{1,5}|\w*)")
_NO_LANES = {"0", "63", "255"}
"""There is no link, or the device does not answer."""


def _links(capture: Capture) -> Mapping[str, PcieLink]:
    found = {}
    for line in capture.stdout.splitlines():
        row = _ROW.fullmatch(line)
        places = [_PLACE.fullmatch(text) for text in row[5].split("|")] if row else []
        way = [each for each in places if each and not {each[2], each[3]} & _NO_LANES]
        if row and way and way[0] is places[0]:
            lanes, at = min(((int(place[2]), place[1]) for place in way), key=lambda each: each[0])
            speed, of_speed = (min(_gigatransfers(place[n]) for place in way) for n in (4, 5))
            of_lanes = min(int(place[3]) for place in way)
            found[row[1]] = PcieLink(f"{row[2]} {row[3]}{row[4]}", lanes, of_lanes, speed, of_speed, at)
    return found


def _gigatransfers(text: str) -> float:
    return float(text) if re.fullmatch(r"\d{1,3}(\.\d)?", text) else 0


_WALK = r"""for d in /sys/bus/pci/devices/*; do
  read -r c <"$d/class" && read -r v <"$d/vendor" && read -r i <"$d/device" || continue
  case $c in 0x0302*|0x0300*|0x0380*|0x12*|0x0207*) ;;
  0x0200*) [ -e "$d/infiniband" ] || continue;;
  *) continue; esac
  cd -P "$d" || continue
  l=
  while read -r w <current_link_width && read -r m <max_link_width; do
    read -r s <current_link_speed; read -r t <max_link_speed
    l="$l|${PWD##*/} $w $m ${s%% *} ${t%% *}"
    cd ..
  done
  [ -z "$l" ] || echo "${d##*/} $c $v $i$l"
done 2>/dev/null
:
"""
PCIE_LINKS = Fact(
    "pcie-links",
    Run(_WALK),
    _links,
    timeout=4,
    cap=65536,
    group=Group(
        "accelerator or InfiniBand device",
        (*(file for vendor in VENDORS for file in vendor.where), "/sys/class/infiniband/*"),
        5,
    ),
)
"""By address: `0000:18:00.0`."""


@check(
    "pcie-link-slow",
    maybe(PCIE_LINKS),
    maybe(GPUS),
    maybe(GPU_HEALTH),
    damage=Damage.LOAD,
    scope=Scope.CLUSTER,
    remedy="look-at-pcie",
)
def pcie_link_slow(
    links: Mapping[str, Mapping[str, PcieLink]],
    gpus: Mapping[str, Gpus],
    health: Mapping[str, Mapping[int, NvidiaHealth]],
) -> Iterator[Problem]:
    """A GPU, NPU or InfiniBand card has fewer or slower PCIe lanes to its host than its like.

    Why it matters: all that the device exchanges with the host and the network passes there. At half the
    lanes it takes twice as long, and every step of the whole job waits for it.

    How it is known: the kernel shows the lanes and the speed of each place between the device and the
    processor; the narrowest counts. They are compared with what all of these places can do, and with the
    device of the same model at the same address on the other hosts of the job, nearly all of which must have
    more; or, if no other host has it as this one, with at least three devices of the model on the same host.
    Narrow slots, and what is the same on another host, are no fault. The link of an idle GPU may be slowed
    down to save power: its speed counts only if it is an NVIDIA GPU in state P0.

    What to do: reseat the card, its riser or its cable, and look for errors of the bus in the kernel log
    (`dmesg -T | grep -i aer`). If the link stays narrow, have the card, then the board examined.
    """
    if not any(links.values()):
        raise Skip("no device shows a PCIe link")
    alike: defaultdict[tuple[str, str], dict[str, PcieLink]] = defaultdict(dict)
    for host, own in links.items():
        for address, link in own.items():
            alike[address, link.kind][host] = link
    for host, own in links.items():
        there = {gpu.bus: gpu.index for gpu in gpus[host].listed} if host in gpus else {}
        awake = {index for index, told in health.get(host, {}).items() if told.said.get("pstate") == "P0"}
        found: dict[Slow, list[str]] = defaultdict(list)
        for address, link in own.items():
            others = [each for at, each in alike[address, link.kind].items() if at != host]
            beside = [each for at, each in own.items() if each.kind == link.kind and at != address]
            slow = _slow(link, others, _on_others, 2)
            if not any((each.lanes, each.speed) == (link.lanes, link.speed) for each in others):
                slow = slow or _slow(link, beside, _beside, ENOUGH)
            if slow and _is_settled(link, there.get(_bus(address)) in awake):
                found[slow].append(address)
        for slow, addresses in found.items():
            yield _problem(host, slow, addresses, there, own)
    if blind := tuple(host for host in gpus if host not in links):
        raise Undecided("its PCIe links are not known", blind)


def _on_others(count: int) -> str:
    return f"as on {count} other hosts of the job"


def _beside(count: int) -> str:
    return f"as {count} other devices of the host have"


def _bus(address: str) -> str:
    return address.rpartition(".")[0]


def _is_settled(link: PcieLink, awake: bool) -> bool:
    """Whether its present speed is what it can do: accelerators lower it to save power."""
    return link.is_network or awake or (link.speed >= link.of_speed > 0)


@dataclass(frozen=True, slots=True)
class Slow:
    """What is wrong, what the peers have, and what the device has."""

    summary: str
    expected: str
    actual: str


def _slow(link: PcieLink, peers: Sequence[PcieLink], whose: Callable[[int], str], enough: int) -> Slow | None:
    """None if it is as its peers are, or if that is not known."""
    if len(peers) < enough:
        return None
    wider = Counter(each.lanes for each in peers if each.lanes > link.lanes)
    faster = Counter(each.speed for each in peers if each.speed > link.speed > 0)
    if link.lanes < link.of_lanes and wider.total() >= NEARLY_ALL * len(peers):
        usual, count = wider.most_common(1)[0]
        summary = "a device is joined to its host by too few PCIe lanes"
        return Slow(summary, f"{usual} lanes, {whose(count)}", f"{link.lanes}")
    if link.speed < link.of_speed and faster.total() >= NEARLY_ALL * len(peers):
        speed, count = faster.most_common(1)[0]
        summary = "a device is joined to its host by a slow PCIe link"
        return Slow(summary, f"{speed:g} GT/s, {whose(count)}", f"{link.speed:g}")
    return None


def _problem(
    host: str, slow: Slow, addresses: Sequence[str], there: Mapping[str, int], own: Mapping[str, PcieLink]
) -> Problem:
    indices = [there[_bus(address)] for address in addresses if _bus(address) in there]
    rest = [f"the device at {address}" for address in addresses if _bus(address) not in there]
    return Problem(
        slow.summary,
        expected=slow.expected,
        actual=slow.actual,
        subject=", ".join([gpus_named(indices)] * bool(indices) + rest[:SHOWN]),
        hosts=(host,),
        where=tuple(Place(host=host, device=index) for index in indices) or (Place(host=host),),
        confidence=Confidence.STRONG,
        evidence=tuple(
            Evidence(
                f"/sys/bus/pci/devices/{own[address].at}/current_link_*",
                f"{own[address].lanes} lanes of {own[address].of_lanes} at {own[address].speed:g} GT/s",
            )
            for address in addresses[:SHOWN]
        ),
        values={"address": addresses[0]},
    )
