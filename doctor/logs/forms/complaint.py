"""Recognises lines that complain. It is strict: lines of healthy logs do not count."""

import re

from doctor.logs.forms.line_facts import LineFacts
from doctor.logs.model import Form

TRIGGERS = (
    *(b"Error", b"ERROR", b"FATAL", b"CRITICAL", b"EXCEPTION", b"Exception", b"rror:", b"ailed", b"ailure"),
    *(b"WTERMSIG", b"XHAUSTED", b"xhausted", b"EXCEEDED", b"UNAVAILABLE", b"unreachable", b"refused"),
    *(b"reset by peer", b"No route to", b"No space left", b"Cannot allocate", b"FAILED", b"atal", b"anic:"),
    *(b"Killed", b"Aborted", b"Terminated", b"Illegal instruction", b"Floating point exception"),
    *(b"Segmentation fault", b"Bus error", b"core dumped", b"NCCL WARN", b"[E", b"zsh: ", b"killed "),
    *(b"segmentation fault", b"terminated by signal", b"panicked at", b": not found", b"  Exit ", b"^C"),
    *(word.encode() for word in ("错误", "已杀死", "已终止", "已放弃", "已中止")),
)

_NOT_ONE = re.compile(
    r"\b(?:attempts?|\w{0,40}warn(?:ing)?s?|retry(?:ing)?|retried|fall(?:ing)? ?back|ignor\w{1,4}|skip\w{0,5}"
    r"|optional|recovered|may fail|if .{1,80} fail\w{0,2}|no errors?|without errors?"
    r"|errors?[=: ]{1,3}0\b|\b0 (?:\w{1,20} )?(?:errors?|failed)"
    r"|failed(?: \w{1,20})?[=: ]{1,9}0\b|DeprecationWarning|on_error|error_file|expected|suppress\w{0,4})\b",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"wandb: |can lead to|deprecated|acltdtSendTensor|you can ignore|can be (?:safely )?ignored"
    r"|not recommended|already (?:been )?registered|Unable to register cu\w{3,6} factory|CUDA_ERROR_NO_DEVICE"
    r"|could not find cuda drivers|TF-TRT Warning"
    r"|cuda_executor\.cc:\d{1,5}\] failed call to cuInit: UNKNOWN ERROR \(303\)"
    r"|\d/\d{1,12} \[[^\]]{0,80}(?:it/s|s/it)[^\]]{0,200}\]\s{0,9}$"
)
"""Some programs and clouds write ERROR or WARN although nothing went wrong, such as in front of a bar."""
GLOG = re.compile(
    rb"[EF](?:0\d|1[0-2])[0-3]\d \d\d:\d\d:\d\d|\d: [EF] [\w./+-]{1,250}\.[a-z]{1,3}:\d{1,6}\] "
)
"""The beginning of an error line of glog, absl or TSL, which has no word for its level."""
_ENDS = (
    r"(?:killed|aborted|terminated|illegal instruction|floating point exception|segmentation fault|bus error"
    r"|已杀死|已终止|已放弃|已中止|段错误|总线错误|非法指令|浮点数例外|exit [1-9]\d{0,2})"
)
"""How shells call the end of a program."""
_STARTS = re.compile(
    rf"{_ENDS}\s{{0,9}}$"
    rf"|[\w./-]{{1,80}}[:：] ?(?:line|行|第) ?\d{{1,6}}(?: 行)?[:：] {{1,4}}\d{{1,9}} {_ENDS}"
    rf"|\[\d{{1,3}}\](?:[+-]| {{1,3}}[+-])? {{1,4}}(?:\d{{1,9}} {{1,3}})?{_ENDS}\s"
    rf"|zsh: {_ENDS}|fish: .{{1,300}} terminated by signal SIG|(?:.{{0,200}}\s)?\^C\s{{0,9}}$"
    r"|Exception in thread \"|thread '.{0,80}' (?:\(\d{1,9}\) )?panicked at "
    r"|[\w./-]{1,80}: (?:\d{1,6}: )?\S{1,80}: not found\s{0,9}$"
    r"|(?:error|fatal(?: error| python error)?|panic)\b ?[:!](?! *[-+.\d])"
    r"|fatal error|segmentation fault|bus error"
    r"|Error executing job with overrides|make(?:\[\d{1,3}\])?: \*\*\* "
    r"|.{0,100}\bcore dumped\b|错误 ?[:：](?! *[-+.\d])"
    r"|[\w./-]{1,80}: (?:error|fatal(?: error)?|[Cc]ommand not found|[Nn]o such file|[Pp]ermission denied)\b"
    r"(?! *[:=]? *[-+.\d])",
    re.IGNORECASE,
)
_POD = re.compile(
    r"\s{0,20}Reason: {1,20}(?:Error|StartError|ContainerCannotRun)\s{0,9}$"
    r"|[\w.-]{1,120} {1,60}0/\d{1,2} {1,60}(?:Init:)?(?:\w{1,40})?Error\b"
)
"""A container that ended with an error, as kubectl shows it."""
_FAILED = re.compile(
    r"(?:^|[\s:\]!.])(?:FAILED|[Ff]ailed|(?:CUDA|NCCL|HIP|RCCL|HCCL|ACL|MPI) failure)\b"
    r"|(?:RESOURCE_EXHAUSTED|Resource exhausted|DEADLINE_EXCEEDED|UNAVAILABLE|DATA_LOSS): "
    r"|\bWTERMSIG [1-9]"
    r"|(?:Network is unreachable|No route to host|Connection refused|Connection reset by peer"
    r"|No space left on device|Cannot allocate memory)\W{0,9}$"
)
"""The program's own word, a status of gRPC, the end of a step of Slurm, and the errors of Linux."""
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
    if _ADVICE.search(begins):
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


def wording(text: str, facts: LineFacts) -> str:
    """A key that is equal for lines that differ only in their values."""
    return _VALUE.sub("0", text[facts.start :][:160]).strip()
