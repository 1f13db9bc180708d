"""Calls amd-smi, or rocm-smi if amd-smi is missing or refuses, and reads their JSON.

amd-smi prints a list with an object for each GPU; since ROCm 7 some of its commands put the list under
`gpu_data`. rocm-smi prints one object with `card0`, `card1`, and `system`. Both may print warnings before it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from doctor.api import Capture, Fact, Group, Run, UnreadableOutput
from doctor.devices import AMD
from doctor.facts.device_tools import ToolCall, calls, complaint, defining
from doctor.text.hostprogram import host_program

T = TypeVar("T")
AMD_SMI, ROCM_SMI = "amd-smi", "rocm-smi"
GROUP = Group(AMD.thing, AMD.where, AMD.tool_seconds, AMD_SMI, "wake-amd-smi")
_HOME = "/opt/rocm/bin"
_MOST_BYTES = 400_000
_MOST_GPUS = 1024

Row = Mapping[str, Any]


def asked(
    name: str,
    seconds: int,
    parse: Callable[[Capture], T],
    amd: str,
    rocm: str,
    *,
    before: str = ":",
    after: str = ":",
    partial: bool = True,
) -> Fact[T]:
    """By amd-smi, or else by rocm-smi; not if amd-smi hung, because then the driver does not answer."""
    names = {"amd_smi": AMD_SMI, "rocm_smi": ROCM_SMI, "home": _HOME}
    words = {"amd": amd, "rocm": rocm, "before": before, "after": after, "left": seconds - 3}
    script = host_program(__file__, "smi.sh", defining=defining(seconds, _MOST_BYTES), **names, **words)
    return Fact(name, Run(script), parse, timeout=seconds, cap=900_000, partial=partial, group=GROUP)


def answer(capture: Capture) -> tuple[ToolCall, str]:
    """The call that was answered, and the tool's name. Raises UnreadableOutput if none was."""
    made = [call for call in calls(capture.stdout, "the tool") if call.key in (AMD_SMI, ROCM_SMI)]
    if not made:
        raise UnreadableOutput(f"{AMD_SMI} did not answer in time")
    call = next((call for call in made if not call.failed and call.rc == 0), made[0])
    if call.failed:
        raise UnreadableOutput(call.failed.replace("the tool", call.key))
    return call, call.key


def document(call: ToolCall) -> Any:
    """The JSON in a tool's answer."""
    begin = re.search(r"^[\[{]", call.text, re.MULTILINE)
    try:
        found: Any = json.JSONDecoder().raw_decode(call.text, begin.start())[0] if begin else None
    except (ValueError, RecursionError):
        raise UnreadableOutput(f"{call.key} did not print complete JSON") from None
    if not isinstance(found, (list, dict)):
        raise UnreadableOutput(complaint(call, call.key))
    return found


def by_gpu(call: ToolCall) -> Iterator[tuple[int, Row]]:
    """The objects that amd-smi prints, by GPU number."""
    found = document(call)
    rows = found.get("gpu_data") if isinstance(found, dict) else found
    for row in rows[:_MOST_GPUS] if isinstance(rows, list) else ():
        if isinstance(row, dict) and (gpu := number(row.get("gpu"))) is not None:
            yield gpu, row


def further(capture: Capture, key: str) -> Mapping[int, Row]:
    """What one more call of amd-smi says, by GPU; empty if it failed: other values are still worth having."""
    with suppress(UnreadableOutput):
        for call in calls(capture.stdout, AMD_SMI):
            if call.key == key and call.rc == 0:
                return dict(by_gpu(call))
    return {}


def by_card(call: ToolCall) -> Iterator[tuple[int, Row]]:
    """The objects that rocm-smi prints, by card number, with their keys in lower case."""
    found = document(call)
    for name, row in list(found.items())[:_MOST_GPUS] if isinstance(found, dict) else ():
        card = re.fullmatch(r"card(\d{1,4})", name)
        if card and isinstance(row, dict):
            yield int(card[1]), {title.lower(): value for title, value in row.items()}


def system(call: ToolCall) -> Row:
    found = document(call)
    about = found.get("system") if isinstance(found, dict) else None
    return about if isinstance(about, dict) else {}


def part(row: Row, name: str) -> Row:
    found = row.get(name)
    return found if isinstance(found, dict) else {}


def number(value: Any) -> int | None:
    """12, "12" and {"value": 12, "unit": "MB"} -> 12; None if there is no number."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def text(value: Any) -> str:
    """The text of a value; empty if the tool printed none."""
    return value.strip()[:80] if isinstance(value, str) and value.strip() != "N/A" else ""
