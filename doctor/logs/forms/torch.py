"""The lines of PyTorch, torchrun and NCCL, and Python's tracebacks."""

import re

from doctor.logs.forms.line_facts import LineFacts, level_of
from doctor.logs.forms.times import DATED, GLOG, Clock
from doctor.logs.model import Form
from doctor.text.hostprogram import table
from doctor.text.late import late

(*_LINES, _ROWS) = [rows for _, *rows in table(__file__, "torch.txt")]
_DATES = {"@DATED@": DATED, "@BEHIND@": DATED.replace("(?P<", "(?P<b_"), "@GLOG@": GLOG}
_NCCL, _NCCL_BARE, _GLOG, _TSL, _PYTHON_LOG = (
    late(re.sub("@[A-Z]+@", lambda found: _DATES[found[0]], row.partition(": ")[2])) for row in _ROWS
)
_RANK = late(r"\[(?:PG (?:(?:ID )?0\b|[^\]]{0,80}\(default_pg\))[^\]]{0,120})?Rank (?P<rank>\d{1,6})\]")
"""A group of some ranks (PG ID 3) numbers its own members, so its numbers are not ranks of the job."""
_C10D, _ELASTIC, _EXCEPTION, _RAS = (late("|".join(rows)) for rows in _LINES)
_CHILD = late(r"failed \(exitcode: -?\d{1,4}\) local_rank: (?P<local>\d{1,4}) \(pid: (?P<pid>\d{1,9})\)")
_TRACEBACK = late(r"Traceback \(most recent call last\)|  File \"[^\"]{1,500}\", line \d")


def torch(text: str, facts: LineFacts, clock: Clock) -> bool:
    """Whether the line is one of these; if so, `facts` is filled in."""
    return _nccl(text, facts, clock) or _logger(text, facts, clock) or _bare(text, facts)


def _nccl(text: str, facts: LineFacts, clock: Clock) -> bool:
    found = _NCCL.match(text, facts.start) if ":" in text[facts.start : facts.start + 300] else None
    if found and (found["nccl"] or found["device"] is not None):
        facts.head(found, Form.NCCL, clock)
        return True
    found = _NCCL_BARE.match(text, facts.start)
    if found:
        facts.form, facts.headed = Form.NCCL, True
        facts.level = level_of(found["level"] or "")
        if found["year"]:
            facts.at, facts.zoned = clock.at(found)
        return True
    if _RAS.match(text, facts.start):
        facts.form = Form.RAS
        return True
    return False


def _logger(text: str, facts: LineFacts, clock: Clock) -> bool:
    found = _GLOG.match(text, facts.start)
    if found:
        source = found["file"]
        facts.level = level_of(found["level"])
        if found["month"]:
            facts.at, facts.zoned = clock.at(found)
        elif found["epoch"]:
            facts.at, facts.zoned = float(found["epoch"]), True
        if source.startswith("torch/distributed/") or "/torch/distributed/" in source:
            facts.form = Form.ELASTIC
            facts.pid = int(found["thread"]) if found["thread"] else None
            _child(text, found.end(), facts)
        else:
            facts.form = Form.TORCH_NPU if "HCCL" in source else Form.TORCH
        _rank(text, found.end(), facts)
        facts.start, facts.headed = found.end(), True
        return True
    found = _TSL.match(text, facts.start)
    if found:
        facts.head(found, facts.form, clock)
        return True
    found = _PYTHON_LOG.match(text, facts.start)
    if found:
        facts.head(found, Form.ELASTIC, clock)
        facts.level = level_of(found["level"] or found["level2"])
        _child(text, found.end(), facts)
        return True
    return False


def _bare(text: str, facts: LineFacts) -> bool:
    if _ELASTIC.match(text, facts.start) or _CHILD.search(text, facts.start, facts.start + 200):
        facts.form = Form.ELASTIC
        _child(text, facts.start, facts)
        if _EXCEPTION.match(text, facts.start):
            facts.level, facts.headed = "ERROR", True
    elif _TRACEBACK.match(text, facts.start):
        facts.form, facts.headed = Form.PYTHON, True
    elif _C10D.match(text, facts.start):
        facts.form = Form.TORCH_NPU if "HCCL" in text[facts.start : facts.start + 300] else Form.TORCH
        _rank(text, facts.start, facts)
    elif _EXCEPTION.match(text, facts.start):
        facts.form, facts.level, facts.headed = Form.PYTHON, "ERROR", True
    else:
        return False
    return True


def is_exception(text: str, at: int) -> bool:
    """Whether the text has the last line of a traceback there."""
    return _EXCEPTION.match(text, at) is not None


def _child(text: str, at: int, facts: LineFacts) -> None:
    """Note the process that torchrun's line is about."""
    found = _CHILD.search(text, at, at + 300)
    if found:
        facts.local, facts.pid = int(found["local"]), int(found["pid"])


def _rank(text: str, at: int, facts: LineFacts) -> None:
    """Note the rank that c10d writes near the beginning of its lines."""
    found = _RANK.search(text, at, at + 200)
    if found and (facts.rank is None or facts.task):
        facts.rank, facts.task = int(found["rank"]), False
