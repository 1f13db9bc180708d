"""What npu-smi reports per card or chip: memory errors, place in a super pod. Needs no root."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from doctor.api import Capture, Fact, Group, Run, UnreadableOutput
from doctor.devices import ASCEND
from doctor.facts.ascend.hccn_tool import SilentDevice, split_known
from doctor.facts.device_pace import DevicePace
from doctor.facts.device_tools import ToolCall, answered, calling, calls, complaint, why_not
from doctor.facts.key_values import count, fields, pairs, table
from doctor.text.hostprogram import host_program

T = TypeVar("T")

TOOL = "npu-smi"
NPU_SMI = Group(ASCEND.thing, ASCEND.where, 20, TOOL, "wake-npu-tools")
ELSEWHERE = "/usr/local/bin/npu-smi"
_SECONDS = 10
_EACH = {
    "card": 'cut -d" " -f1 | uniq | while read -r c; do q "$c" info -t @about@ -i "$c"',
    "device": 'while read -r c i; do q "$c/$i" info -t @about@ -i "$c" -c "$i"',
}
_CALLING = calling(TOOL, ELSEWHERE, _SECONDS)


def _each(
    name: str, about: str, what: Literal["card", "device"], read: Callable[[str], T]
) -> Fact[Mapping[int, T]]:
    """A fact about each card or device. If the first lacks the feature, the rest are not asked."""

    def parse(capture: Capture) -> Mapping[int, T]:
        answers = {call.key: call for call in calls(capture.stdout, TOOL)}
        listed = answered(answers.get("map"), TOOL)
        keys = _keys(listed.text)
        if what == "card":
            keys = {int(card): card for card in (key.partition("/")[0] for key in keys.values())}
        said: dict[int, T | SilentDevice] = {}
        for number, key in sorted(keys.items()):
            value = _value(answers.get(key), read)
            if value is None:
                return {}
            said[number] = value
        known, why = split_known(said, what)
        if why or not said:
            raise UnreadableOutput(why or f"{TOOL} lists no device: {complaint(listed, TOOL)}")
        return known

    return Fact(
        name,
        Run(host_program(__file__, "npu_smi_card.sh", calling=_CALLING, each=_EACH[what], about=about)),
        parse,
        timeout=_SECONDS,
        cap=200_000,
        partial=True,
        group=NPU_SMI,
    )


def _value(call: ToolCall | None, read: Callable[[str], T]) -> T | SilentDevice | None:
    """None if the product lacks the feature."""
    if call is None or call.failed:
        return SilentDevice(call.failed if call else why_not(TOOL, "unasked", "time"))
    if "does not support" in call.text:
        return None
    try:
        return read(call.text)
    except UnreadableOutput:
        return SilentDevice(complaint(call, TOOL))


def _keys(listed: str) -> dict[int, str]:
    """Device number -> "CARD/CHIP", the key of its answer, as `npu-smi info -m` lists them."""
    rows = [
        row
        for row in table(listed)
        if count(row.get("NPU ID", "")) is not None
        and count(row.get("Chip ID", "")) is not None
        and "mcu" not in row.get("Chip Name", "").lower()
    ]
    single = len({row["NPU ID"] for row in rows}) == len(rows)
    found: dict[int, str] = {}
    for position, row in enumerate(rows):
        physical = count(row.get("Chip Phy-ID", ""))
        logic = count(row["NPU ID"] if single else row.get("Chip Logic ID", ""))
        device = physical if physical is not None else logic if logic is not None else position
        found[device] = f"{int(row['NPU ID'])}/{int(row['Chip ID'])}"
    return found


def _ecc(text: str) -> int:
    given = (count(value) for key, value in pairs(text) if key.endswith("Double Bit Error Count"))
    counts = [number for number in given if number is not None]
    if not counts:
        raise UnreadableOutput("")
    return sum(counts)


NPU_ECC: Fact[Mapping[int, int]] = _each("npu-ecc", "ecc", "card", _ecc)
"""By card: memory errors that could not be corrected. Empty if the product does not report them."""


@dataclass(frozen=True, slots=True)
class SuperPodPlace:
    """The place of a device in a super pod; `device_id` is the SDID, the super_device_id of rank tables."""

    device_id: int
    pod_id: int


def _super_pod(text: str) -> SuperPodPlace:
    found = fields(text)
    device, pod = count(found.get("sdid", "")), count(found.get("super pod id", ""))
    if device is None or pod is None:
        raise UnreadableOutput("")
    return SuperPodPlace(device, pod)


NPU_SUPER_POD: Fact[Mapping[int, SuperPodPlace]] = _each("npu-super-pod", "spod-info", "device", _super_pod)
"""By device; empty if the product is not a super pod."""


def _pace(text: str) -> DevicePace:
    found = fields(text)
    watts = re.match(r"[0-9]{1,5}", found.get("npu real-time power(w)", ""))
    numbers = ("aicore curfreq(mhz)", "aicore freq(mhz)", "temperature(c)", "aicore usage rate(%)")
    mhz, most, celsius, busy = (count(found.get(name, "")) for name in numbers)
    if "aicore count" not in found:
        raise UnreadableOutput("")
    return DevicePace(mhz, most, int(watts[0]) if watts else None, celsius, busy)


NPU_PACE: Fact[Mapping[int, DevicePace]] = _each("npu-pace", "common", "device", _pace)
"""By device. npu-smi does not say what holds a clock down."""
