"""Reads the typed values of options by our own functions alone.

typer reads each value through pydantic, which takes longer to import than many commands run.
"""

from functools import partial
from typing import Any

_TEXTS = (str, list[str])


class OwnValues:
    """A command or group whose typed values are read here."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in found:
            if hasattr(each, "get_runtime_param"):  # older versions of typer do not use pydantic
                each.get_runtime_param = partial(_TypedValue, each)
        return found


class _TypedValue:
    """What typer asks for the value of a parameter."""

    def __init__(self, param: Any) -> None:
        self._kind = param.type_descriptor

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        read = self._kind.parameter_info.parser
        if read is None and self._kind.annotation not in _TEXTS and value is not None:
            return type(param).get_runtime_param(param).coerce(value, param=param, ctx=ctx)
        if param.multiple or param.nargs == -1:
            return [read(each) if read else each for each in value or ()]
        return read(value) if read and value is not None else value
