"""Whether an NPU still has the process that HCCL starts on it: until that is gone, HCCL refuses a new one."""

from __future__ import annotations

from doctor.api import NotUnderstood
from doctor.facts.ascend.hccn_tool import hccn
from doctor.facts.device_tools import ToolCall
from doctor.facts.key_values import value_of


def _held(call: ToolCall) -> bool:
    state = value_of(call.text, "device hccp process")
    if state not in ("exist", "not exist"):
        raise NotUnderstood("it does not say whether the process exists")
    return state == "exist"


HCCP = hccn("npu-hccp", "-process -g", _held)
