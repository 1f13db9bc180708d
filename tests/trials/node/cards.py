"""Hosts with sound devices in every state; the devices and their tools are emulated."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.amd import AmdHost
from tests.lab.gpus import GpuHost
from tests.lab.npus import NpuHost
from tests.trials.node.odd import HARMLESS, logged
from tests.trials.node.situation import Group, Stage

CARDS = Group("Sound devices")
SLOW = '#!/bin/sh\nsleep 6\nexec /usr/lib/real/{0} "$@"\n'


def gpus(name: str, act: Callable[[GpuHost], object]) -> None:
    def on_stage(stage: Stage) -> None:
        act(stage.gpu)

    CARDS.add(f"{name} *", on_stage, "gpus")


def npus(name: str, act: Callable[[NpuHost], object]) -> None:
    def on_stage(stage: Stage) -> None:
        act(stage.npu)

    CARDS.add(f"{name} *", on_stage, "npus")


def amd(name: str, act: Callable[[AmdHost], object]) -> None:
    def on_stage(stage: Stage) -> None:
        act(stage.amd_gpu)

    CARDS.add(f"{name} *", on_stage, "amd")


def _used(host: GpuHost) -> None:
    for gpu in host:
        gpu.works()
        gpu.processes(("python", 4711 + gpu.index, 70_000))


def _exclusive(host: GpuHost) -> None:
    host.only_for_root()


def _no_cable(host: NpuHost) -> None:
    for npu in host:
        npu.link_up = False
        npu.without_module()


def _npus_used(host: NpuHost) -> None:
    for npu in host:
        npu.processes(("python", 4711 + npu.device, 50_000))


def _corrected(host: GpuHost) -> None:
    for gpu in host:
        for field in gpu.values:
            if "corrected" in field and "uncorrected" not in field:
                gpu.values[field] = "12"
    host.tell()


def _hot(host: GpuHost) -> None:
    for gpu in host:
        gpu.works(1200, 690.0, 0x20)


def _mig(host: GpuHost) -> None:
    host[0]["mig.mode.current"] = "Enabled"


def _unconfigured(host: NpuHost) -> None:
    for npu in host:
        npu.unconfigured()


def _corrected_npus(host: NpuHost) -> None:
    for npu in host:
        npu.ecc(single_bit_error_count=3)


def _amd_used(host: AmdHost) -> None:
    for index in range(host.count):
        host.runs(index, ("python", 4711 + index, 90_000))


gpus(
    "persistence mode off: nvidia-smi takes 6 s",
    lambda host: host.host.program("nvidia-smi", SLOW.format("nvidia-smi")),
)
gpus("GPUs used by a job", _used)
gpus("MIG on a GPU", _mig)
gpus("GPUs that only root may open", _exclusive)
gpus("GPUs without NVSwitch", lambda host: host.without_switches())
gpus("corrected errors", _corrected)
gpus("an old driver", lambda host: host.driver_lacks("fabric.state", "fabric.status", "gpu_recovery_action"))
gpus("Xids of applications", lambda host: logged(host.host, HARMLESS))
gpus("no GPU, never had one", lambda host: host.without_gpus())
gpus("hot GPUs that are slowed down", _hot)
npus("single server without any cable", _no_cable)
npus("NPUs used by a job", _npus_used)
npus("hccn_tool is used by somebody else", lambda host: host.busy(8))
npus("npu-smi takes 6 s", lambda host: host.host.program("npu-smi", SLOW.format("npu-smi")))
npus("NPUs without addresses", _unconfigured)
npus("corrected errors of HBM", _corrected_npus)
npus("without hccn_tool", lambda host: host.without_tool())
amd(
    "AMD GPUs used by a job",
    _amd_used,
)
amd("AMD GPUs that only root may open", lambda host: host.only_for_root())
amd("amd-smi takes 6 s", lambda host: host.host.program("amd-smi", SLOW.format("amd-smi")))
amd("no AMD GPU, never had one", lambda host: host.without_gpus())
