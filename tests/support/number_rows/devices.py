"""Numbers in findings about GPUs and NPUs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from checks.gpu_imex import Imex
from checks.npu_wear import LinkChange
from doctor.api import AMD, ASCEND, NVIDIA, Backend, Expect, Here, JobPlan, Vendor
from doctor.facts.amd.gpus import AmdHealth, AmdProcess
from doctor.facts.ascend.network import Address
from doctor.facts.ascend.npu_smi_table import NpuProcess
from doctor.facts.ascend.npus import Npu
from doctor.facts.ascend.pings import Ping
from doctor.facts.gpus import Gpu, Gpus
from doctor.facts.infiniband import InfinibandPort
from doctor.facts.network import Counters
from doctor.facts.nvidia.gpus import NvidiaHealth
from doctor.facts.nvidia.nvlink import FabricManager, Links
from doctor.facts.software import Environment
from doctor.facts.system import Devices, FoundDevices
from doctor.job.plan import draft
from doctor.job.wishes import JobWishes
from doctor.model import Host, SourcedValue, View
from tests.support.captures import every_fact, printed
from tests.support.shown_numbers import Row


def job(backend: Backend = Backend.HCCL, ranks: int = 0, hosts: int = 3) -> JobPlan:
    each = SourcedValue(ranks, "--ranks-per-host") if ranks else None
    wishes = JobWishes(backend=SourcedValue(backend, "--backend"), ranks_per_host=each)
    return draft([Host(f"node{n}", f"node{n}") for n in range(1, hosts + 1)], wishes)


def gpus(number: int, used: int | None = None, vendor: Vendor = NVIDIA) -> Gpus:
    listed = (Gpu(n, f"GPU-{n}", f"{vendor.name} X", f"0000:{n:02x}:00", used) for n in range(number))
    return Gpus(tuple(listed))


def found(number: int, bus: int, vendor: Vendor = NVIDIA, product: str = "nvidia") -> Devices:
    return Devices({vendor.name: FoundDevices(tuple(range(number)), bus, "550.54.15")}, product)


def amd_missing(own: int, usual: int, others: int) -> tuple[Any, ...]:
    """The first host has fewer GPUs than the others."""
    hosts = ["node1", *(f"other{n}" for n in range(others))]
    numbers = {host: own if host == "node1" else usual for host in hosts}
    plan = draft([Host(h, h) for h in hosts], JobWishes(backend=SourcedValue(Backend.NCCL, "--backend")))
    return (
        {h: found(n, usual, AMD) for h, n in numbers.items()},
        {},
        replace(plan, vendor=AMD),
        {h: gpus(n, vendor=AMD) for h, n in numbers.items()},
        dict.fromkeys(hosts, "host"),
    )


def gpu_missing_files(own: int, bus: int) -> tuple[Any, ...]:
    views = {"node1": View.HOST}
    return {"node1": found(own, bus)}, {}, job(Backend.NCCL, 0, 1), {"node1": gpus(own)}, views, {}


def up_to(number: int) -> str:
    """As the numbers of devices are told."""
    return f"0 {number - 1}"


def npus(number: int, **changes: Any) -> tuple[Npu, ...]:
    own: dict[str, Any] = {"name": "910B", "health": "OK", "hbm_used_mb": 1, "hbm_total_mb": 65536}
    return tuple(Npu(n, n, 0, bus=f"0000:{n:02x}:00.0", **own | changes) for n in range(number))


def npu_missing(own: int, whole: int, others: int) -> tuple[Any, ...]:
    hosts = {"node1": with_npus(own)} | {f"other{n}": with_npus(whole) for n in range(others)}
    wishes = JobWishes(backend=SourcedValue(Backend.HCCL, "--backend"))
    return hosts, {}, draft([Host(h, h) for h in hosts], wishes), dict.fromkeys(hosts, "host")


def with_npus(number: int) -> Devices:
    return found(number, number, ASCEND, "atlas-a2")


HERE = Here("node1", is_head=True)
NCCL, HCCL = job(Backend.NCCL), job()


def rail(hosts: int) -> tuple[Any, ...]:
    """The first device of the first host answers nobody."""
    names = [f"node{n}" for n in range(1, hosts + 1)]
    address = {host: {0: Address(f"10.20.0.{n}", 16)} for n, host in enumerate(names, 1)}
    pings = {
        host: tuple(
            Ping(0, own[0].ip, "lost" if "node1" in (host, other) else "ok")
            for other, own in address.items()
            if other != host
        )
        for host in names
    }
    return pings, address, {}, {}


def history(downs: int) -> tuple[LinkChange, ...]:
    return tuple(LinkChange("noon", 60.0 * n, False) for n in range(downs))


def counters(usual: int, worn: int) -> dict[str, dict[int, dict[str, int]]]:
    return {"node1": {n: {"mac_rx_fcs_err_pkt_num": worn if n == 3 else usual} for n in range(8)}}


def links(own: int, usual: int, others: int) -> tuple[Any, ...]:
    """The first GPU of the first host has fewer links than on other hosts."""
    whole = Links("NVIDIA X", tuple(range(usual)))
    few = Links("NVIDIA X", tuple(range(own)), tuple(range(own, usual)))
    return ({"node1": {0: few}} | {f"other{n}": {0: whole} for n in range(others)}, {}, {}, NCCL)


def alone(own: int, usual: int, beside: int) -> tuple[Any, ...]:
    whole = Links("NVIDIA X", tuple(range(usual)))
    return (
        {"node1": {0: Links("NVIDIA X", tuple(range(own)))} | dict.fromkeys(range(1, beside + 1), whole)},
        {},
        {},
        NCCL,
    )


def segments(number: int) -> dict[str, dict[int, Address]]:
    """Each device is in a segment of its own, on both hosts."""
    return {f"node{h}": {n: Address(f"10.{n}.0.{h}", 24) for n in range(number)} for h in (1, 2)}


def first_eight(number: int) -> str:
    return " ".join([*(f"{n}!" for n in range(min(8, number))), *([str(number - 8)] if number > 8 else [])])


def gap(last: int, there: int) -> str:
    """The numbers of the devices that are there, that are lost, and that are there."""
    own = f"0 {there - 2} {last}" if there > 2 else f"0 {last}"
    return f"{own} {there - 1} {last - 1} {own}"


def each_of(number: int) -> str:
    return " ".join(f"{n}!" for n in range(number))


def numbers(values: Sequence[object]) -> str:
    return " ".join(map(str, values))


def split_named(split: int) -> str:
    return numbers(sorted({0, split - 1}))


def counted(number: int) -> str:
    return "".join(f"{n} " for n in range(number))


def told(fact: str, text: str) -> Any:
    return printed(every_fact()[fact], text)


def way(address: str, lanes: int, of_lanes: int, speed: float = 32.0) -> str:
    return f"{address} 0x030200 0x10de 0x2330|0000:01:00.0 {lanes} {of_lanes} {speed} 32.0\n"


def lanes(own: int, usual: int, hosts: int, beside: int = 0, speed: float = 32.0) -> tuple[Any, ...]:
    """The first device of the first host has fewer lanes, or a slower link."""
    first = way("0000:01:00.0", own, usual, speed)
    rest = "".join(way(f"0000:{n + 2:02x}:00.0", usual, usual) for n in range(beside))
    whole = told("pcie-links", way("0000:01:00.0", usual, usual))
    return (
        {"node1": told("pcie-links", first + rest)} | {f"o{n}": whole for n in range(hosts)},
        {"node1": gpus(2)},
        {"node1": {1: NvidiaHealth(said={"pstate": "P0"})}},
    )


def of_model(others: int, odd: NvidiaHealth, usual: NvidiaHealth) -> tuple[Any, ...]:
    """The GPU of the first host differs."""
    health = {"node1": {0: odd}} | {f"o{n}": {0: usual} for n in range(others)}
    return health, dict.fromkeys(health, gpus(1)), NCCL


def said(**told: str) -> NvidiaHealth:
    return NvidiaHealth(said=told)


def power(watts: int, usual: int) -> NvidiaHealth:
    names = ("enforced.power.limit", "power.limit", "power.default_limit")
    return NvidiaHealth(
        said={name: f"{own}.00 W" for name, own in zip(names, (watts, watts, usual), strict=True)}
    )


def vbios(others: int) -> tuple[Any, ...]:
    health, listed, plan = of_model(others, said(vbios_version="a.1"), said(vbios_version="a.2"))
    return {}, {}, {}, {}, plan, {}, listed, {}, health


CARD = "/sys/class/infiniband/mlx5_{n}"


def ports(own: int, others: int, layer: str = "InfiniBand") -> dict[str, list[InfinibandPort]]:
    usual = InfinibandPort("mlx5_0", 1, "active", "LinkUp", "400", layer)
    first = [replace(usual, device=f"mlx5_{n}") for n in range(own)]
    return {"node1": first} | {f"o{n}": [usual] for n in range(others)}


def closed(own: int, others: int) -> tuple[Any, ...]:
    shut = told("ib-cards", "".join(f"{CARD.format(n=n)} closed\n" for n in range(own)))
    return ports(own, others), {"node1": shut} | {f"o{n}": {} for n in range(others)}, {}, NCCL


def roce(kind: str, index: int) -> Any:
    gid = f"gid {index} rail0 {'0000:' * 5}ffff:0a00:0001 {kind}"
    return told("ib-cards", f"{CARD.format(n=0)}/ports/1 {gid}\n")


def mtus(own: int, usual: int, others: int) -> tuple[Any, ...]:
    hosts = {"node1": own} | {f"o{n}": usual for n in range(others)}
    links = {host: {"rail0": Counters(mtu, None, 0)} for host, mtu in hosts.items()}
    return ports(1, others, "Ethernet"), {host: roce("RoCE v2", 3) for host in hosts}, links, NCCL


def firmware(others: int) -> tuple[Any, ...]:
    odd, usual = (told("ib-cards", f"{CARD.format(n=0)} made X {made}\n") for made in ("b.1", "a.1"))
    return ({"node1": odd} | {f"o{n}": usual for n in range(others)},)


def imex(hosts: int, own: int = 0, usual: int = 0) -> tuple[Any, ...]:
    """The first host has no service, or its service another list."""
    said = {"fabric.clusterUuid": "ab", "fabric.cliqueId": "1"}
    lists = [own, *[usual] * (hosts - 1)]
    found = {
        f"o{n}": Imex(True, bool(n or own), frozenset(f"h{k}" for k in range(each)))
        for n, each in enumerate(lists)
    }
    return (
        found,
        {host: {0: NvidiaHealth(said=said)} for host in found},
        dict.fromkeys(found, "host"),
        {},
        job(),
    )


ROWS: dict[str, Row] = {
    "ib-closed": lambda own=4, others=8: (
        closed(own, others),
        f"{others} {own} {own} -1!",
    ),
    "ib-gid-wrong": lambda others=8, index=6: (
        (
            ports(1, others, "Ethernet"),
            {"node1": roce("RoCE v1", index)} | {f"o{n}": roce("RoCE v2", index) for n in range(others)},
            {},
            replace(NCCL, env={"NCCL_IB_GID_INDEX": str(index)}),
        ),
        f"{others} {index} 1! 2.21!",
    ),
    "ib-mtu-differs": lambda own=1024, usual=4096, others=8: (
        mtus(own, usual, others),
        f"{min(usual, 4096)} {others} {own} 1! {own} {usual}",
    ),
    "ib-firmware-differs": lambda others=8: (firmware(others), f"{others}"),
    "ib-port-slow: all": lambda number=8: (
        (
            {
                "node1": [
                    InfinibandPort(f"mlx5_{n}", 1, "active", "LinkUp", "100", "InfiniBand")
                    for n in range(number)
                ]
            },
            {"node1": Gpus(tuple(Gpu(n, "", "H100", "") for n in range(4)))},
            job(Backend.NCCL, 0, 1),
        ),
        f"200! 100! {number} 100!",
    ),
    "ib-partition-differs": lambda index=6: (
        (
            {f"o{n}": {("mlx5_0", 1): {index: 0x8012 if n else 0x8013}} for n in range(8)},
            ports(0, 8),
            replace(NCCL, env={"NCCL_IB_PKEY": str(index)}),
        ),
        f"{index} 1!",
    ),
    "pcie-link-slow": lambda own=4, usual=16, hosts=4: (
        lanes(own, usual, hosts),
        f"{usual} {hosts} {own} 1! {own} {usual} 32!",
    ),
    "pcie-link-slow: beside": lambda own=4, usual=16, beside=8: (
        lanes(own, usual, 0, beside),
        f"{usual} {beside} {own} 1! {own} {usual} 32!",
    ),
    "pcie-link-slow: slow": lambda speed=8.0, hosts=4: (
        lanes(16, 16, hosts, speed=speed),
        f"32! {hosts} {speed:g} 1! 16! 16! {speed:g}",
    ),
    "gpu-throttled": lambda margin=2: (
        ({0: said(**{"temperature.gpu.tlimit": str(margin)})}, gpus(1), NCCL),
        f"5! {margin} 0! 0! …",
    ),
    "gpu-power-low": lambda watts=200, usual=700, others=8: (
        of_model(
            others,
            power(watts, usual),
            power(usual, usual),
        ),
        f"{usual} {others} {watts} 0 0 {watts} {watts} {usual} 0 {usual} 0",
    ),
    "gpu-ecc-off": lambda others=8: (
        of_model(others, said(**{"ecc.mode.current": "Disabled"}), said(**{"ecc.mode.current": "Enabled"})),
        f"{others} 0 0 0 1! 0",
    ),
    "version-drift: VBIOS": lambda others=8: (vbios(others), f"{others} 0 0 0"),
    "devices-hidden": lambda ranks=8, left=2: (
        (
            Devices({NVIDIA.name: FoundDevices(tuple(range(16)), 16)}, "nvidia"),
            None,
            Environment({"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(left)))}),
            replace(job(Backend.NCCL, ranks), vendor=NVIDIA),
            Here("node1", is_head=True),
        ),
        f"{left} {ranks} {ranks} {2 * counted(left)}",
    ),
    "launch-devices": lambda ranks=80, own=16: (
        (
            {"node1": Devices({NVIDIA.name: FoundDevices(tuple(range(own)), own)}, "nvidia")},
            {},
            replace(job(Backend.NCCL, ranks), vendor=NVIDIA),
        ),
        f"{ranks} {own} {ranks} {own} {own}",
    ),
    "launch-devices: named": lambda named=80, own=16: (
        (
            {"node1": Devices({NVIDIA.name: FoundDevices(tuple(range(own)), own)}, "nvidia")},
            {},
            replace(job(Backend.NCCL), vendor=NVIDIA, env={"CUDA_VISIBLE_DEVICES": str(named)}),
        ),
        f"{named} 0! {own - 1} {named} {own} 0! {own - 1}",
    ),
    "gpu-split": lambda ranks=80, split=2: (
        (
            dict.fromkeys(range(split), NvidiaHealth(mig=True)),
            gpus(ranks),
            None,
            replace(job(Backend.NCCL, ranks), vendor=NVIDIA),
            Here("node1", is_head=True),
        ),
        f"{ranks} {ranks - split} {ranks} {split_named(split)} {split_named(split)} 0!",
    ),
    "gpu-missing: without device files": lambda own=16, lost=4: (
        gpu_missing_files(own, own + lost),
        f"{own + lost} {own} {own} {up_to(own)} {own + lost} {own}",
    ),
    "amd-missing": lambda own=4, usual=16, others=4: (
        amd_missing(own, usual, others),
        f"{usual} {others} {own} {up_to(own)} {usual} {own}",
    ),
    "amd-busy": lambda used=4000, pid=4000, own=2000: (
        (gpus(1, used, AMD), (AmdProcess(0, pid, "python", own),), {}, None, NCCL, Expect()),
        f"0 0 {used} {pid} {own} 0",
    ),
    "gpu-ecc": lambda count=4: (
        ({0: NvidiaHealth(uncorrected=count)}, gpus(1), NCCL),
        f"{count} 0 0 {count} 0",
    ),
    "amd-ras": lambda errors=4, pending=6, stuck=10: (
        ({0: AmdHealth(errors, None, pending, stuck)}, gpus(1, vendor=AMD), None, NCCL),
        " ".join(f"{count} 0 0 {count} 0" for count in (stuck, errors, pending)),
    ),
    "nvlink-down": lambda own=4, usual=16, others=4: (
        links(own, usual, others),
        f"{usual} {others} {own} 0 0 {own} {numbers(range(own, usual))} 0",
    ),
    "nvlink-down: beside": lambda own=4, usual=16, beside=8: (
        alone(own, usual, beside),
        f"{usual} {beside} {own} 0 0 {own} 0",
    ),
    "imex-not-ready": lambda hosts=4: (imex(hosts), f"{hosts - 1} -20!"),
    "imex-not-ready: lists": lambda own=3, usual=10, others=4: (
        imex(others + 1, own, usual),
        f"{usual} {others} {own} …",
    ),
    "fabric-manager-down": lambda switches=4: ((FabricManager(switches, False), {}, "host"), f"{switches}"),
    "device-missing": lambda own=4, whole=16, others=4: (
        npu_missing(own, whole, others),
        f"{whole} {others} {own} {up_to(own)} {own} {whole - 1} {up_to(own)} {own}",
    ),
    "device-unhealthy": lambda errors=4: (
        (npus(1), with_npus(1), HCCL, HERE, {0: errors}, "host", None),
        f"{errors} 0 {errors} 0",
    ),
    "device-unhealthy: hidden": lambda shown=4, there=16: (
        (npus(shown), with_npus(there), HCCL, HERE, {}, "host", None),
        f"{there} {shown} {shown} {there - 1} {shown} {there - 1}",
    ),
    "device-missing: left out": lambda last=10, there=4: (
        (
            {"node1": Devices({ASCEND.name: FoundDevices((*range(there - 1), last), there)}, "")},
            {},
            job(hosts=1),
            {"node1": "host"},
        ),
        f"{last + 1} 0 {last} {there} {there} {there} {gap(last, there)} {there}",
    ),
    "device-unhealthy: alarm": lambda card=4, chip=2: (
        (
            tuple(replace(each, card=card, chip=chip) for each in npus(1, health="Alarm")),
            with_npus(1),
            HCCL,
            HERE,
            {},
            "host",
            None,
        ),
        f"0 0 0 {card} {chip}",
    ),
    "device-ip-not-applied": lambda number=16: (
        (segments(number), {"node1": {n: {"address": "10.99.0.1"} for n in range(number)}}, HCCL, {}, {}, {}),
        f"{first_eight(number)} {first_eight(number)} {up_to(number)} {each_of(number)} …",
    ),
    "device-ip-duplicate": lambda number=16: (
        (
            {f"node{h}": {n: Address(f"10.20.0.{n + 1}", 16) for n in range(number)} for h in (1, 2)},
            HCCL,
            {},
            {},
        ),
        f"{first_eight(number)} {up_to(number)} {each_of(number)} …",
    ),
    "device-gateway-missing: some": lambda lack=4: (
        (
            {"node1": {n: "10.0.0.1" if n < lack else None for n in range(2 * lack)}},
            {
                "node1": {
                    n: Address(f"10.0.0.{n + 2}" if n < lack else f"10.1.0.{n + 2}", 24)
                    for n in range(2 * lack)
                }
            },
            {"node1": with_npus(2 * lack)},
            HCCL,
            {},
        ),
        f"0 {lack - 1} {lack} 0 {2 * lack - 1} {each_of(2 * lack)} …",
    ),
    "device-busy": lambda used=4000, total=8000, pid=500, own=300: (
        (
            npus(1, hbm_used_mb=used, hbm_total_mb=total, processes=(NpuProcess(pid, "python", own),)),
            with_npus(1),
            HCCL,
            HERE,
            Expect(),
        ),
        f"0 0 {used} {total} {pid} {own}",
    ),
    "device-unreachable": lambda hosts=8: (
        rail(hosts),
        f"0 {2 * (hosts - 1)} {hosts * (hosts - 1)} 0" + " 0" * min(6, 2 * hosts - 2) + " 0" * 2,
    ),
    "device-link-flaps": lambda downs=8, most=2: (
        ({3: history(downs)}, HCCL, HERE, Expect(link_flaps=most)),
        f"24! {most} {downs} 3! 3! 3!",
    ),
    "device-link-errors": lambda usual=50, worn=9000: (
        (counters(usual, worn), HCCL, Expect()),
        f"{usual} 3! {worn} 3! 3! {worn} 3!",
    ),
    "device-gateway-missing": lambda others=8: (
        (
            {"node1": {n: "10.0.0.1" if n < others else None for n in range(others + 1)}},
            {"node1": {n: Address(f"10.0.0.{n + 2}", 24) for n in range(others + 1)}},
            {"node1": with_npus(others + 1)},
            HCCL,
            {},
        ),
        f"{others} {others} {others} {others}",
    ),
    "device-net-unhealthy": lambda hosts=8: (
        ({f"node{n}": {0: "Fault"} for n in range(1, hosts + 1)}, job(hosts=hosts), {}, {}, {}, {}),
        f"0 {hosts} 0" + " 0" * min(4, hosts) + " 0",
    ),
    "device-ip-subnet": lambda number=8: (
        (
            segments(number),
            {f"node{h}": with_npus(number) for h in (1, 2)},
            HCCL,
            {h: dict.fromkeys(range(number)) for h in ("node1", "node2")},
        ),
        f"{number} {first_eight(number)} {up_to(number)} {first_eight(number)} {each_of(number)}",
    ),
    "device-netmask-mismatch": lambda others=8, narrow=12: (
        (
            {
                "node1": {
                    n: Address(f"10.0.0.{n + 1}", narrow if n == others else 16) for n in range(others + 1)
                }
            },
            {"node1": with_npus(others + 1)},
            HCCL,
        ),
        f"16! {others} {narrow} {others} {others} {narrow} {others}",
    ),
}
