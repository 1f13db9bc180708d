"""Recognises lines that complain. It is strict: lines of healthy logs do not count."""

import re

from doctor.logs.forms.line_facts import LineFacts
from doctor.logs.model import Form
from doctor.text.hostprogram import table

_TABLE = [rows for _, *rows in table(__file__, "complaint.txt")]
TRIGGERS = tuple(map(str.encode, _TABLE[0]))
_NOT, _ADVISES, _INSTEAD, _ENDS, _BEGINS, _CONTAINER, _SAYS, _HINTS = map("|".join, _TABLE[1:])
_NOT_ONE = re.compile(rf"\b(?:{_NOT})\b", re.IGNORECASE)
_ADVICE, _POD, _FAILED, _GOES_ON, _HINT = map(re.compile, (_ADVISES, _CONTAINER, _SAYS, _INSTEAD, _HINTS))
_STARTS = re.compile(_BEGINS.replace("@ENDS@", f"(?:{_ENDS})"), re.IGNORECASE)
GLOG = re.compile(
    rb"[EF](?:20\d\d)?(?:0\d|1[0-2])[0-3]\d \d\d:\d\d:\d\d|\d: [EF] [\w./+-]{1,250}\.[a-z]{1,3}:\d{1,6}\] "
)
"""The beginning of an error line of glog, absl or TSL, which has no word for its level."""
_VALUE = re.compile(r"0x[0-9a-fA-F]+|\d+")
_LONE = re.compile(rb"0(?!\w)(?<!\w0)")
_DIGITS = bytes.maketrans(b"0123456789", b"1" * 10)
_MOST = 600
"""The most characters of a message; longer lines are data."""
_SERIOUS = frozenset({"ERROR", "FATAL"})
_NOISE = frozenset({Form.KERNEL, Form.RAS})
"""Forms whose lines say nothing about the job if they match no symptom."""


def may_complain(raw: bytes) -> bool:
    """A cheap test: if it is False, `complains` is False as well."""
    return any(map(raw.__contains__, TRIGGERS)) or GLOG.search(raw) is not None


def like(raw: bytes) -> bytes:
    """A key: lines with equal keys give `complains` the same result. A lone 0 differs from other numbers."""
    return _LONE.sub(b"O", raw).translate(_DIGITS)


def complains(text: str, facts: LineFacts) -> bool:
    own = text[facts.start :]
    begins = own[:_MOST]
    if facts.form is Form.PLAIN and not facts.level and _POD.match(begins):
        return True
    if own[:1].isspace() and not facts.headed and facts.form is Form.PLAIN:
        return False  # it continues a message
    if facts.form in _NOISE or facts.level in ("INFO", "DEBUG"):
        return False
    if facts.form is not Form.PYTHON and (_ADVICE.search(begins) or _GOES_ON.match(begins)):
        return False
    if facts.record and (own[:1].isspace() or own.startswith(("^", "~", "Traceback (most recent"))):
        return False
    if facts.level in _SERIOUS:
        return bool(own.strip())
    if facts.form is Form.NCCL:
        return facts.level == "WARN"
    if facts.level == "WARN" or facts.form is not Form.PLAIN or _NOT_ONE.search(begins):
        return False
    return bool(_STARTS.match(begins) or (len(own) <= _MOST and _FAILED.search(own)))


def hints(text: str, facts: LineFacts) -> bool:
    """Whether it has words that healthy logs have, too: they only tell if the log shows no work."""
    own = text[facts.start :][:_MOST]
    silent = facts.form in (*_NOISE, Form.NCCL) or facts.level in ("INFO", "DEBUG", "WARN")
    return not (silent or any(each.search(own) for each in (_ADVICE, _GOES_ON, _NOT_ONE))) and bool(
        _HINT.match(own)
    )


def wording(text: str, facts: LineFacts) -> str:
    """A key that is equal for lines that differ only in their values."""
    return _VALUE.sub("0", text[facts.start :][:160]).strip()
