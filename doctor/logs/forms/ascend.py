"""The lines of Huawei's software: plog, the console output of CANN, MindSpore, torch_npu."""

import re

from doctor.logs.forms.line_facts import LineFacts, level_of
from doctor.logs.forms.times import DATED, Clock
from doctor.logs.model import Form
from doctor.text.hostprogram import table
from doctor.text.late import late

((_, *_ROWS),) = table(__file__, "ascend.txt")
_PARTS = {
    "@DATED@": DATED,
    "@LEVELS@": "ERROR|WARNING|INFO|DEBUG|EVENT|TRACE|CRITICAL|EXCEPTION|NULL|OPLOG|NOTICE",
    "@CODE@": r"E[A-Z0-9]\d{4}|E\d{5}",
}
_PLOG, _CONSOLE, _GOES_ON, _ON_DEVICE, _ERR_MSG, _TORCH_NPU, _TORCH_NPU_MORE, _MINDSPORE = (
    late(re.sub("@[A-Z]+@", lambda found: _PARTS[found[0]], row.partition(": ")[2])) for row in _ROWS
)


def ascend(text: str, facts: LineFacts, clock: Clock) -> bool:
    """Whether the line is one of these; if so, `facts` is filled in."""
    at = facts.start
    first = text[at : at + 1]
    if first == "[":
        return _plog(text, facts, clock) or _npu(text, facts, clock) or _cann(text, facts, clock)
    if first == "E" and _cann(text, facts, clock):
        return True
    if found := _ON_DEVICE.match(text, at):
        facts.form = Form.CANN
        if found["pid"]:
            facts.pid, facts.headed, facts.level = int(found["pid"]), True, "ERROR"
        return True
    if _GOES_ON.match(text, at):
        facts.form = Form.CANN
        return True
    if _MINDSPORE.match(text, at):
        facts.form = Form.MINDSPORE
        return True
    return False


def _plog(text: str, facts: LineFacts, clock: Clock) -> bool:
    found = _PLOG.match(text, facts.start)
    if not found:
        return False
    ours = "," in (found["rest"] or "") or text.startswith("[mindspore/", found.end())
    facts.head(found, Form.MINDSPORE if ours or found["pid"] is None else Form.PLOG, clock)
    return True


def _npu(text: str, facts: LineFacts, clock: Clock) -> bool:
    found = _TORCH_NPU.match(text, facts.start)
    if found:
        facts.head(found, Form.TORCH_NPU, clock)
        if int(found["rank"]) >= 0 and facts.rank is None:
            facts.rank = int(found["rank"])
        return True
    if _TORCH_NPU_MORE.match(text, facts.start):
        facts.form, facts.level = Form.TORCH_NPU, "ERROR"
        return True
    return False


def _cann(text: str, facts: LineFacts, clock: Clock) -> bool:
    found = _CONSOLE.match(text, facts.start)
    if found and (found["code"] or found["pid"]):
        facts.head(found, Form.CANN, clock)
        facts.level = "ERROR"
        return True
    if _ERR_MSG.match(text, facts.start):
        facts.form, facts.level, facts.headed = Form.CANN, "ERROR", True
        return True
    if _MINDSPORE.match(text, facts.start):
        facts.form, facts.headed = Form.MINDSPORE, True
        facts.level = level_of(text[facts.start + 1 : facts.start + 10].partition("]")[0])
        return True
    return False
