"""Hosts with Ascend NPUs: emulated `hccn_tool` and `npu-smi`, and the fabric that connects all NPUs.

with Lab(3) as lab:
    rack = fit_npus(lab, "atlas-a2")
    rack["node2"][3].link_up = False
    rack.cut(rack["node1"][0], rack["node3"][0])
    lab.doctor("check", *lab.names)
    assert not rack.setters
    rack.reset()
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator, Mapping

from . import npu_python
from .device_os import DeviceOs
from .emulated import ON_HOST, Emulated, Fitted, emulator
from .errors import LabError
from .hccn_texts import common, conf, own
from .host import Host
from .lab import Lab
from .npu import Npu
from .npu_products import PRODUCTS, Product
from .npu_python import TorchNpu
from .smi_tables import Chip
from .smi_texts import texts

TOOL = "/usr/local/Ascend/driver/tools/hccn_tool"


class NpuHost(Emulated):
    """The NPUs of one host, by their number N in /dev/davinciN."""

    # Settings that a job over HCCL needs.
    finish = "\necho 60000-60031 >/proc/sys/net/ipv4/ip_local_reserved_ports\n"

    def __init__(self, host: Host, product: Product) -> None:
        super().__init__(host, "npu")
        self.product = product
        self.npus = tuple(Npu(self, device) for device in range(product.devices))
        self.chips: dict[int, Chip] = {}
        self._held: list[tuple[int, threading.Timer]] = []
        self.device_os: DeviceOs | None = None
        self._healthy = self._texts()
        self._touch("lock", 0o600)

    def __getitem__(self, device: int) -> Npu:
        return self.npus[device]

    def __iter__(self) -> Iterator[Npu]:
        return iter(self.npus)

    def fit_torch_npu(self, way: TorchNpu = TorchNpu(), lingers: float = 0.0) -> str:  # noqa: B008
        """Install the emulated torch_npu until the next `reset`; returns the interpreter that has it. A
        device stays taken for `lingers` seconds after its last process has ended.
        """
        self._end_device_os()
        folder = self.folder / "torch_npu"
        npu_python.write(folder, f"{ON_HOST}/here/npu/torch_npu", self.product, way)
        for device in range(self.product.devices):
            self._show_hccp(device, False)
        self.device_os = DeviceOs(folder / "os", lingers, self._show_hccp)
        return f"{ON_HOST}/here/npu/torch_npu/npu-python"

    def _show_hccp(self, device: int, there: bool) -> None:
        self[device].says("process", f"device hccp process: {'' if there else 'not '}exist\n")

    def _end_device_os(self) -> None:
        if self.device_os is not None:
            self.device_os.close()
            self.device_os = None

    # Faults of the whole host; `reset` removes them.

    def drop(self, device: int, *, node: bool = False) -> None:
        """A card falls off the bus and its file in /dev disappears, unless `node` is set: then the driver
        keeps the file.
        """
        self.put(f"{device}/gone", "")
        del self.chips[device]
        self.tell()
        self.plug()
        if not node:
            self.do('rm -f "/dev/davinci$1"', str(device))

    def busy(self, seconds: float | None = None) -> None:
        """Another process runs hccn_tool: for this many seconds, or until `free`."""
        held = os.open(self.folder / "lock", os.O_RDWR)
        timer = threading.Timer(seconds or 0, fcntl.flock, [held, fcntl.LOCK_UN])
        timer.daemon = True
        self._held.append((held, timer))
        deadline = time.monotonic() + 5
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LabError(f"{self.host.name}: hccn_tool is busy already") from None
                time.sleep(0.005)
        if seconds is not None:
            timer.start()

    def free(self) -> None:
        """End the other process that runs hccn_tool."""
        while self._held:
            held, timer = self._held.pop()
            timer.cancel()
            fcntl.flock(held, fcntl.LOCK_UN)
            os.close(held)

    def hang(self, query: str = "all", device: int | None = None, *, deaf: bool = False) -> None:
        """hccn_tool hangs on `-QUERY`; with `deaf` it ignores all signals but KILL."""
        self.put(f"hang/{query}.{'all' if device is None else device}", "deaf\n" if deaf else "")

    def hang_smi(self, kind: str = "all") -> None:
        """npu-smi hangs on `info`, on `info -t KIND`, or on every call."""
        self.put(f"hang/smi.{kind}", "")

    def slow(self, seconds: float) -> None:
        """Every call of hccn_tool takes this many seconds longer."""
        self.put("delay", f"{seconds:g}\n")

    def ping_timeout(self, seconds: float) -> None:
        """Set how long a ping takes that lost packets."""
        self.put("ping_wait", f"{seconds:g}\n")

    def without_tool(self) -> None:
        """hccn_tool is missing, as in a container that does not mount it."""
        self.do('rm -f "$1" /usr/local/bin/hccn_tool', TOOL)

    def without_smi(self) -> None:
        self.do("rm -f /usr/local/bin/npu-smi")

    def configure(self, device: int, **settings: str | None) -> None:
        """Edit only /etc/hccn.conf; None removes a setting."""
        for key, value in settings.items():
            line = "" if value is None else f"{key}_{device}={value}\n"
            self.do('sed -i "/^$1=/d" /etc/hccn.conf; cat >>/etc/hccn.conf', f"{key}_{device}", stdin=line)

    @property
    def conf(self) -> str:
        return self.host.ask("cat /etc/hccn.conf").stdout

    def reset(self) -> None:
        self.free()
        self._end_device_os()
        self.chips = self._chips()
        super().reset()

    def tell(self) -> None:
        """Make npu-smi print `chips`."""
        shown = {f"smi/{name}": text for name, text in texts(self.product, self.number, self.chips).items()}
        for path in (self.folder / "smi").iterdir():
            if f"smi/{path.name}" not in shown:
                path.unlink()
        self.show(shown)

    # What `Emulated` installs.

    def healthy(self) -> Mapping[str, str]:
        return self._healthy

    def programs(self) -> Mapping[str, tuple[str, int]]:
        product = self.product
        return {
            TOOL: (emulator("hccn_tool"), 0o755),
            "/usr/local/bin/hccn_tool": (emulator("hccn_tool"), 0o755),
            "/usr/local/bin/npu-smi": (emulator("npu-smi"), 0o755),
            f"{ON_HOST}/hccn_fabric.sh": (emulator("hccn_fabric.sh"), 0o644),
            f"{ON_HOST}/hccn_setters.sh": (emulator("hccn_setters.sh"), 0o644),
            "/etc/hccn.conf": (conf(product, self.number), 0o640),
            **{path: (text, 0o644) for path, text in product.installed.items()},
        }

    def nodes(self) -> tuple[str, ...]:
        devices = tuple(f"davinci{device}" for device in range(self.product.devices))
        return (*devices, "davinci_manager", "devmm_svm", "hisi_hdc")

    def bus(self) -> Iterator[tuple[str, str, str]]:
        for device in self.chips:
            place = self.product.bus(device)[5:7].lower() + "00"
            yield place, self.product.pci, "devdrv_device_driver"

    def _chips(self) -> dict[int, Chip]:
        return {device: Chip(idle_hbm_mb=self.product.idle_mb) for device in range(self.product.devices)}

    def _texts(self) -> dict[str, str]:
        """The text of every file on a healthy host."""
        product = self.product
        files = {"host": f"{self.host.name}\n", "ping_wait": "0.2\n"}
        files["ip_tail"] = "" if product.modern else "\n"
        if product.name == "atlas-950":
            files["mode_first"] = ""
        for device in range(product.devices):
            mine = own(product, self.number, device)
            files |= {f"{device}/{name}": text for name, text in mine.items()}
        files |= {f"all/{name}": text for name, text in common(product, self.number).items()}
        shown = texts(product, self.number, self._chips())
        return files | {f"smi/{name}": text for name, text in shown.items()}


class Rack(Fitted[NpuHost]):
    """The hosts of a lab that have NPUs, and the fabric between them."""

    def __init__(self, lab: Lab, hosts: Mapping[str, NpuHost]) -> None:
        super().__init__(lab, hosts)
        shared = lab.directory / "shared"
        self._cuts = shared / "cut"
        self._cuts.mkdir(exist_ok=True)
        self._routers = shared / "routers"
        self._routers.mkdir(exist_ok=True)

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """Host and arguments of every call that was made while another one was running."""
        return tuple((host.host.name, call) for host in self for call in host.refused)

    def fit_torch_npu(self, way: TorchNpu = TorchNpu(), lingers: float = 0.0) -> str:  # noqa: B008
        """The same on every host; returns the interpreter for `--python`."""
        (python,) = {host.fit_torch_npu(way, lingers) for host in self}
        return python

    def cut(self, npu: Npu, other: Npu | None = None, *, back: bool = True) -> None:
        """Lose every ping between two NPUs, or between one and all others; links stay up.

        Without `back`, only those that `npu` sends are lost, and `other` still reaches `npu`.
        """
        names = [npu.name] if other is None else [f"{npu.name}>{other.name}"]
        if other is not None and back:
            names.append(f"{other.name}>{npu.name}")
        for name in names:
            (self._cuts / name).touch()

    def cut_rail(self, device: int) -> None:
        """The switch of the NPUs with this number loses all packets."""
        for host in self:
            self.cut(host[device])

    def router(self, address: str) -> None:
        """Add a switch with an address, which answers pings and routes to every segment."""
        (self._routers / address).touch()

    def free(self) -> None:
        """End the other processes that run hccn_tool, on all hosts."""
        for host in self:
            host.free()

    def reset(self) -> None:
        """Make all NPUs healthy, reconnect everything and forget all calls; rebooted hosts get their
        emulators again.
        """
        for change in (*self._cuts.iterdir(), *self._routers.iterdir()):
            change.unlink()
        for host in self:
            host.reset()
            for address in host.product.routers:
                self.router(address)


def fit_npus(lab: Lab, product: str | Mapping[str, str | Product] = "atlas-a2") -> Rack:
    """Put NPUs of a product into every host of a running lab, or into the hosts of a mapping."""
    products = dict.fromkeys(lab.names, product) if isinstance(product, str) else product
    kinds = {name: PRODUCTS[kind] if isinstance(kind, str) else kind for name, kind in products.items()}
    rack = Rack(lab, {name: NpuHost(lab[name], kind) for name, kind in kinds.items()})
    rack.reset()
    return rack
