"""How numbers of CANN are printed. A number alone may be a step or a process: something stands before it."""

from __future__ import annotations

import re

ALL = "all"
SPELLINGS = (ALL,)
NUMBER = re.compile(r"[1-9]\d{5}", re.ASCII)
_BY_THE_RUNTIME = ("error code is {}", "ErrCode={}", "ret: {}")
_BY_ITS_CALLERS = (
    *("ret[{}]", "retcode: {}", "retcode:{}", "failed: {}", "result = {}", "errorCode is {}"),
    *("rror code: {}", "rror code:{}", "ret = {}", "ret={}", "ret:{}"),
)


def patterns_of(number: str, spellings: str = "") -> tuple[tuple[str, ...], ...]:
    """With ALL also what programs print that call the runtime; none without a number."""
    templates = (*_BY_THE_RUNTIME, *(_BY_ITS_CALLERS if spellings == ALL else ()))
    return tuple((each.format(number),) for each in templates) if number else ()
