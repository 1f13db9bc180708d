"""Parsers of kernel settings, limits, identity, clock and devices, on real output."""

import re
from collections.abc import Mapping

import pytest

from checks.kernel import pace_of
from doctor.api import Fact
from doctor.devices import AMD, ASCEND, NVIDIA
from doctor.errors import UnreadableOutput
from doctor.facts.limits import INFINITE, LIMITS, NEIGHBOURS, PORTS, RDMA, Limits, Ports
from doctor.facts.system import CLOCK, DEVICES, IDENTITY, KERNEL, MACHINE, TUNING, VIEW, Devices
from doctor.model import View
from tests.support.captures import held, printed, sample
from tests.support.cases import cases, from_cases

LIMITS_FILE = from_cases(__file__, "LIMITS_FILE", str)


def sysctls(**changed: str) -> dict[str, str]:
    """The sampled values, as the files that PORTS reads; `None` for a key removes its file."""
    found = dict(re.findall(r"^(\S+) = (.*)$", sample("host/sysctl_keys.txt"), re.MULTILINE))
    found |= {key.replace("__", "."): value for key, value in changed.items()}
    return {f"/proc/sys/{key.replace('.', '/')}": value for key, value in found.items() if value != "gone"}


def test_ports_of_a_stock_kernel() -> None:
    assert held(PORTS, sysctls()) == Ports(4096, 2048, range(32768, 61000), ())


@cases
def test_reserved_ports(reserved: str, yes: tuple[int, ...], no: tuple[int, ...]) -> None:
    ports = held(PORTS, sysctls(net__ipv4__ip_local_reserved_ports=reserved))
    assert [port for port in (*yes, *no) if ports.is_reserved(port)] == list(yes)


@cases
def test_missing_port_settings_are_named(changed: dict[str, str], why: str) -> None:
    with pytest.raises(UnreadableOutput, match=why):
        held(PORTS, sysctls(**changed))


def test_limits() -> None:
    assert held(LIMITS, {"/proc/self/limits": LIMITS_FILE}) == Limits(
        20000, 96365, INFINITE, cpu_seconds=INFINITE, most_files=1048576
    )


def test_a_missing_limit_is_named() -> None:
    with pytest.raises(UnreadableOutput, match="Max open files"):
        held(LIMITS, {"/proc/self/limits": LIMITS_FILE.replace("Max open files", "最大打开文件")})


def test_limits_of_the_neighbour_table() -> None:
    path = "/proc/sys/net/ipv4/neigh/default/gc_thresh3"
    assert held(NEIGHBOURS, {path: "1024"}) == 1024
    assert held(NEIGHBOURS, {}) is None


def test_settings_that_slow_a_host_down() -> None:
    cpus = {
        f"/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor": "powersave" if n else "performance"
        for n in range(4)
    }
    rest = {"/proc/sys/kernel/numa_balancing": "1", "/sys/devices/system/node/online": "0-1,4"}
    found = held(TUNING, cpus | rest)
    pace = pace_of(found)
    assert (pace.governors, pace.numa_balancing, pace.numa_nodes) == (
        {"performance": 1, "powersave": 3},
        True,
        3,
    )
    nothing = held(TUNING, {})
    bare = pace_of(nothing)
    assert (bare.governors, bare.numa_balancing, bare.numa_nodes) == ({}, False, 1)


def test_rdma() -> None:
    paths = {f"/sys/class/infiniband/mlx5_{n}/node_type": "1: CA" for n in (1, 0)}
    assert held(RDMA, paths) == ("mlx5_0", "mlx5_1")
    assert held(RDMA, {}) == ()


def test_identity() -> None:
    assert held(IDENTITY, {"/proc/sys/kernel/hostname": "node3"}) == "node3"


@pytest.mark.parametrize("name", ["", "  ", "n" * 300])
def test_identity_not_understood(name: str) -> None:
    with pytest.raises(UnreadableOutput, match="its name"):
        held(IDENTITY, {"/proc/sys/kernel/hostname": name})


def test_kernel() -> None:
    kernel = held(
        KERNEL,
        {
            "/proc/sys/kernel/osrelease": "5.10.0-60.18.0.50.oe2203.aarch64",
            "/proc/sys/kernel/version": "#1 SMP Wed Mar 30 02:43:08 UTC 2022",
            "/etc/os-release": 'NAME="openEuler"\nPRETTY_NAME="openEuler 22.03 LTS"\n',
        },
    )
    assert (kernel.release, kernel.distribution, kernel.smp) == (
        "5.10.0-60.18.0.50.oe2203.aarch64",
        "openEuler 22.03 LTS",
        True,
    )
    assert not held(KERNEL, {"/proc/sys/kernel/osrelease": "4.4", "/proc/sys/kernel/version": "#1"}).smp
    with pytest.raises(UnreadableOutput, match="osrelease"):
        held(KERNEL, {})


@cases
def test_clock(text: str, now: float) -> None:
    assert printed(CLOCK, text) == now


@pytest.mark.parametrize("text", ["", "Fri Nov 20", "-5", "1795167475.12x", "1" * 400])
def test_clock_not_understood(text: str) -> None:
    with pytest.raises(UnreadableOutput, match="date printed"):
        printed(CLOCK, text)


@cases
def test_devices(nodes: list[str], pci: str, npus: int, gpus: int, product: str) -> None:
    devices = held(DEVICES, {f"/dev/{node}": "" for node in nodes} | {"/proc/bus/pci/devices": pci})
    assert devices.product == product
    assert [len(devices.of(vendor).numbers) for vendor in (ASCEND, NVIDIA)] == [npus, gpus]


PLACES = from_cases(__file__, "PLACES", dict[str, tuple[str, str, int]])


def bus(places: Mapping[str, tuple[str, str, int]], *, classes: bool) -> Devices:
    rows, files = [], {}
    for place, (pci, kind, _) in places.items():
        number, device, function = (int(text, 16) for text in re.split("[:.]", place))
        rows.append(f"{number:02x}{device << 3 | function:02x}\t{pci}\t0\t")
        files[f"/sys/bus/pci/devices/0000:{place}/class"] = kind
    return held(DEVICES, {"/proc/bus/pci/devices": "\n".join(rows)} | (files if classes else {}))


@pytest.mark.parametrize("place", PLACES)
def test_which_devices_on_the_bus_are_gpus(place: str) -> None:
    known = bus({place: PLACES[place]}, classes=True)
    assert known.of(NVIDIA).on_bus == PLACES[place][2]
    assert known.product == ("nvidia" if PLACES[place][2] else "cpu")


def test_gpus_are_counted_by_their_class() -> None:
    assert bus(PLACES, classes=True).of(NVIDIA).on_bus == 2
    assert bus(PLACES, classes=False).of(NVIDIA).on_bus == 6


@pytest.mark.parametrize(("driver", "screens"), [("nouveau", 1), ("", 1), ("nvidia", 0)])
def test_a_card_for_a_screen(driver: str, screens: int) -> None:
    row = f"0100\t10de128b\t0\t     0\t{driver}"
    kind = {"/sys/bus/pci/devices/0000:01:00.0/class": "0x030000"}
    assert held(DEVICES, {"/proc/bus/pci/devices": row, **kind}).of(NVIDIA).screens == screens


def test_accelerators_and_graphics_of_amd() -> None:
    kinds = {"01:00.0": ("100274a1", "0x120000", 1), "02:00.0": ("1002ffff", "0x120000", 1)}
    graphics = {"03:00.0": ("1002164e", "0x030000", 0), "03:00.1": ("10021640", "0x040300", 0)}
    old = {"04:00.0": ("1002738c", "0x038000", 1)}
    assert bus({**kinds, **graphics, **old}, classes=True).of(AMD).on_bus == 3
    assert bus(graphics, classes=True).product == "cpu"


def test_a_place_that_several_domains_use_may_be_a_gpu() -> None:
    files = {
        f"/sys/bus/pci/devices/000{n}:01:00.0/class": kind for n, kind in enumerate(("0x060400", "0x030200"))
    }
    found = held(DEVICES, {"/proc/bus/pci/devices": "0100\t10de2330\t0\t", **files})
    assert found.of(NVIDIA).on_bus == 1


ROOTFS = "1 1 0:2 / / rw - rootfs rootfs rw\n"
LIVE = "28 1 0:25 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/run/live/lower\n"
DOCKER = from_cases(__file__, "DOCKER", str)


def test_a_container_is_another_machine_than_its_host() -> None:
    boot = {"/proc/sys/kernel/random/boot_id": "0f9e3b6c-4a0e-4f6e-9c57-6a2c1d1f8a11"}
    host, container, unknown = (
        held(MACHINE, {**boot, "/proc/self/mountinfo": text}) for text in (ROOTFS + LIVE, DOCKER, "")
    )
    assert (host.root, container.root) == ("28", "871")
    assert host.boot == container.boot
    assert (host.known, unknown.known) == (True, False)


@cases
def test_view(contents: dict[str, str], view: View) -> None:
    assert held(VIEW, contents) is view


@pytest.mark.parametrize("text", ["noise", "0::/docker/0123abcd", "/proc/1/cgroup:0::/docker/0\nnoise"])
@pytest.mark.parametrize("fact", [VIEW, DEVICES], ids=["view", "devices"])
def test_what_is_no_text_of_files_says_nothing(fact: Fact[object], text: str) -> None:
    """A damaged answer must not look like that of a host without devices."""
    with pytest.raises(UnreadableOutput, match="belongs to no file"):
        printed(fact, text)


def test_where_nothing_can_be_read_no_view_is_taken_for_granted() -> None:
    with pytest.raises(UnreadableOutput, match="control group"):
        printed(VIEW, "")
