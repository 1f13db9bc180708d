"""Hosts with AMD GPUs: an emulated `amd-smi` and `rocm-smi`, render nodes, and the topology of the driver.

with Lab(3) as lab:
    amd = fit_amd(lab)
    amd["node2"][3].uncorrected = 4
    amd["node2"].tell()
    amd.reset()
"""

from collections.abc import Iterator, Mapping

from . import amd_texts as says
from .amd_texts import State
from .emulated import ON_HOST, Emulated, Fitted, emulator
from .host import Host
from .lab import Lab

FIRST_MINOR = 128
BUSES = ("05", "26", "46", "65", "85", "a6", "c6", "e5")
"""In the order of the tools. HIP counts in the order of the driver's topology, which is the reverse here."""


class AmdHost(Emulated):
    """The GPUs of one host, by the number that amd-smi gives them."""

    prepare = f"""
    if ! [ -e /sys/class/kfd ]; then
      new=$(mktemp -d)
      mount -t tmpfs shadow "$new"
      mkdir "$new/upper" "$new/work"
      ln -s {ON_HOST}/here/amd "$new/upper/kfd"
      mount -t overlay -o "lowerdir=/sys/class,upperdir=$new/upper,workdir=$new/work" class /sys/class
      umount -l "$new"
      rmdir "$new"
    fi
    mkdir -p /dev/dri
    ! [ -e /dev/kfd ] || chmod 666 /dev/kfd /dev/dri/renderD*
    """

    gpus: list[State]

    def __init__(self, host: Host, count: int) -> None:
        super().__init__(host, "amd")
        self.count = count
        self.wrapped = host.spec.index % 2 == 0
        """Half of the hosts have ROCm 7, the others ROCm 6."""
        self.unplugged: frozenset[int] = frozenset()
        self._restore()
        self._healthy = self._texts()

    def __getitem__(self, index: int) -> State:
        return self.gpus[index]

    def drop(self, index: int, *, node: bool = False) -> None:
        """A GPU has been gone since the last boot, and the others are renumbered. With `node` only the tools
        lack it.
        """
        lost = self.gpus.pop(index)
        for number, gpu in enumerate(self.gpus):
            gpu.index = number
        self.tell()
        if not node:
            self.unplugged |= {lost.minor}
            self.plug()
            self.remove(self._node(lost))
            self.do('rm "/dev/dri/renderD$1"', str(lost.minor))

    def without_driver(self) -> None:
        for gpu in self.gpus:
            self.remove(self._node(gpu))
        self.do("rm /dev/kfd /dev/dri/renderD*")

    def without_gpus(self) -> None:
        """A host that never had a GPU: it has neither driver nor tool."""
        self.unplugged = frozenset(gpu.minor for gpu in self.gpus)
        self.plug()
        self.without_driver()
        self.do("rm /usr/bin/amd-smi /usr/bin/rocm-smi")

    def hang(self, what: str = "amd-smi") -> None:
        self.put(f"hang/{what}", "")

    def only_for_root(self) -> None:
        self.do("chmod 600 /dev/kfd /dev/dri/renderD*")

    def runs(self, index: int, *apps: tuple[str, int, int]) -> None:
        """Set the processes of a GPU: name, process id, megabytes."""
        self[index].apps = list(apps)
        self[index].used_mb = says.IDLE_MB + sum(mb for _, _, mb in apps)
        self.tell()

    def reset(self) -> None:
        self.unplugged = frozenset()
        self._restore()
        super().reset()

    def tell(self) -> None:
        """Make the tools print the present state of the GPUs."""
        self.show(self._texts())

    def _restore(self) -> None:
        self.gpus = [
            State(index, f"0000:{BUSES[index]}:00.0", FIRST_MINOR + index) for index in range(self.count)
        ]

    # What `Emulated` installs.

    def healthy(self) -> Mapping[str, str]:
        return self._healthy

    def programs(self) -> Mapping[str, tuple[str, int]]:
        return {f"/usr/bin/{name}": (emulator(name), 0o755) for name in ("amd-smi", "rocm-smi")}

    def nodes(self) -> tuple[str, ...]:
        return ("kfd", *(f"dri/renderD{FIRST_MINOR + index}" for index in range(self.count)))

    def bus(self) -> Iterator[tuple[str, str, str]]:
        for index, bus in enumerate(BUSES[: self.count]):
            if FIRST_MINOR + index not in self.unplugged:
                yield f"{bus}00", says.PCI, "amdgpu"

    def _node(self, gpu: State) -> str:
        return f"kfd/topology/nodes/{2 + self.count - (gpu.minor - FIRST_MINOR)}/properties"

    def _texts(self) -> dict[str, str]:
        nodes = {self._node(gpu): says.node(gpu) for gpu in self.gpus}
        cpus = {f"kfd/topology/nodes/{number}/properties": says.node(None) for number in (0, 1)}
        return {
            **cpus,
            **nodes,
            "static": says.printed(says.static(self.gpus), wrapped=self.wrapped),
            "metric": says.printed(says.metric(self.gpus), wrapped=self.wrapped),
            "throttle": says.printed(says.throttle(self.gpus), wrapped=self.wrapped),
            "bad-pages": says.printed(says.bad_pages(self.gpus), wrapped=False),
            "process": says.printed(says.process(self.gpus), wrapped=False),
            "rocm-info": says.rocm_info(self.gpus),
            "rocm-pids": says.rocm_pids(self.gpus),
        }


AmdGpus = Fitted[AmdHost]


def fit_amd(lab: Lab, count: int = 8) -> AmdGpus:
    """Put this many GPUs into every host of a running lab."""
    amd = AmdGpus(lab, {host.name: AmdHost(host, count) for host in lab})
    amd.reset()
    return amd
