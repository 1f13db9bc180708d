"""Whether the firmware that runs on NVIDIA GPUs (GSP) is that of their driver."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from doctor.api import (
    NVIDIA,
    Capture,
    Damage,
    Evidence,
    Fact,
    Problem,
    Run,
    Severity,
    Skip,
    check,
    grouped,
    maybe,
)

_GPUS = "/proc/driver/nvidia/gpus/"
_DRIVER = "/proc/driver/nvidia/version"
_VERSION = re.compile(r"Module\s+(?:for \S{1,20}\s+)?(\d{1,4}\.\d[\d.]{0,12})")
_LINE = re.compile(rf"{_GPUS}([\da-f:.]{{10,16}})/information:(Model|GPU Firmware):\s+(\S.{{0,60}})")
_RUNS = re.compile(r"\d{1,4}\.\d[\d.]{0,12}")
SHOWN = 4


@dataclass(frozen=True, slots=True)
class Firmware:
    """`driver` is the version of the module that is loaded; `gpus`: PCI address -> model, and the version of
    its firmware, which is empty if the GPU runs without.
    """

    driver: str
    gpus: Mapping[str, tuple[str, str]]


def _firmware(capture: Capture) -> Firmware:
    driver = _VERSION.search(capture.stdout)
    said: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in capture.stdout.splitlines():
        if found := _LINE.fullmatch(line):
            said[found[1]][found[2]] = found[3].strip()
    gpus = {
        address: (own.get("Model", ""), runs if _RUNS.fullmatch(runs := own.get("GPU Firmware", "")) else "")
        for address, own in said.items()
    }
    return Firmware(driver[1] if driver else "", gpus)


GPU_FIRMWARE = Fact(
    "gpu-firmware",
    Run(f"grep -sHE '^(Model|GPU Firmware|NVRM version):' {_DRIVER} {_GPUS}*/information || :", _DRIVER),
    _firmware,
    cap=65536,
)


@check(
    "gpu-firmware-differs",
    maybe(GPU_FIRMWARE),
    damage=Damage.RISK,
    severity=Severity.WARN,
    vendor=NVIDIA,
)
def gpu_firmware_differs(firmware: Firmware | None) -> Iterator[Problem]:
    """A GPU runs another firmware (GSP) than its driver brings, or alone of its like none.

    Why it matters: the driver and the processor on the GPU talk a language that changes with each version:
    such a GPU answers late, reports Xid 119 or 120, or is lost under load.

    How it is known: the driver says of each GPU what firmware runs there (/proc/driver/nvidia/gpus), and of
    itself which version it is. GPUs without firmware are sound if all GPUs of their model on the host are so.

    What to do: restart the host, so that the driver loads its own firmware; if it stays so, install the
    driver anew, with its firmware (/lib/firmware/nvidia).
    """
    if firmware is None or not firmware.driver or not any(own for _, own in firmware.gpus.values()):
        raise Skip("no GPU runs a firmware of its driver")
    runs = {model for model, own in firmware.gpus.values() if own}
    odd = grouped(
        (own, address)
        for address, (model, own) in firmware.gpus.items()
        if own != firmware.driver and model in runs
    )
    for own, addresses in odd.items():
        yield Problem(
            "a GPU runs another firmware than its driver brings"
            if own
            else "a GPU runs without the firmware",
            expected=firmware.driver,
            actual=own or "none",
            subject=", ".join(addresses[:SHOWN]),
            evidence=tuple(
                Evidence(f"{_GPUS}{address}/information", f"GPU Firmware: {own or 'N/A'}")
                for address in addresses[:SHOWN]
            ),
            commands=("# Restart the host: the driver then loads its own firmware.",),
        )
