"""The connections of GPUs, within a host and between hosts, each fault alone on one host of three."""

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from tests.lab.gpus import GpuHost
from tests.lab.shadow import Tree
from tests.support.batches import batches, prove_each
from tests.support.cases import from_cases
from tests.support.faults import ALONE, assert_healthy, assert_only
from tests.support.gpu_faults import GpuExaminer, GpuFault, gpu_examiner, left_out, victim
from tests.support.npu_faults import assert_says

EIGHT = tuple(range(8))


examine = gpu_examiner


def all_links_down(host: GpuHost) -> None:
    for gpu in host:
        gpu.links_down()


def one_is_far(host: GpuHost) -> None:
    """Its links are up, but no other GPU reaches it over them."""
    for other in EIGHT:
        if other != 2:
            host.joined(2, other, "SYS")


def waiting(host: GpuHost) -> None:
    host.stop_fabric_manager()
    for gpu in host:
        gpu["fabric.state"] = "In Progress"


def refused(host: GpuHost) -> None:
    host[4]["fabric.status"] = "Insufficient Resources"


FAULTS = GpuFault.table(__file__, "FAULTS", all_links_down, one_is_far, waiting, refused)


@pytest.mark.parametrize("names", batches(FAULTS, size=2))
def test_found(names: list[str], examine: GpuExaminer) -> None:
    prove_each({name: FAULTS[name] for name in names}, examine)


def test_links_that_no_host_has_are_not_in_use(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        host[3].links_down(4, 11)
        host.joined(0, 1, "NV12")
    assert_healthy(examine(*ALONE))


def test_a_single_host_is_compared_with_itself(examine: GpuExaminer) -> None:
    """A GPU without any link may be intended."""
    gpu, seats = examine.gpus["node2"][5], [("node2", 5)]
    gpu.links_down(0, 1, 2)
    found = assert_only(examine(*ALONE, hosts="node2"), "nvlink-down", ["node2"], devices=seats)
    assert_says(found, r"18 active links, as 7 other GPUs of the host have \| 15 active")
    gpu.links_down()
    found = assert_only(examine(*ALONE, hosts="node2"), "nvlink-down", ["node2"], "warn", devices=seats)
    assert [each["confidence"] for each in found] == ["suspect"]


def test_hosts_without_switches_do_not_need_a_manager(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        host.without_switches()
    outcome = examine(*ALONE)
    assert_healthy(outcome)
    assert left_out(outcome, "fabric-manager-down") == dict.fromkeys(
        examine.gpus.lab.names, "there is no NVSwitch"
    )


# InfiniBand and RoCE.

State = tuple[str, str]
ACTIVE = ("4: ACTIVE", "5: LinkUp")
DOWN = ("1: DOWN", "2: Polling")
INIT = ("2: INIT", "5: LinkUp")
UP = dict.fromkeys(range(4), ACTIVE)
CARDS = (*ALONE, "--expect", "memlock_mb=0")
"""The hosts of the lab may have too small a limit for real cards."""


def cards(
    host: GpuHost,
    states: Mapping[int, State],
    *,
    roce: bool = False,
    rates: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Cards of one port each: mlx5_0 and so on."""
    layer, usual = ("Ethernet", "200 Gb/sec (2X NDR)") if roce else ("InfiniBand", "400 Gb/sec (4X NDR)")
    tree: dict[str, Tree] = {}
    for number, (state, physical) in states.items():
        rate = rates.get(number, usual)
        files = {"state": state, "phys_state": physical, "rate": rate, "link_layer": layer}
        port = {name: f"{text}\n" for name, text in files.items()}
        tree[f"mlx5_{number}"] = {"node_type": "1: CA\n", "ports": {"1": port}}
    host.host.sysfs_class("infiniband", tree)


def test_ports_are_up(examine: GpuExaminer) -> None:
    """A port that is down on every host has no cable anywhere; a single host is compared with no other."""
    for host in examine.gpus:
        cards(host, UP | {3: DOWN})
    assert_healthy(examine(*CARDS[2:]))
    alone = examine(*CARDS, hosts="node1")
    assert_healthy(alone)
    assert left_out(alone, "ib-port-down").keys() == {"node1"}


BAD_PORTS = from_cases(__file__, "BAD_PORTS", dict[str, tuple[Mapping[int, State], tuple[str, ...]]])


@pytest.mark.parametrize("name", BAD_PORTS)
def test_a_port_is_down(name: str, examine: GpuExaminer) -> None:
    states, says = BAD_PORTS[name]
    bad = victim(examine.gpus, name)
    for host in examine.gpus:
        cards(host, states if host is bad else UP, roce=name == "RoCE")
    found = assert_only(examine(*CARDS), "ib-port-down", [bad.host.name], devices=())
    for each, pattern in zip(sorted(found, key=lambda each: each["subject"]), says, strict=True):
        assert_says([each], pattern, "mlxlink")


RATES = from_cases(__file__, "RATES", dict[str, tuple[Mapping[int, str], str]])


@pytest.mark.parametrize("name", RATES)
def test_a_port_is_slow(name: str, examine: GpuExaminer) -> None:
    rates, says = RATES[name]
    bad = victim(examine.gpus, name)
    for host in examine.gpus:
        cards(host, UP, rates=rates if host is bad else {})
    found = assert_only(examine(*CARDS), "ib-port-slow", [bad.host.name], devices=())
    assert_says(found, says, r"mlxlink -d mlx5_\d -m -c")


def test_all_ports_are_slow_alike_or_unused(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        cards(host, UP, rates=dict.fromkeys(UP, "200 Gb/sec (4X HDR)"))
    assert_healthy(examine(*CARDS))
    cards(victim(examine.gpus, "unused"), UP, rates={0: "100 Gb/sec (1X NDR)"})
    inventory = examine.folder / "inventory.yaml"
    inventory.write_text("launch: {NCCL_IB_DISABLE: '1'}\n")
    assert_healthy(examine(*CARDS, "--inventory", str(inventory)))


def test_all_ports_are_slower_than_such_machines_are_built(examine: GpuExaminer) -> None:
    """Eight ports beside eight H100; four of 100 Gb/s may be what was bought."""
    eight = dict.fromkeys(range(8), ACTIVE)
    edr = dict.fromkeys(eight, "100 Gb/sec (4X EDR)")
    for host in examine.gpus:
        cards(host, UP, rates=edr)
    assert_healthy(examine(*CARDS))
    for host in examine.gpus:
        cards(host, eight, rates=edr)
    (found,) = assert_only(examine(*CARDS), "ib-port-slow", examine.gpus.lab.names, "warn", devices=())
    assert_says([found], r"8 ports \| at least 200 Gb/sec each", "100 Gb/sec .4X EDR.")


def test_no_subnet_manager_anywhere(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        cards(host, dict.fromkeys(UP, INIT))
    found = assert_only(examine(*CARDS), "ib-port-down", examine.gpus.lab.names, "warn", devices=())
    assert {each["subject"] for each in found} == {f"mlx5_{number} port 1" for number in UP}


def test_the_job_names_its_ports(examine: GpuExaminer) -> None:
    """NCCL_IB_HCA: a named port counts although it is down everywhere; other ports do not count."""
    for host in examine.gpus:
        cards(host, UP | {3: DOWN} | ({1: DOWN} if host.number == 2 else {}))
    names = examine.gpus.lab.names

    def told(hca: str) -> tuple[str, ...]:
        inventory = examine.folder / "inventory.yaml"
        inventory.write_text(f"launch: {{NCCL_IB_HCA: '{hca}'}}\n")
        return (*CARDS, "--inventory", str(inventory))

    assert_healthy(examine(*told("mlx5_0,mlx5_2")))
    found = assert_only(examine(*told("=mlx5_0,mlx5_3")), "ib-port-down", names, devices=())
    assert_says(found, r"mlx5_3 port 1 \| active, for NCCL_IB_HCA==mlx5_0,mlx5_3 \| down, Polling")


# What ranks can do with ports that are up.


def verbs(
    host: GpuHost,
    layer: str = "InfiniBand",
    *,
    interface: str = "eth0",
    **gids: tuple[str, str],
) -> None:
    """Four cards with device files. A RoCE card has these addresses, each with its kind."""
    tree: dict[str, Tree] = {}
    for number in range(4):
        files = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec", "link_layer": layer}
        port: dict[str, str | Tree] = {name: f"{text}\n" for name, text in files.items()}
        if gids:
            port["gids"] = {index[1:]: f"{address}\n" for index, (address, _) in gids.items()}
            port["gid_attrs"] = {
                "types": {index[1:]: f"{kind}\n" for index, (_, kind) in gids.items()},
                "ndevs": {index[1:]: f"{interface}\n" for index in gids},
            }
        tree[f"mlx5_{number}"] = {
            "node_type": "1: CA\n",
            "ports": {"1": port},
            "fw_ver": "28.41.1000\n",
            "board_id": "MT_0000000838\n",
        }
    host.host.sysfs_class("infiniband", tree)
    devices: dict[str, Tree] = {f"uverbs{n}": {"ibdev": f"mlx5_{n}\n"} for n in range(4)}
    host.host.sysfs_class("infiniband_verbs", devices)
    host.host.do(
        "mkdir -p /dev/infiniband; cd /dev/infiniband; touch uverbs0 uverbs1 uverbs2 uverbs3; chmod 666 *"
    )


CLOSE = "rm -f /dev/infiniband/*"
EMPTY = ("0000:0000:0000:0000:0000:0000:0000:0000", "RoCE v2")
LOCAL = ("fe80:0000:0000:0000:0ac0:ebff:feda:1cfb", "IB/RoCE v1")
IPV4 = ("0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2")


def readdress(host: GpuHost, index: int, address: str) -> None:
    script = 'for port in /sys/class/infiniband/*/ports/1; do echo "$1" >"$port/gids/$2"; done'
    host.host.do(script, address, str(index))


def with_variables(examine: GpuExaminer, **variables: str) -> tuple[str, ...]:
    inventory = examine.folder / "inventory.yaml"
    told = ", ".join(f"{name}: '{value}'" for name, value in variables.items())
    inventory.write_text(f"launch: {{{told}}}\n")
    return (*CARDS, "--inventory", str(inventory))


def test_ports_that_ranks_may_not_open(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        verbs(host)
    assert_healthy(examine(*CARDS))
    examine.gpus["node2"].host.do(CLOSE)
    found = assert_only(examine(*CARDS), "ib-closed", ["node2"], devices=())
    assert_says(
        found, r"mlx5_\[0-3\] \| open, as on 2 other hosts of the job \| 4 of 4 are closed", "--device="
    )
    assert_healthy(examine(*with_variables(examine, NCCL_IB_DISABLE="1")))
    for host in examine.gpus:
        host.host.do(CLOSE)
    assert_only(examine(*CARDS), "ib-closed", examine.gpus.lab.names, "warn", devices=())


def test_a_card_that_no_host_has(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        verbs(host)
    names = examine.gpus.lab.names
    assert_healthy(examine(*with_variables(examine, NCCL_IB_HCA="mlx5")))
    assert_healthy(examine(*with_variables(examine, NCCL_IB_HCA="^mlx5_7")))
    found = assert_only(
        examine(*with_variables(examine, NCCL_IB_HCA="mlx_0")), "ib-hca-unknown", names, devices=()
    )
    assert_says(found, r"mlx_0 \| mlx5_\[0-3\] \| NCCL_IB_HCA=mlx_0", "ls /sys/class/infiniband")
    some = with_variables(examine, NCCL_IB_HCA="=mlx5_0,mlx5_9")
    assert_only(examine(*some), "ib-hca-unknown", names, "warn", devices=())


def test_an_address_of_another_kind(examine: GpuExaminer) -> None:
    index = with_variables(examine, NCCL_IB_GID_INDEX="3")
    for host in examine.gpus:
        verbs(host, "Ethernet", _0=LOCAL, _1=LOCAL, _2=EMPTY, _3=IPV4, _4=EMPTY)
    assert_healthy(examine(*index))
    bad = examine.gpus["node3"]
    readdress(bad, 3, EMPTY[0])
    found = assert_only(examine(*CARDS), "ib-gid-wrong", ["node3"], devices=())
    assert_says(
        found,
        "an IPv4 address in RoCE v2, as on 2 other hosts",
        "no IPv4 address in RoCE v2",
        "ip addr show dev eth0",
    )
    readdress(bad, 4, IPV4[0])
    assert_healthy(examine(*CARDS))
    found = assert_only(examine(*index), "ib-gid-wrong", ["node3"], devices=())
    assert_says(
        found[:1], r"mlx5_0 port 1 \| an IPv4 address in RoCE v2, as on 2 .* \| no address at index 3"
    )


def test_roce_with_packets_of_another_size(examine: GpuExaminer) -> None:
    """4200 and 9000 fit the same packets of RoCE."""
    for host, mtu in zip(examine.gpus, (4200, 9000, 1500), strict=True):
        host.host.do(f"ip link add rail0 type veth peer name rail1; ip link set rail0 mtu {mtu}")
        verbs(host, "Ethernet", interface="rail0", _3=IPV4)
    found = assert_only(examine(*CARDS), "ib-mtu-differs", ["node3"], "warn", devices=())
    assert_says(
        found, r"4096 bytes, as on 2 other hosts of the job \| 1024 bytes", "ip link set dev rail0 mtu"
    )


def test_firmware_of_one_card(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        verbs(host)
    examine.gpus["node1"].host.shadow("/sys/class/infiniband/mlx5_2/fw_ver", "28.36.1010\n")
    found = assert_only(examine(*CARDS), "ib-firmware-differs", ["node1"], "warn", devices=())
    assert_says(found, r"mlx5_2 \| 28.41.1000, as on 11 cards \| 28.36.1010")


# The firmware of GPUs, and partitions of InfiniBand.

DRIVER = "550.90.12"
"""That of the emulated driver."""
INFORMATION = "Model: \t\t {model}\nGPU UUID: \t GPU-0\n{firmware}GPU Excluded:\t No\n"


def firmware(host: GpuHost, versions: Mapping[int, str], usual: str) -> None:
    tree: dict[str, Tree] = {}
    for index in range(8):
        own = versions.get(index, usual)
        text = INFORMATION.format(model="NVIDIA H100", firmware=own and f"GPU Firmware: \t {own}\n")
        tree[f"0000:{0x19 + 16 * index:02x}:00.0"] = {"information": text}
    host.host.do("mkdir -p /proc/driver/nvidia/gpus")
    host.host.shadow_dir("/proc/driver/nvidia/gpus", tree)


@pytest.mark.parametrize(("odd", "actual"), [("525.60.13", "525.60.13"), ("N/A", "none")])
def test_a_gpu_runs_another_firmware(odd: str, actual: str, examine: GpuExaminer) -> None:
    bad = victim(examine.gpus, odd)
    for host in examine.gpus:
        firmware(host, {3: odd} if host is bad else {}, DRIVER)
    (found,) = assert_only(examine(*ALONE), "gpu-firmware-differs", [bad.host.name], "warn")
    assert (found["expected"], found["actual"], found["subject"]) == (DRIVER, actual, "0000:49:00.0")
    for host in examine.gpus:
        firmware(host, {}, DRIVER)
    assert_healthy(examine(*ALONE))


def test_gpus_that_all_run_without_firmware_are_sound(examine: GpuExaminer) -> None:
    for host in examine.gpus:
        firmware(host, {}, "N/A")
    assert_healthy(examine(*ALONE))


def partitions(host: GpuHost, *keys: str) -> None:
    """Four ports, with the same table of keys each."""
    cards(host, UP)
    lines = "".join(f'echo {key} >"$port/pkeys/{index}"; ' for index, key in enumerate(keys))
    host.host.do(f'for port in /sys/class/infiniband/*/ports/1; do mkdir -p "$port/pkeys"; {lines}done')


def test_a_port_in_another_partition(examine: GpuExaminer) -> None:
    bad = victim(examine.gpus, "partition")
    for host in examine.gpus:
        partitions(host, "0x8013" if host is bad else "0x8012")
    (found,) = assert_only(examine(*CARDS), "ib-partition-differs", [bad.host.name], "warn")
    assert (found["expected"], found["actual"]) == ("0x8012 at index 0", "0x8013")


def test_two_limited_members_of_a_partition(examine: GpuExaminer) -> None:
    limited = [host.host.name for host in [*examine.gpus][:2]]
    for host in examine.gpus:
        partitions(host, "0x7fff" if host.host.name in limited else "0xffff")
    found = assert_only(examine(*CARDS), "ib-partition-differs", limited, "warn")
    assert {each["actual"] for each in found} == {"limited"}


def test_partitions_that_are_sound(examine: GpuExaminer) -> None:
    """One host that serves all as a full member, and a second partition that this job does not use."""
    first = next(iter(examine.gpus))
    for host in examine.gpus:
        partitions(host, "0xffff", "0x8002" if host is first else "0x8001")
    assert_healthy(examine(*CARDS))
