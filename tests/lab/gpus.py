"""Hosts with NVIDIA GPUs: an emulated `nvidia-smi`, a driver that may be gone, and a fabric manager.

with Lab(2) as lab:
    gpus = fit_gpus(lab)
    gpus["node2"][3].ecc(4)
    gpus["node2"].without_driver()
    gpus.reset()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.support.cases import from_cases

from . import gpu_texts as says
from .emulated import Emulated, Fitted, emulator
from .host import Host
from .lab import Lab

_TOLD = from_cases(__file__, "_TOLD", tuple[str, ...])
"""What nvidia-smi still reports for a GPU that has a problem."""


class Gpu:
    """One GPU; `gpu[field]` is the output of a query for the field, without its unit."""

    def __init__(self, host: GpuHost, index: int) -> None:
        self.host = host
        self.index = index
        self.values = says.healthy(host.number, index, host.count)
        self.apps: tuple[says.App, ...] = ()
        self.down: frozenset[int] = frozenset()
        self.replays = self.link_errors = "106"
        self.message = ""

    def __getitem__(self, field: str) -> str:
        return self.values[field]

    def __setitem__(self, field: str, value: object) -> None:
        assert field in self.values
        self.values[field] = str(value)
        self.host.tell()

    def ecc(self, uncorrected: int) -> None:
        self["ecc.errors.uncorrected.volatile.total"] = uncorrected

    def remap(self, *, failed: bool = False) -> None:
        """A row of its memory waits for a reset to be replaced, or could not be replaced."""
        self[f"remapped_rows.{'failure' if failed else 'pending'}"] = "Yes"

    def needs_reset(self) -> None:
        for field in ("temperature.gpu", "pstate", "utilization.gpu"):
            self.values[field] = "[GPU requires reset]"
        self["gpu_recovery_action"] = "Reset"

    def counts(self, *, replays: str = "106", link_errors: str = "106") -> None:
        """What it counts of its PCIe link, and as Replay Errors of its link 7; "@" grows all the time."""
        self.replays, self.link_errors = replays, link_errors
        self.host.tell()

    def lost(self) -> None:
        """The GPU fell off the bus while the driver was running."""
        for field in self.values.keys() - set(_TOLD):
            self.values[field] = "[GPU is lost]"
        self.host.tell()

    def unknown(self) -> None:
        """nvidia-smi cannot even identify the GPU."""
        self.message = f"Unable to determine the device handle for GPU{self['pci.bus_id'][4:]}: Unknown Error"
        self.host.tell()

    def processes(self, *running: tuple[str, int, int]) -> None:
        """Name, process id and memory in MiB of each."""
        self.apps = tuple(says.App(*app) for app in running)
        self.memory(1 + sum(app.memory_mb for app in self.apps))

    def works(self, mhz: int = 1980, watts: float = 620.0, reasons: int = 0) -> None:
        """Load it: with this clock and power, and the bits of NVML that say what holds the clock down."""
        self.values |= {
            "clocks.sm": str(mhz),
            "power.draw": f"{watts:.2f}",
            "utilization.gpu": "100",
            "temperature.gpu": "60",
        }
        self["clocks_event_reasons.active"] = f"0x{reasons:016x}"

    def memory(self, megabytes: int) -> None:
        """Set the memory in use, whatever process uses it."""
        self.values["memory.free"] = str(says.MEMORY - megabytes)
        self["memory.used"] = megabytes

    def links_down(self, *links: int) -> None:
        """Take NVLinks down by number; without numbers, all of them."""
        self.down = frozenset(links or range(says.LINKS))
        self.host.tell()


class GpuHost(Emulated):
    """The GPUs of one host, by index."""

    prepare = """
    if ! grep -q '^nvidia /proc/driver ' /proc/mounts; then mount -t tmpfs -o mode=755 nvidia /proc/driver; fi
    ! [ -e /dev/nvidia0 ] || chmod 666 /dev/nvidia*
    """

    gpus: tuple[Gpu, ...]
    gone: frozenset[int]
    unplugged: frozenset[int]
    switched: bool
    topology: dict[tuple[int, int], str]
    unknown_fields: frozenset[str]

    def __init__(self, host: Host, count: int, switches: int) -> None:
        super().__init__(host, "gpu")
        self.count = count
        self.switches = switches
        self.finish = _FABRIC_MANAGER if switches else ""
        self._restore()
        self._healthy = self._texts()

    def __getitem__(self, index: int) -> Gpu:
        return self.gpus[index]

    def __iter__(self) -> Iterator[Gpu]:
        return iter(self.gpus)

    # Faults of the whole host; `reset` removes them.

    def drop(self, index: int, *, node: bool = False) -> None:
        """A GPU has been gone since the last boot: from the bus, from /dev and from nvidia-smi, which
        renumber the others.

        With `node` only nvidia-smi lacks it: the driver found it and could not start it.
        """
        self.gone |= {index}
        self.tell()
        if not node:
            self.unplugged |= {index}
            self.plug()
            self.do('rm -f "/dev/nvidia$1"', str(self.count - len(self.unplugged)))

    def without_gpus(self) -> None:
        """A host that never had a GPU: it has neither driver nor nvidia-smi."""
        self.gone = self.unplugged = frozenset(range(self.count))
        self.switched = False
        self.tell()
        self.plug()
        self.do(f"rm -rf /proc/driver/nvidia* /dev/nvidia* /usr/bin/nvidia-smi\n{_STOP}")

    def without_switches(self) -> None:
        """No NVSwitch connects its GPUs, so they do not join a fabric."""
        self.switched = False
        self.plug()
        for gpu in self.gpus:
            for field in ("fabric.state", "fabric.status"):
                gpu.values[field] = "N/A"
        self.tell()
        self.do(f"rm -rf /proc/driver/nvidia-nvswitch /dev/nvidia-nvswitch*\n{_STOP}")

    def joined(self, one: int, other: int, by: str) -> None:
        """Set what `topo -m` shows between two GPUs, such as SYS or NV6."""
        self.topology[min(one, other), max(one, other)] = by
        self.tell()

    def driver_lacks(self, *fields: str) -> None:
        """Give the host an older driver, which refuses queries for these fields."""
        self.unknown_fields = frozenset(fields)
        self.tell()

    def without_driver(self) -> None:
        """The kernel module is not loaded, but the program is installed."""
        self.put("no_driver", says.NO_DRIVER)
        self.do("rm -rf /proc/driver/nvidia /proc/driver/nvidia-nvswitch /dev/nvidia*")

    def slow(self, seconds: float) -> None:
        """Every call of nvidia-smi takes so long, as without persistence mode."""
        self.put("slow", str(seconds))

    def hang(self, kind: str = "all") -> None:
        """nvidia-smi hangs on a query (gpus, apps, nvlink or topo), or on every call."""
        self.put(f"hang/{kind}", "")

    def only_for_root(self) -> None:
        """Only root may open the GPUs: no other job can use them."""
        self.do("chmod 600 /dev/nvidia[0-9]*")

    def stop_fabric_manager(self) -> None:
        self.do(_STOP)

    def reset(self) -> None:
        self._restore()
        super().reset()

    def tell(self) -> None:
        """Make nvidia-smi print the present state of the GPUs."""
        self.show(self._texts())

    def _restore(self) -> None:
        self.gone = self.unplugged = frozenset()
        self.switched = True
        self.topology = {}
        self.unknown_fields = frozenset()
        self.gpus = tuple(Gpu(self, index) for index in range(self.count))

    # What `Emulated` installs.

    def healthy(self) -> Mapping[str, str]:
        return self._healthy

    def programs(self) -> Mapping[str, tuple[str, int]]:
        files = {
            "/usr/bin/nvidia-smi": (emulator("nvidia-smi"), 0o755),
            "/proc/driver/nvidia/version": (says.VERSION, 0o444),
        }
        for switch in range(self.switches):
            place = f"/proc/driver/nvidia-nvswitch/devices/0000:{0xC1 + switch:02x}:00.0/information"
            files[place] = ("", 0o444)
        return files

    def nodes(self) -> tuple[str, ...]:
        switches = tuple(f"nvidia-nvswitch{switch}" for switch in range(self.switches))
        return (*(f"nvidia{index}" for index in range(self.count)), "nvidiactl", "nvidia-uvm", *switches)

    def bus(self) -> Iterator[tuple[str, str, str]]:
        for gpu in self.gpus:
            if gpu.index not in self.unplugged:
                yield f"{says.bus(gpu.index)[9:11].lower()}00", says.PCI, "nvidia"
        for switch in range(self.switches if self.switched else 0):
            yield f"{0xC1 + switch:02x}00", says.SWITCH_PCI, "nvidia-nvswitch"

    def _texts(self) -> dict[str, str]:
        there = [gpu for gpu in self.gpus if gpu.index not in self.gone]
        numbers = {gpu.index: number for number, gpu in enumerate(there)}
        count = str(len(there))
        rows = [{**gpu.values, "index": str(numbers[gpu.index]), "count": count} for gpu in there]
        joined = {
            (numbers[a], numbers[b]): by for (a, b), by in self.topology.items() if {a, b} <= numbers.keys()
        }
        paired = list(zip(there, rows, strict=True))
        return {
            "gpus": says.gpus([gpu.message or row for gpu, row in paired], self.unknown_fields),
            "apps": says.apps((row, app) for gpu, row in paired for app in gpu.apps),
            "nvlink": says.nvlink((row, gpu.down) for gpu, row in paired),
            "query": "".join(says.query(row, gpu.replays) for gpu, row in paired),
            "errors": "".join(says.link_errors(row, gpu.link_errors) for gpu, row in paired),
            "topo": says.topology(range(len(there)), joined),
            "list": "".join(map(says.head, rows)),
            "plain": says.plain((row, gpu.apps) for gpu, row in paired),
        }


_STOP = from_cases(__file__, "_STOP", str)
_FABRIC_MANAGER = from_cases(__file__, "_FABRIC_MANAGER", str)


Gpus = Fitted[GpuHost]


def fit_gpus(lab: Lab, count: int = 8, switches: int = 4) -> Gpus:
    """Put this many GPUs, and NVSwitches between them, into every host of a running lab."""
    gpus = Gpus(lab, {host.name: GpuHost(host, count, switches) for host in lab})
    gpus.reset()
    return gpus
