"""NPU to NPU over the fabric: who is to ping whom, the pings, and which device explains those that fail.

Device i of a host pings device i of others, so that each rail is looked at by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from doctor.api import Ask, Capture, Fact, Run
from doctor.facts.calls import Call, calling, calls, complaint
from doctor.facts.hccn import Address, PerDevice, told
from doctor.facts.hccntool import ELSEWHERE, HCCN, TOOL
from doctor.mesh import Blame, Link, culprits, pairs_of

FULL_UP_TO = 8
"""hccn_tool serves one caller at a time: with more hosts each meets only some of the others."""
SECONDS = 35
PING_SECONDS = 8

Outcome = Literal["ok", "lossy", "lost", "untested"]


@dataclass(frozen=True, slots=True)
class Ping:
    """What one device heard of an address. `lossy`: of three packets some came back."""

    device: int
    address: str
    outcome: Outcome
    detail: str = ""


def _ask_pings(ask: Ask) -> str:
    """One packet; where it does not come back (the first may wait for ARP), the tool's usual three."""
    pings = [f"p {device} {address}" for device, address in ask.pings]
    return "\n".join([calling(TOOL, ELSEWHERE, SECONDS), _PING, *pings])


_PING = f"""L={PING_SECONDS}
p() {{
  q "$1/$2" -i "$1" -ping -g address "$2" pkt 1
  case $o in *' 0.00% packet loss'*) ;; *) q "$1/$2" -i "$1" -ping -g address "$2";; esac
}}"""


def _pings(capture: Capture) -> tuple[Ping, ...]:
    """The last word on each: the three packets, where the first got lost and there was time for more."""
    heard: dict[str, tuple[Outcome, str]] = {}
    for call in calls(capture.stdout, TOOL):
        outcome, detail = _outcome(call)
        if outcome != "untested" or call.key not in heard:
            heard[call.key] = outcome, detail
    parts = ((key.partition("/"), said) for key, said in heard.items())
    return tuple(
        Ping(int(device), address, *said)
        for (device, _, address), said in parts
        if re.fullmatch(r"\d{1,3}", device)
    )


def _outcome(call: Call) -> tuple[Outcome, str]:
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
    partial=True,
    group=HCCN,
    later=True,
)


def plan_pings(
    addresses: Mapping[str, PerDevice[Address | None]],
    links: Mapping[str, PerDevice[bool]],
    *,
    everybody: bool = False,
) -> dict[str, tuple[tuple[int, str], ...]]:
    """Host -> own device and the address of its twin on another host, for each ping.

    A device without an address or link, or with an address that another has too, is told of elsewhere, and a
    ping from or to it would blame others.
    """
    held = {host: told(said)[0] for host, said in addresses.items()}
    ready = {
        host: {
            device: address.ip
            for device, address in devices.items()
            if address and links.get(host, {}).get(device) is not False
        }
        for host, devices in held.items()
    }
    holders = Counter(address.ip for devices in held.values() for address in devices.values() if address)
    hosts = [host for host, devices in ready.items() if devices]
    plan: dict[str, list[tuple[int, str]]] = {}
    for source, target in pairs_of(hosts, "full" if everybody or len(hosts) <= FULL_UP_TO else "sparse"):
        for device, own in ready[source].items():
            other = ready[target].get(device)
            if other and holders[own] == holders[other] == 1:
                plan.setdefault(source, []).append((device, other))
    return {host: tuple(pings) for host, pings in plan.items()}


@dataclass(frozen=True, slots=True)
class Rail:
    """One explanation of pings that failed between devices of one number."""

    device: int
    blame: Blame


def rails(
    pings: Mapping[str, Sequence[Ping]],
    addresses: Mapping[str, PerDevice[Address | None]],
    outcome: Literal["lost", "lossy"],
) -> tuple[Rail, ...]:
    """Which devices explain the pings of this outcome, rail by rail. A ping needs both ways to work."""
    owner = {
        address.ip: host
        for host, said in addresses.items()
        for address in told(said)[0].values()
        if address is not None
    }
    verdicts: dict[str, Literal["ok", "dropped", "untested"]]
    verdicts = {"lost": "untested", "lossy": "ok", "untested": "untested", "ok": "ok", outcome: "dropped"}
    found: list[Rail] = []
    for device in sorted({ping.device for own in pings.values() for ping in own}):
        links = [
            Link(
                host,
                owner[ping.address],
                ping.address,
                0,
                "ephemeral",
                verdicts[ping.outcome],
                detail=ping.detail,
            )
            for host, own in pings.items()
            for ping in own
            if ping.device == device and ping.address in owner
        ]
        found += [Rail(device, blame) for blame in culprits(links)]
    return tuple(found)
