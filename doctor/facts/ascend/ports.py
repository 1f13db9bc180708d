"""What the ports of Ascend devices report: optics, counters, neighbour."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from doctor.api import Fact, UnreadableOutput
from doctor.facts.ascend.hccn_tool import ONLY_950, PerDevice, hccn
from doctor.facts.device_tools import ToolCall
from doctor.facts.key_values import count, pairs, table


@dataclass(frozen=True, slots=True)
class Optics:
    """Keys as printed, sorted by the kind of their values: numbers with a unit, flags, words."""

    present: bool | None
    values: Mapping[str, float] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


def _optics(call: ToolCall) -> Optics | None:
    """The module's values. An answer may say that the module is "not present" and still list values."""
    if "Optical module is not present" in call.text:
        return None
    present: bool | None = None
    values: dict[str, float] = {}
    flags: dict[str, int] = {}
    texts: dict[str, str] = {}
    for key, value in pairs(call.text):
        number = re.fullmatch(r"(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)\s?([A-Za-z%°]{1,8})?", value)
        flag = re.fullmatch(r"0x[0-9a-fA-F]{1,8}|[0-9]{1,9}", value)
        if key == "present":
            present = value == "present"
        elif flag and ("flag" in key.lower() or value.startswith("0x")):
            flags.setdefault(key, int(value, 0 if value.startswith("0x") else 10))
        elif number and (number[2] or "." in number[1]):
            values.setdefault(key, float(number[1]))
        elif value:
            texts.setdefault(key, value[:200])
    if present is None and not values:
        raise UnreadableOutput("")
    return Optics(present, values, flags, texts)


NPU_OPTICS: Fact[PerDevice[Optics | None]] = hccn("npu-optics", "-i $n -optical -g", _optics)
"""The optical module of each device; None if there is none."""


def _counters(call: ToolCall) -> Mapping[str, int]:
    found = {
        key: int(value)
        for key, value in pairs(call.text)
        if re.fullmatch(r"[a-z]\w{0,63}", key) and re.fullmatch(r"[0-9]{1,20}", value)
    }
    if not found or "packet statistics" not in call.text:
        raise UnreadableOutput("")
    return found


NPU_COUNTERS: Fact[PerDevice[Mapping[str, int]]] = hccn("npu-counters", "-i $n -stat -g", _counters)
"""Packets since the device started. Old versions report only a few counters."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What the switch reports about itself: its port, and the first line of its description."""

    port: str
    system: str


def _neighbour(call: ToolCall) -> Neighbour | None:
    lines = [line.strip() for line in call.text.splitlines() if line.strip()]
    below = dict(reversed([*pairwise(lines)]))  # the first of equal lines counts
    port = below.get("Port ID TLV", "")
    if port and not port.endswith("TLV"):
        system = below.get("System Description TLV", "")
        name = port.partition(": ")[2] or port
        return Neighbour(name.strip()[:120], "" if system.endswith("TLV") else system[:120])
    if call.rc or lines:
        raise UnreadableOutput("")
    return None


NPU_NEIGHBOURS: Fact[PerDevice[Neighbour | None]] = hccn("npu-neighbours", "-i $n -lldp -g", _neighbour)
"""The switch port that the device is plugged into; None if the tool succeeds and prints nothing."""


def _ports(call: ToolCall) -> tuple[bool, ...]:
    rows = (row for row in table(call.text) if count(row.get("PortID", "")) is not None)
    states = [row.get("Link Status", "").upper() for row in rows]
    if not {"UP", "DOWN"} & {*states}:
        raise UnreadableOutput("")
    return tuple(state == "UP" for state in states if state in ("UP", "DOWN"))


NPU_PORTS: Fact[PerDevice[tuple[bool, ...]]] = hccn("npu-ports", "-g -dev_info -i $n", _ports, first=ONLY_950)
"""Of a device that has several ports (Atlas 950): whether each of them is up."""
