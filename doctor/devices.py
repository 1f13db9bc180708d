"""The vendors of accelerators, one row each: how their devices are named and which backend they use.

This is the only place that tells vendors apart by name. Everything that depends on the vendor reads its row;
`docs/adding-a-vendor.md` lists what else a new one needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from doctor.model import Backend


@dataclass(frozen=True, slots=True, eq=False)
class Vendor:
    """One vendor. `where` and `node_files` hold shell patterns, as do the keys of `versions`; the other
    patterns are regular expressions."""

    name: str
    product: str
    """What a report calls a host with these devices, if `products` has no better word."""
    thing: str
    """What one of its devices is called."""
    backend: Backend
    files: str
    """A device file is this prefix and a number."""
    where: tuple[str, ...]
    """Its tools have something to examine if one of these files exists."""
    tool_seconds: int
    """How much of the probe's time its main tool may take, in seconds."""
    on_bus: str
    """Vendor and device on the PCI bus, followed by base class and subclass if they are known."""
    driver: str
    """This file exists if the driver is loaded."""
    visible: tuple[str, ...]
    """Variables that choose devices. The vendor's runtime honours all of them."""
    variables: str
    """The variables of its libraries that matter to a job."""
    seen_twice: Literal["none", "once", "end"]
    """What its runtime takes if `visible` names a device twice: none, that one once, or no further ones."""
    launch_needs: str
    """What in a launch script does not work without its devices."""
    kernel_log: str
    """What its driver logs when a device is faulty, for grep -E and Python."""
    prefix: str
    """The prefix of the ids of its own checks."""
    sick: tuple[str, ...]
    """The checks that find a faulty device; their findings explain what a smoke run sees."""
    busy: str
    """The check that finds a device in use."""
    launch_hints: str = ""
    """What in a launch script is written for its devices, and does no harm without them."""
    screens: str = ""
    """Like `on_bus`: devices that may only drive a screen."""
    asked_with_driver: bool = False
    """Its tool is called only if the driver is loaded."""
    log_check: str = ""
    """The check that judges what its driver logs; kernel-log does if there is none."""
    empty_hides: bool = False
    """Whether an empty variable of `visible` leaves no device."""
    blank_ends: bool = False
    """Whether its runtime reads no further than a blank."""
    also_visible: tuple[str, ...] = ()
    """Variables of other programs that choose devices."""
    given: tuple[str, ...] = ()
    """Variables that tell a runtime which devices a container is given: device plugins set them."""
    products: Mapping[str, str] = field(default_factory=dict)
    servers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Product -> the possible numbers of devices in a server with it, fewest first."""
    replaces: tuple[Backend, ...] = ()
    """Backends that launches for its devices name too: its software puts its own in their place."""
    torch: str = ""
    """The name of its software in torch's version.py."""
    driver_version: str = ""
    """The pattern that finds the version in the file `driver`."""
    node_files: str = ""
    """The files of its devices in sysfs, if devices of other vendors have the same device files."""
    node: str = ""
    """The pattern that finds the number of the device file in one of `node_files`."""
    versions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """File -> the component, and the pattern that finds its version in the file."""

    def server_size(self, product: str, there: int) -> int | None:
        """The full number of devices in a server of this product that shows `there` devices; None if unknown.

        Half or fewer may be single cards, or what a virtual machine was given.
        """
        return next((n for n in self.servers.get(product, ()) if n // 2 < there <= n), None)


ASCEND = Vendor(
    name="Ascend",
    product="ascend",
    thing="NPU",
    backend=Backend.HCCL,
    files="/dev/davinci",
    where=("/dev/davinci[0-9]*",),
    tool_seconds=40,
    on_bus="19e5d80[1236].*",
    products={
        "19e5d801": "atlas-training",
        "19e5d802": "atlas-a2",
        "19e5d803": "atlas-a3",
        "19e5d806": "atlas-950",
    },
    servers={"atlas-training": (8,), "atlas-a2": (8, 16), "atlas-a3": (16,), "atlas-950": (8,)},
    driver="/usr/local/Ascend/driver/version.info",
    driver_version=r"^[Vv]ersion=(\S+)",
    visible=("ASCEND_RT_VISIBLE_DEVICES",),
    seen_twice="end",
    blank_ends=True,
    also_visible=("NPU_VISIBLE_DEVICES",),
    given=("ASCEND_VISIBLE_DEVICES",),
    variables="(HCCL|ASCEND|NPU|P2P_HCCL)_[A-Z0-9_]+",
    launch_needs=(
        r"(?<!\S)\S*[Aa]scend\S{0,200}/set_env\.sh|\bASCEND_RT_VISIBLE_DEVICES=\w\S*|\bNPUS?_PER_NODE=\w+|\btorch_npu\w*"
        r"|--(?:\w+[-_])?backend[= ]+['\"]?hccl\b|--device[-_]target[= ]+['\"]?[Aa]scend\b"
    ),
    replaces=(Backend.NCCL,),  # MindSpeed
    launch_hints=r"\bHCCL_[A-Z0-9_]+=\S*|\bmsrun(?=\s)",
    kernel_log="heart.?beat lost",
    versions={
        "/usr/local/Ascend/driver/version.info": ("driver", r"^[Vv]ersion=(\S+)"),
        "/usr/local/Ascend/firmware/version.info": ("firmware", r"^[Vv]ersion=(\S+)"),
        "/usr/local/Ascend/ascend-toolkit/latest/*-linux/ascend_toolkit_install.info": (
            "cann",
            r"^version=(\S+)",
        ),
        "/usr/local/Ascend/nnae/latest/ascend_nnae_install.info": ("nnae", r"^version=(\S+)"),
    },
    prefix="device-",
    sick=("device-unhealthy",),
    busy="device-busy",
)

_NVIDIA_VERSION = r"Module\s+(?:for \S+\s+)?(\d+\.\d+\S*)"
NVIDIA = Vendor(
    name="NVIDIA",
    product="nvidia",
    thing="NVIDIA GPU",
    backend=Backend.NCCL,
    files="/dev/nvidia",
    where=("/dev/nvidia[0-9]*",),
    tool_seconds=40,
    # Displays (03) and accelerators (12): sound, USB, NVSwitches and root ports have the same vendor id.
    on_bus="10de....(|(03|12)..)",
    screens="10de....0300",
    asked_with_driver=True,
    torch="cuda",
    driver="/proc/driver/nvidia/version",
    driver_version=_NVIDIA_VERSION,
    visible=("CUDA_VISIBLE_DEVICES",),
    seen_twice="none",
    empty_hides=True,
    given=("NVIDIA_VISIBLE_DEVICES",),
    launch_needs=r"--(?:\w+[-_])?backend[= ]+['\"]?nccl\b|--nproc[-_]per[-_]node[= ]+gpu\b",
    launch_hints=r"\bNCCL_(?:IB|NET_GDR|P2P|NVLS|CROSS_NIC)_?[A-Z0-9_]*=\S*|\bCUDA_VISIBLE_DEVICES=\w[\w,-]*",
    variables="NCCL_[A-Z0-9_]+|CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS)",
    kernel_log="NVRM: Xid|fallen off the bus",
    versions={
        "/proc/driver/nvidia/version": ("nvidia-driver", _NVIDIA_VERSION),
        "/usr/local/cuda/version.json": ("cuda", r'"cuda"[^}]{0,200}?"version"\s*:\s*"([^"]+)"'),
    },
    prefix="gpu-",
    sick=("gpu-ecc", "gpu-xid", "gpu-unhealthy"),
    busy="gpu-busy",
    log_check="gpu-xid",
)

AMD = Vendor(
    name="AMD",
    product="amd",
    thing="AMD GPU",
    backend=Backend.NCCL,  # torch calls RCCL by this name
    files="/dev/dri/renderD",
    # Graphics of other vendors have such files too: the kernel's ROCm driver shows which belong to its GPUs.
    # Those with fewer than 64 SIMDs are part of a processor.
    node_files="/sys/class/kfd/kfd/topology/nodes/*/properties",
    node=(
        r"(?ms)(?=.*^simd_count (?:6[4-9]|[7-9]\d|\d{3,5})$)(?=.*^vendor_id 4098$)"
        r".*^drm_render_minor (\d{1,3})$"
    ),
    where=("/dev/kfd",),
    tool_seconds=40,
    # Instinct MI100 to MI350 with virtual functions, and whatever calls itself an accelerator. Bridges, sound
    # and integrated graphics have vendor id 1002 too.
    on_bus="1002((738[ce]|740[8cf]|7410|74[ab].|75[ab].).*|....12..)",
    torch="hip",
    driver="/dev/kfd",
    visible=("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    seen_twice="once",
    also_visible=("GPU_DEVICE_ORDINAL",),
    given=("AMD_VISIBLE_DEVICES",),
    variables="(RCCL|NCCL|HSA|HIP|MIOPEN)_[A-Z0-9_]+",
    launch_needs=r"\b(?:HIP|ROCR)_VISIBLE_DEVICES=\w\S*",
    kernel_log="amdgpu.*(uncorrectable hardware errors|GPU reset)",
    versions={
        "/sys/module/amdgpu/version": ("amdgpu-driver", r"^(\d\S*)"),
        "/opt/rocm/.info/version": ("rocm", r"^(\d\S*)"),
    },
    prefix="amd-",
    sick=("amd-ras", "amd-reset", "amd-unhealthy"),
    busy="amd-busy",
    log_check="amd-reset",
)

VENDORS = (ASCEND, NVIDIA, AMD)
"""If a host has devices of several vendors, the first one is the job's."""


EVERY_VISIBLE = tuple(
    dict.fromkeys(name for vendor in VENDORS for name in (*vendor.visible, *vendor.also_visible))
)


def every(name: str) -> tuple[str, ...]:
    """All non-empty values of this field in the rows; a value is one text or several."""
    found = (getattr(vendor, name) for vendor in VENDORS)
    return tuple(text for own in found for text in ((own,) if isinstance(own, str) else own) if text)
