"""Sound hosts that look faulty accuse nobody: products as they were captured, and 200 variations of them."""

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from doctor.api import Skip
from doctor.facts.gpus import Gpus
from doctor.facts.nvidia.gpus import GPU_HEALTH, GPUS, NvidiaHealth
from doctor.job.plan import JobPlan, draft
from doctor.job.wishes import JobWishes
from doctor.judge.registry import find_checks
from doctor.model import Backend, Host, Problem, SourcedValue
from tests.support.captures import every_fact, printed
from tests.support.cases import from_cases

CHECKS = {check.id: check for check in find_checks().checks}
PCIE_LINKS = every_fact()["pcie-links"]
PRODUCTS = from_cases(__file__, "PRODUCTS", dict[str, dict[str, str]])
"""What real GPUs of each product reported, idle or at work, and their links."""
HARMLESS = (0x0, 0x1, 0x2, 0x4, 0x6, 0x10, 0x100)
"""No reason, idle, clocks that were set, a power limit that is reached, sync boost, a display."""
MARGIN = {"temperature.gpu.tlimit": "N/A"}
FIELDS = (
    *("index", "ecc.mode.current", "ecc.mode.pending", "enforced.power.limit", "power.limit"),
    *("power.default_limit", "vbios_version", "pstate", "clocks_event_reasons.active"),
    "temperature.gpu.tlimit",
)


def plan(names: list[str]) -> JobPlan:
    wishes = JobWishes(backend=SourcedValue(Backend.NCCL, "--backend"))
    return draft([Host(name, name) for name in names], wishes)


@dataclass
class Rack:
    """Hosts with GPUs: host -> the values of each GPU, and the places on the way from it."""

    gpus: dict[str, list[dict[str, str]]]

    @classmethod
    def of(cls, products: list[str], count: int) -> "Rack":
        return cls(
            {
                f"node{n}": [MARGIN | PRODUCTS[product] | {"index": str(i)} for i in range(count)]
                for n, product in enumerate(products, 1)
            }
        )

    def health(self, host: str) -> Mapping[int, NvidiaHealth]:
        rows = [", ".join(FIELDS), *(", ".join(gpu[name] for name in FIELDS) for gpu in self.gpus[host])]
        return printed(GPU_HEALTH, "\n".join(rows) + "\n@ all 0\n")

    def listed(self, host: str) -> Gpus:
        head = "index, uuid, name, pci.bus_id, memory.used [MiB], temperature.gpu, pstate"
        rows = [
            f"{i}, GPU-{i}, {gpu['name']}, 00000000:{i + 16:02X}:00.0, 1 MiB, 30, {gpu['pstate']}"
            for i, gpu in enumerate(self.gpus[host])
        ]
        return printed(GPUS, "\n".join([head, *rows]) + "\n@ gpus 0\n")

    def links(self, host: str) -> Mapping[str, Any]:
        return printed(
            PCIE_LINKS,
            "".join(
                f"0000:{i + 16:02x}:00.0 0x030200 0x10de {gpu['id']}|0000:{i + 16:02x}:00.0 {gpu['link']}\n"
                for i, gpu in enumerate(self.gpus[host])
            ),
        )

    def accused(self) -> list[Problem]:
        health, listed, links = (
            {host: read(host) for host in self.gpus} for read in (self.health, self.listed, self.links)
        )
        job = plan([*self.gpus])
        of_hosts = [CHECKS["gpu-throttled"].run(health[host], listed[host], job) for host in self.gpus]
        return [
            *(problem for problems in of_hosts for problem in problems),
            *CHECKS["gpu-power-low"].run(health, listed, job),
            *CHECKS["gpu-ecc-off"].run(health, listed, job),
            *_slow_links(links, listed, health),
            *CHECKS["version-drift"].run({}, {}, {}, {}, job, {}, listed, {}, health),
        ]


def _slow_links(*facts: Any) -> list[Problem]:
    with suppress(Skip):
        return [*CHECKS["pcie-link-slow"].run(*facts)]
    return []


def linked(gpu: Mapping[str, str], divided_by: int, speed: str = "") -> str:
    """The way from a GPU with fewer lanes at its end, and perhaps slower ones."""
    first, *rest = gpu["link"].split("|")
    lanes, of_lanes, usual, of_speed = first.split()
    return "|".join([f"{int(lanes) // divided_by} {of_lanes} {speed or usual} {of_speed}", *rest])


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("hosts", [1, 2, 3, 8])
def test_a_product_as_it_was_captured(product: str, hosts: int) -> None:
    assert Rack.of([product] * hosts, 8).accused() == []


def test_a_mixed_rack() -> None:
    assert Rack.of([*PRODUCTS, *PRODUCTS], 4).accused() == []


@pytest.mark.parametrize("seed", range(200))
def test_a_sound_host_that_looks_faulty(seed: int) -> None:
    chance = random.Random(seed)
    products = chance.choices([*PRODUCTS], k=chance.choice((1, 1, 2)))
    rack = Rack.of(chance.choices(products, k=chance.randint(1, 8)), chance.choice((1, 2, 4, 8)))
    cap = chance.choice((None, None, "200.00 W", "[N/A]"))
    without_ecc = chance.random() < 0.2
    for gpus in rack.gpus.values():
        for gpu in gpus:
            gpu["clocks_event_reasons.active"] = f"0x{chance.choice(HARMLESS):016x}"
            if cap:
                gpu["enforced.power.limit"] = gpu["power.limit"] = cap
            if without_ecc:
                gpu["ecc.mode.current"] = gpu["ecc.mode.pending"] = "Disabled"
            if chance.random() < 0.3:  # idle: it saves power
                narrow = chance.choice((1, 2))
                gpu |= {"pstate": "P8", "link": linked(gpu, narrow, "2.5")}
            if chance.random() < 0.1:
                gpu["link"] = chance.choice(("63 63 Unknown Unknown", "0 0 Unknown 2.5"))
            if chance.random() < 0.1:
                gpu["vbios_version"] = chance.choice(("[N/A]", "??.??.??.??.??"))
            gpu["temperature.gpu.tlimit"] = chance.choice(("58", "26", "6", "N/A", "[N/A]", ""))
            if chance.random() < 0.1:
                gpu["power.default_limit"] = "[Unknown Error]"
    assert rack.accused() == []


FAULTS = from_cases(__file__, "FAULTS", dict[str, tuple[str, dict[str, str], str]])


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_alone_is_named(fault: str, product: str) -> None:
    check, change, said = FAULTS[fault]
    rack = Rack.of([product] * 4, 8)
    if check == "pcie-link-slow":
        change = {"link": linked(rack.gpus["node3"][5], 2)}
    rack.gpus["node3"][5] |= change
    (problem,) = rack.accused()
    assert {*problem.hosts} <= {"node3"}
    assert [place.device for place in problem.where] == [5]
    assert said in problem.summary


def test_memory_of_another_product_is_not_compared() -> None:
    """One product of a rack without ECC, another with a lower limit, is how that product is."""
    rack = Rack.of(["T4", "T4", "L40S", "L40S"], 4)
    for host in ("node1", "node2"):
        for gpu in rack.gpus[host]:
            gpu |= {"ecc.mode.current": "Disabled", "enforced.power.limit": "60.00 W"}
    assert rack.accused() == []
