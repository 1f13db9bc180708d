"""How CANN's error numbers are printed. A text must precede one: a bare number may be a step or a pid."""

import re

ALL = "all"
SPELLINGS = (ALL,)
NUMBER = re.compile(r"[1-9]\d{5}", re.ASCII)
_BY_THE_RUNTIME = ("error code is {}", "ErrCode={}", "ret: {}", "runtime result = {}")
_BY_ITS_CALLERS = (
    *("ret[{}]", "retcode: {}", "retcode:{}", "failed: {}", "result = {}", "errorCode is {}"),
    *("errorCode = {}", "rror code: {}", "rror code:{}", "ret = {}", "ret={}", "ret:{}"),
)


def patterns_of(number: str, spellings: str = "") -> tuple[tuple[str, ...], ...]:
    """The patterns of a number, if there is one; with ALL, also those of programs that call the runtime."""
    templates = (*_BY_THE_RUNTIME, *(_BY_ITS_CALLERS if spellings == ALL else ()))
    return tuple((each.format(number),) for each in templates) if number else ()
