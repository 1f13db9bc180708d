"""Calls hccn_tool and assigns its answers to devices.

The tool serves one caller at a time and answers "busy" to others, needs root, and may hang if a device is
faulty. Only its getters (-g) are ever called.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TypeVar

from doctor.api import Capture, Fact, Group, Run, UnreadableOutput, fold, grouped
from doctor.devices import ASCEND
from doctor.facts.device_tools import ToolCall, calling, calls, complaint, why_not
from doctor.text.hostprogram import host_program

T = TypeVar("T")

TOOL = "hccn_tool"
HCCN = Group(ASCEND.thing, ASCEND.where, ASCEND.tool_seconds, TOOL, "wake-npu-tools")
ELSEWHERE = "/usr/local/Ascend/driver/tools/hccn_tool"
SECONDS = 15
_MOST_BYTES = 300_000


@dataclass(frozen=True, slots=True)
class SilentDevice:
    """A device for which the tool printed nothing usable, and why."""

    reason: str
    unsupported: bool = False


PerDevice = Mapping[int, T | SilentDevice]
"""By the number N of /dev/davinciN, in ascending order."""


def split_known(said: PerDevice[T], what: str = "device") -> tuple[dict[int, T], str]:
    """The known values, and a sentence that names the devices without one, with the reason."""
    known = {device: value for device, value in said.items() if not isinstance(value, SilentDevice)}
    silent = grouped((v.reason, device) for device, v in said.items() if isinstance(v, SilentDevice))
    return known, "; ".join(f"{devices(numbers, what)}: {reason}" for reason, numbers in silent.items())


def devices(numbers: Sequence[int], what: str = "device") -> str:
    """Device numbers in words: "device 3", "devices 0-3,6"."""
    folded = fold([str(number) for number in numbers]).strip("[]")
    return f"{what}{'s' if len(numbers) > 1 else ''} {folded}"


def asked(
    words: str, then: str = "", *, first: str = ":", at: str = "/dev/davinci", seconds: int = SECONDS
) -> str:
    """Prints the numbers of all devices first, so that those it never reaches ($n) are known."""
    values = {"words": words, "then": then or ":", "first": first, "at": at}
    return host_program(__file__, "hccn_tool.sh", calling=calling(TOOL, ELSEWHERE, seconds), **values)


_PROTECT = "mount --make-rprivate / && mount --bind /etc /etc && mount -o remount,bind,ro /etc"


def unwritten(script: str) -> str:
    """The script with /etc read-only to itself alone; its argument is "ro" if that succeeded."""
    parts = {"script": script, "protect": _PROTECT, "shielded": f'{_PROTECT} && exec sh -c "$1" sh ro'}
    quoted = {name: quote(part) for name, part in parts.items()}
    return host_program(__file__, "hccn_unwritten.sh", **quoted)


def hccn(
    name: str,
    words: str,
    read: Callable[[ToolCall], T],
    then: str = "",
    first: str = "",
    writes: str = "",
    everywhere: bool = False,
) -> Fact[PerDevice[T]]:
    """A fact about each device. `read` raises UnreadableOutput for a text that it does not recognise.

    `writes` is a key that the getter itself adds to /etc/hccn.conf if it is missing. The getter also works
    if it cannot write, so writing is prevented: nothing may be changed. `everywhere`: every product that is
    asked supports the command, so the answer "not supported" means that the value is unknown.
    """

    # Devices without such a key in /etc/hccn.conf are left out, unless that file cannot be written to.
    noted = host_program(__file__, "hccn_noted.sh", key=writes) if writes else ":"
    script = asked(words, then, first=f"{first or NOT_950}\n{noted}")

    def parse(capture: Capture) -> PerDevice[T]:
        listed = re.match(r"devices((?: \d{1,3}){1,256})$", capture.stdout, re.MULTILINE)
        if not listed:
            raise UnreadableOutput("there is no /dev/davinciN")
        answers = grouped((call.key, call) for call in calls(capture.stdout[listed.end() :], TOOL))
        numbers = sorted(set(map(int, listed[1].split())))
        return {number: _value(answers.get(str(number), []), read, everywhere) for number in numbers}

    return Fact(
        name,
        Run(unwritten(script) if writes else script),
        parse,
        timeout=SECONDS,
        needs_root=True,
        cap=_MOST_BYTES,
        partial=True,
        group=HCCN,
    )


ONLY_950 = "[ ! -r /proc/bus/pci/devices ] || grep -q 19e5d806 /proc/bus/pci/devices || w=product"
NOT_950 = "! grep -qs 19e5d806 /proc/bus/pci/devices || w=product"
"""Skips products that lack the feature; Atlas 950 also takes its options in another order."""


def _value(answers: Sequence[ToolCall], read: Callable[[ToolCall], T], everywhere: bool) -> T | SilentDevice:
    for call in answers:
        if call.unasked == "product":
            return SilentDevice("this product does not have it", unsupported=True)
        if call.failed:
            return SilentDevice(call.failed)
    if not answers:
        return SilentDevice(why_not(TOOL, "unasked", "time"))
    if "The command is not supported on this product." in answers[0].text.splitlines():
        return SilentDevice("the command is not supported on this product", unsupported=not everywhere)
    call = ToolCall(answers[-1].key, answers[-1].rc, "\n".join(answer.text for answer in answers))
    try:
        return read(call)
    except UnreadableOutput as error:
        return SilentDevice(str(error) or complaint(call, TOOL))
