"""NPU to NPU over the fabric, device i to device i: the plan, the pings, and who explains failed ones."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Literal

from doctor.api import Ask, Capture, Fact, Run, UnreadableOutput, grouped
from doctor.facts.ascend.hccn_tool import ELSEWHERE, HCCN, TOOL, PerDevice, split_known
from doctor.facts.ascend.network import Address
from doctor.facts.device_tools import ToolCall, calling, calls, complaint, why_not
from doctor.mesh import Link, MeshBlame, MeshShape, culprits, pairs_of
from doctor.text.hostprogram import host_program

FULL_UP_TO = 8
"""hccn_tool serves one caller at a time: with more hosts than this, each meets only some of the others."""
SECONDS = 35
PING_SECONDS = 8

Outcome = Literal["ok", "lossy", "lost", "untested"]


@dataclass(frozen=True, slots=True)
class Ping:
    """The result of pinging an address from one device. `lossy`: some of three packets came back."""

    device: int
    address: str
    outcome: Outcome
    detail: str = ""


def _ask_pings(ask: Ask) -> str:
    """One packet; if it does not come back (the first may wait for ARP), the tool's usual three."""
    keys = [quote(f"{device}/{address}") for device, address in ask.pings]
    pings = [f"p {int(device)} {quote(address)}" for device, address in ask.pings]
    return "\n".join([calling(TOOL, ELSEWHERE, SECONDS), _PING, f"echo pings {' '.join(keys)}", *pings])


_PING = host_program(__file__, "pings.sh", SECONDS=PING_SECONDS).rstrip("\n")


def _pings(capture: Capture) -> tuple[Ping, ...]:
    """The final result of each ping; those that were planned but not made are untested."""
    planned = re.match(r"pings((?: \d{1,3}/\S{1,64}){1,20000})$", capture.stdout, re.MULTILINE)
    if not planned:
        raise UnreadableOutput("no ping was planned")
    late: tuple[Outcome, str] = ("untested", why_not(TOOL, "unasked", "time"))
    heard: dict[str, tuple[Outcome, str]] = dict.fromkeys(planned[1].split(), late)
    for call in calls(capture.stdout[planned.end() :], TOOL):
        outcome, detail = _outcome(call)
        if call.key in heard and (outcome != "untested" or heard[call.key] is late):
            heard[call.key] = outcome, detail
    parts = ((key.partition("/"), said) for key, said in heard.items())
    return tuple(Ping(int(device), address, *said) for (device, _, address), said in parts)


def _outcome(call: ToolCall) -> tuple[Outcome, str]:
    if call.failed:
        return "untested", call.failed
    loss = re.search(r"(\d{1,3}(?:\.\d{1,4})?)% packets? loss", call.text)
    if loss:
        share = float(loss[1])
        line = next(line for line in call.text.splitlines() if loss[0] in line)
        return "ok" if share == 0 else "lossy" if share < 100 else "lost", line[:200]
    if "recv time out" in call.text or "Destination Host Unreachable" in call.text:
        return "lost", call.text.splitlines()[-1][:200]
    return "untested", complaint(call, TOOL)


NPU_PINGS: Fact[tuple[Ping, ...]] = Fact(
    "npu-pings",
    Run(_ask_pings),
    _pings,
    timeout=SECONDS,
    needs_root=True,
    cap=1_000_000,
    partial=True,
    group=HCCN,
    later=True,
)


def plan_pings(
    addresses: Mapping[str, PerDevice[Address | None]],
    links: Mapping[str, PerDevice[bool]],
    products: Mapping[str, str],
    *,
    everybody: bool = False,
) -> dict[str, tuple[tuple[int, str], ...]]:
    """Host -> pings: own device, and the address of its twin on another host with the same product.

    Other checks report a device that has no address, no link, or an address shared with another device;
    a ping from or to such a device would blame others.
    """
    held = {host: split_known(said)[0] for host, said in addresses.items()}
    ready = {
        host: {
            device: address.ip
            for device, address in devices.items()
            if address and links.get(host, {}).get(device) is not False
        }
        for host, devices in held.items()
    }
    holders = Counter(address.ip for devices in held.values() for address in devices.values() if address)
    alike = grouped((products.get(host, ""), host) for host, devices in ready.items() if devices)
    plan: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for hosts in alike.values():
        shape: MeshShape = "full" if everybody or len(hosts) <= FULL_UP_TO else "sparse"
        for source, target in pairs_of(hosts, shape):
            for device, own in ready[source].items():
                other = ready[target].get(device)
                if other and holders[own] == holders[other] == 1:
                    plan[source].append((device, other))
    return {host: tuple(pings) for host, pings in plan.items()}


@dataclass(frozen=True, slots=True)
class Rail:
    """One explanation of pings that failed between devices of one number."""

    device: int
    blame: MeshBlame


def rails(
    pings: Mapping[str, Sequence[Ping]],
    addresses: Mapping[str, PerDevice[Address | None]],
    outcome: Literal["lost", "lossy"],
) -> tuple[Rail, ...]:
    """The devices that explain the pings with this outcome, rail by rail. A ping needs both ways to work."""
    owner = {
        address.ip: host
        for host, said in addresses.items()
        for address in split_known(said)[0].values()
        if address is not None
    }
    verdicts: dict[str, Literal["ok", "dropped", "untested"]]
    verdicts = {"lost": "untested", "lossy": "ok", "untested": "untested", "ok": "ok", outcome: "dropped"}

    def link(host: str, ping: Ping) -> Link:
        target, verdict = owner[ping.address], verdicts[ping.outcome]
        return Link(host, target, ping.address, 0, "ephemeral", verdict, detail=ping.detail)

    made = ((host, ping) for host, own in pings.items() for ping in own if ping.address in owner)
    links = grouped((ping.device, link(host, ping)) for host, ping in made)
    return tuple(Rail(device, blame) for device in sorted(links) for blame in culprits(links[device]))
