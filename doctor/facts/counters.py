"""What a host counts, and how warm, full and shared it is: read again and again while it is tested."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from doctor.api import Capture, Fact, Run, UnreadableOutput
from doctor.text.hostprogram import host_program


def _counters(capture: Capture) -> Mapping[str, float]:
    found = re.findall(r"^(-?\d{1,18}) (\S.{0,99})$", capture.stdout, re.MULTILINE)
    if not found:
        raise UnreadableOutput("the host shows no counters")
    return {name: float(value) for value, name in found}


# Not the counters of InfiniBand ports: a card that may not read them writes an error into its kernel's log.
COUNTERS = Fact("counters", Run(host_program(__file__, "counters.sh")), _counters, slow=True)
"""Name -> value, such as "throttled" or "net eth0 rx_dropped"."""


def numbers_in(value: Any, name: str) -> Iterator[tuple[str, float]]:
    """All numbers in a fact, by the names on the way to them, and that words of a list are in it."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, int | float):
        yield name, float(value)
    elif isinstance(value, Mapping):
        for key, own in value.items():
            yield from numbers_in(own, f"{name} {key}")
    elif isinstance(value, tuple):
        for own in value:
            yield from [(f"{name} {own}", 1.0)] if isinstance(own, str) else numbers_in(own, name)
