"""Calls nvidia-smi and reads its tables.

The tool is only started if the driver is loaded: otherwise it would load modules and create device files.
Columns are found by name, since a driver may omit some and add others.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from doctor.api import Capture, Fact, Group, Run
from doctor.devices import NVIDIA
from doctor.facts.device_tools import ToolCall, answered, calling, calls

T = TypeVar("T")
TOOL = "nvidia-smi"
GPU = Group(NVIDIA.thing, NVIDIA.where, NVIDIA.tool_seconds, TOOL, "wake-nvidia-smi", together=True)
_ELSEWHERE = "/usr/bin/nvidia-smi"
_MOST_COLUMNS = 64
_NOTHING = re.compile(r"|\[.*\]|N/A|ERR!|Not Supported", re.IGNORECASE)
"""What nvidia-smi prints for an unknown value."""


def asked(
    name: str, seconds: int, parse: Callable[[Capture], T], *lines: str, partial: bool = False
) -> Fact[T]:
    """A fact whose script may call nvidia-smi by `q KEY words...` for at most `seconds`."""
    loaded = f"[ -e {NVIDIA.driver} ] || {{ echo the NVIDIA driver is not loaded >&2; exit 1; }}"
    script = "\n".join((loaded, calling(TOOL, _ELSEWHERE, seconds), f"L={seconds - 2}", *lines))
    return Fact(name, Run(script), parse, timeout=seconds, cap=65536, partial=partial, group=GPU)


def answer(capture: Capture) -> ToolCall:
    """The answer to the last call. Raises UnreadableOutput if there is none or it failed."""
    return answered(next(reversed([*calls(capture.stdout, TOOL)]), None), TOOL)


def table(text: str, first: str) -> tuple[list[Mapping[str, str]], list[str]]:
    """The rows below the header that begins with `first` (the last column may hold commas); the rest."""
    names: list[str] = []
    rows: list[Mapping[str, str]] = []
    rest: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",", len(names) - 1 if names else _MOST_COLUMNS)]
        if not names and cells[0] == first and len(cells) <= _MOST_COLUMNS:
            names = [cell.partition(" [")[0] for cell in cells]
        elif names and len(cells) == len(names):
            rows.append(dict(zip(names, cells, strict=True)))
        elif line.strip():
            rest.append(line.strip())
    return rows, rest


def number(text: str) -> int | None:
    """`32362 MiB` -> 32362; None if there is no number."""
    match = re.match(r"([0-9]{1,12})(?: \w{1,8})?$", text)
    return int(match[1]) if match else None


def told(text: str) -> str:
    """The text of a cell; empty if the value is unknown."""
    return "" if _NOTHING.fullmatch(text) else text[:80]
