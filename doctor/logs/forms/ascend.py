"""The lines of Huawei's software: plog, the console output of CANN, MindSpore, torch_npu."""

from doctor.logs.forms.line_facts import LineFacts, level_of
from doctor.logs.forms.times import DATED, Clock
from doctor.logs.model import Form
from doctor.text.late import late

_WORDS = "ERROR|WARNING|INFO|DEBUG|EVENT|TRACE|CRITICAL|EXCEPTION|NULL|OPLOG|NOTICE"
_PLOG = late(
    rf"\[(?P<level>{_WORDS})\] ?(?P<module>[A-Z][A-Z0-9_]{{1,30}})"
    rf"(?:\((?P<pid>\d{{1,9}}|x+),(?P<rest>[^()]{{0,120}})\):(?:{DATED})?| (?=\[mindspore/))"
)
_CODE = r"E[A-Z0-9]\d{4}|E\d{5}"
_CONSOLE = late(
    rf"(?:\[(?P<level>ERROR)\] (?:RecentErrMsg: )?(?={_CODE}))?"
    rf"(?:(?P<code>{_CODE})(?:: ?|(?=\[PID)))?(?:\[PID: ?(?P<pid>\d{{1,9}})\] ?)?(?:{DATED})?"
)
_GOES_ON = late(
    r"\s{0,20}(?:Possible Cause:|Solution:|TraceBack \(most recent call last\):)"
    r"|.{0,1500}\[FUNC:\w{1,80}\] ?\[FILE:"
)
_ON_DEVICE = late(
    r"DEVICE\[\d{1,3}\] PID\[(?P<pid>\d{1,9})\]:|(?:EXCEPTION (?:STREAM|TASK|MODEL)|SYSTEM ERROR): ?$"
    r"|\s{0,8}(?:Exception info:|(?:Message|Other) info\[\d{1,3}\]:)"
)
"""What the task scheduler of a device reports, in several lines."""
_ERR_MSG = late(r"\[(?P<level>ERROR)\] (?:RecentErrMsg:|acl\w+\()")
_TORCH_NPU = late(
    rf"\s{{0,4}}\[(?P<level>{_WORDS})\] {DATED} \(PID:(?P<pid>\d{{1,9}}), Device:(?P<device>-?\d{{1,4}}),"
    r" RankID:(?P<rank>-?\d{1,6})\)"
)
_TORCH_NPU_MORE = late(
    r"\s{0,4}\[Error\]: |\s{0,4}EH?\d{4,5}: |.{0,40}(?:torch_npu|PTA)\b.{0,200}error code is"
)
_MINDSPORE = late(r"\[(?P<level>[A-Z]{4,9})\] .{0,120}\[mindspore/|mindspore/ccsrc/|Ascend collective Error")


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
